"""Builds the smallest bytes that make the largest objects, for each array and for tags.

An attacker could send few bytes for which the decoder creates many objects. The most expensive
struct makes a list or an object from nearly every byte.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from kproto.schema.layout import FORMATS, StructLayout, WireType

__all__ = ["Shape", "shapes", "tagged"]


class Shape(NamedTuple):
    """A message whose array at `path` has equal elements of `width` bytes each."""

    path: str
    variant: str
    width: int
    data: bytes


def shapes(layout: StructLayout, count: int) -> Iterator[Shape]:
    """Yields messages with `count` elements in one array, and as few bytes as possible elsewhere.

    `variant` names the form of the elements. They are as small as possible, or strings of three
    bytes, or structs with one element in each inner array, or structs with an unknown tag.
    """
    for field in layout.all_fields():
        kind = field.type
        if kind.kind == "array":
            assert kind.element is not None
            for variant, element in _elements(kind.element):
                data = _length(kind, count, 4) + element * count
                yield Shape(
                    field.attribute, variant, len(element), _struct(layout, field.name, data)
                )
        inner = (kind.element or kind).struct
        if inner is None:
            continue
        for shape in shapes(inner, count):
            data = shape.data
            if kind.kind == "array":
                data = _length(kind, 1, 4) + data
            elif kind.nullable:
                data = b"\x01" + data
            path = f"{field.attribute}.{shape.path}"
            yield shape._replace(path=path, data=_struct(layout, field.name, data))


def tagged(layout: StructLayout, count: int) -> bytes:
    """Returns the smallest message with `count` empty unknown tagged fields."""
    first = 1 + max((field.tag or 0 for field in layout.tagged), default=0)
    tags = b"".join(uvarint(first + number) + b"\x00" for number in range(count))
    return _struct(layout)[:-1] + uvarint(count) + tags


def uvarint(value: int) -> bytes:
    """Returns an unsigned varint."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _elements(kind: WireType) -> Iterator[tuple[str, bytes]]:
    least = _least(kind)
    yield "least", least
    if kind.kind == "string":
        yield "text", _length(kind, 3, 2) + b"abc"
    if kind.struct is None:
        return
    inner = [field.type for field in kind.struct.fields]
    if any(field.kind == "array" for field in inner):
        yield "one of each", b"".join(map(_one, inner)) + b"\x00" * kind.struct.flexible
    if kind.struct.flexible:
        yield "unknown tag", tagged(kind.struct, 1)


def _one(kind: WireType) -> bytes:
    if kind.kind != "array":
        return _least(kind)
    assert kind.element is not None
    return _length(kind, 1, 4) + _least(kind.element)


def _least(kind: WireType) -> bytes:
    match kind.kind:
        case "struct":
            assert kind.struct is not None
            if kind.nullable:
                return b"\x00" if kind.compact else b"\xff"
            return _struct(kind.struct)
        case "array" | "bytes" | "records":
            return _length(kind, 0, 4)
        case "string":
            return _length(kind, 0, 2)
        case fixed:
            return bytes(struct.calcsize(">" + FORMATS[fixed]))


def _struct(layout: StructLayout, name: str = "", data: bytes = b"") -> bytes:
    """Returns the smallest encoding of a struct in which the field `name` is encoded as `data`."""
    out = b"".join(data if field.name == name else _least(field.type) for field in layout.fields)
    if not layout.flexible:
        return out
    for field in layout.tagged:
        if field.name == name:
            assert field.tag is not None
            return out + b"\x01" + uvarint(field.tag) + uvarint(len(data)) + data
    return out + b"\x00"


def _length(kind: WireType, size: int, width: int) -> bytes:
    return uvarint(size + 1) if kind.compact else size.to_bytes(width, "big")
