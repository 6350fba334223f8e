"""The protobuf event format, by the name under which it is to be imported.

The names are those of `formats.protobuf_format`, where they stand.
"""

from __future__ import annotations

from .formats.protobuf_format import PROTOBUF_FORMAT, from_protobuf, to_protobuf

__all__ = ["PROTOBUF_FORMAT", "from_protobuf", "to_protobuf"]
