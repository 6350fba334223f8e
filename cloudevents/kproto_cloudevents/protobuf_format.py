"""The public import path of the protobuf event format.

`formats.protobuf_format` defines the names.
"""

from __future__ import annotations

from .formats.protobuf_format import PROTOBUF_FORMAT, from_protobuf, to_protobuf

__all__ = ["PROTOBUF_FORMAT", "from_protobuf", "to_protobuf"]
