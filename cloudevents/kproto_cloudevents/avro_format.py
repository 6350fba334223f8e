"""The Avro event format, by the name under which it is to be imported.

The names are those of `formats.avro_format`, where they stand.
"""

from __future__ import annotations

from .formats.avro_format import AVRO_FORMAT, MAX_NESTING, from_avro, to_avro

__all__ = ["AVRO_FORMAT", "MAX_NESTING", "from_avro", "to_avro"]
