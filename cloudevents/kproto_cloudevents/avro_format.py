"""The public import path of the Avro event format.

`formats.avro_format` defines the names.
"""

from __future__ import annotations

from .formats.avro_format import AVRO_FORMAT, MAX_NESTING, from_avro, to_avro

__all__ = ["AVRO_FORMAT", "MAX_NESTING", "from_avro", "to_avro"]
