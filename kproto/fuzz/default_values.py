"""Encodes the default of a field, which readers accept and no writer writes in a tagged field.

A writer leaves out a tagged field that has its default (KIP-482). Shares no code with kproto's
codec; `lenient_reader` and `explicit_defaults` use it.
"""

from __future__ import annotations

import struct

from ..schema.layout import FORMATS, LayoutField, StructLayout, WireType
from ..schema.specs import DefaultValue
from ..wire.writing import uvarint

__all__ = ["encoded_default"]


def encoded_default(field: LayoutField) -> bytes:
    """Returns the bytes of the field's default, without tag and size.

    If the default is null and the version does not allow null, the value is empty.
    """
    return _value(field.type, field.default)


def _value(kind: WireType, default: DefaultValue) -> bytes:
    if kind.kind in FORMATS:
        return struct.pack(">" + FORMATS[kind.kind], default)
    is_null = default is None and kind.nullable
    if kind.struct is not None:
        return _struct(kind, kind.struct, is_null=is_null)
    if kind.kind == "array" or default is None:
        content = b""
    else:
        assert isinstance(default, str | bytes)
        content = default.encode() if isinstance(default, str) else default
    if kind.compact:
        return uvarint(0 if is_null else len(content) + 1) + content
    width = ">h" if kind.kind == "string" else ">i"
    return struct.pack(width, -1 if is_null else len(content)) + content


def _struct(kind: WireType, shape: StructLayout, *, is_null: bool) -> bytes:
    mark = b""
    if kind.nullable:
        mark = bytes([not is_null]) if kind.compact else struct.pack(">b", -1 if is_null else 1)
    if is_null:
        return mark
    fields = b"".join(encoded_default(field) for field in shape.fields)
    return mark + fields + (b"\0" if shape.flexible else b"")
