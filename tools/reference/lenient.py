"""Reads messages as leniently as Kafka's classes do, and says where kproto deviates from them.

kproto is stricter than Kafka's readers in a few cases, and looser in none. This walk, by the layout
of the definition and independent of kproto's codec, tells whether bytes are such a case: it builds
nothing, and notes each place where the two part.
"""

from __future__ import annotations

import struct
from enum import Enum
from typing import Final

from kproto.schema.layout import FORMATS, StructLayout, WireType

__all__ = ["Deviation", "Unreadable", "read_leniently"]


class Deviation(Enum):
    """Where kproto refuses what Kafka's readers take; the value says it in words."""

    LENGTH = "kproto refuses a length or count below -1, which Kafka takes for null"
    TAG_COUNT = "kproto refuses a count of 2^31 tagged fields or more, which Kafka 3.9 takes for 0"
    TAG_ORDER = "kproto refuses tags twice or out of order, of which Kafka takes the last"
    TAG_SIZE = "kproto refuses a known tag whose declared size is wrong; Kafka does not look at it"
    UTF8 = "kproto refuses bytes that are not UTF-8, which Kafka replaces by U+FFFD"
    TAG_NUMBER = "kproto refuses a tag of 2^31-1 or more, which Kafka reads and cannot write"
    TAG_VERSION = "kproto refuses a tag that is a field of later versions, which older Kafka keeps"


class Unreadable(Exception):  # noqa: N818 - a finding, not a fault
    """Kafka's readers refuse the bytes, as kproto does."""


_SIZES: Final = {kind: struct.calcsize(">" + letter) for kind, letter in FORMATS.items()}

_MAX_STRING: Final = 0x7FFF


def read_leniently(shape: StructLayout, data: bytes) -> tuple[int, list[Deviation]]:
    """The offset behind the message at the start of `data`, and the deviations met, in order.

    Raises Unreadable when neither kproto nor Kafka's readers would take it.
    """
    reader = _Reader(data)
    end = reader.struct(shape, 0)
    return end, reader.found


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.found: list[Deviation] = []

    def struct(self, shape: StructLayout, pos: int) -> int:
        for field in shape.fields:
            pos = self.value(field.type, pos)
        return self.tags(shape, pos) if shape.flexible else pos

    def value(self, kind: WireType, pos: int) -> int:
        match kind.kind:
            case "struct":
                return self.nested(kind, pos)
            case "array":
                return self.array(kind, pos)
            case "string":
                return self.string(kind, pos)
            case "bytes" | "records":
                size, pos = self.length(kind, pos, 4)
                return self.skip(pos, size or 0)
            case fixed:
                return self.skip(pos, _SIZES[fixed])

    def nested(self, kind: WireType, pos: int) -> int:
        assert kind.struct is not None
        if kind.nullable:
            if kind.compact:
                mark, pos = self.uvarint(pos)
                present = mark > 0
            else:
                present = self.number(pos, 1) >= 0
                pos += 1
            if not present:
                return pos
        return self.struct(kind.struct, pos)

    def array(self, kind: WireType, pos: int) -> int:
        count, pos = self.length(kind, pos, 4)
        assert kind.element is not None
        if count is not None and count > len(self.data) - pos:
            raise Unreadable
        for _ in range(count or 0):
            pos = self.value(kind.element, pos)
        return pos

    def string(self, kind: WireType, pos: int) -> int:
        size, pos = self.length(kind, pos, 2)
        if size is None:
            return pos
        if size > _MAX_STRING:
            raise Unreadable
        end = self.skip(pos, size)
        try:
            self.data[pos:end].decode()
        except UnicodeDecodeError:
            self.found.append(Deviation.UTF8)
        return end

    def length(self, kind: WireType, pos: int, width: int) -> tuple[int | None, int]:
        """A length, or None for null."""
        if kind.compact:
            size, pos = self.uvarint(pos)
            size = 0x7FFFFFFF if size == -0x80000000 else size - 1  # as Java overflows
        else:
            size = self.number(pos, width)
            pos += width
        if size >= 0:
            return size, pos
        if not kind.nullable:
            raise Unreadable
        if size < -1:
            self.found.append(Deviation.LENGTH)
        return None, pos

    def tags(self, shape: StructLayout, pos: int) -> int:
        known = {field.tag: field.type for field in shape.tagged}
        elsewhere = {spec.tag for spec in shape.absent}
        others = elsewhere | {field.spec.tag for field in shape.fields} - {None}
        count, pos = self.uvarint(pos)
        if count < 0:
            self.found.append(Deviation.TAG_COUNT)
        previous = -1
        for _ in range(count):
            tag, pos = self.uvarint(pos)
            size, pos = self.uvarint(pos)
            unsigned = tag & 0xFFFFFFFF
            if unsigned <= previous:
                self.found.append(Deviation.TAG_ORDER)
            if unsigned >= 0x7FFFFFFF:
                self.found.append(Deviation.TAG_NUMBER)
            if tag in others:
                self.found.append(Deviation.TAG_VERSION)
            previous = unsigned
            kind = known.get(tag)
            if kind is None:
                pos = self.skip(pos, size)
                continue
            end = self.value(kind, pos)
            if end - pos != size:
                self.found.append(Deviation.TAG_SIZE)
            pos = end
        return pos

    def uvarint(self, pos: int) -> tuple[int, int]:
        """An unsigned varint as Java holds it, in 32 bits with a sign."""
        value = 0
        for index in range(5):
            byte = self.number(pos, 1) & 0xFF
            pos += 1
            value |= (byte & 0x7F) << 7 * index
            if byte < 0x80:
                value &= 0xFFFFFFFF
                return value - (value >> 31 << 32), pos
        raise Unreadable

    def number(self, pos: int, width: int) -> int:
        end = self.skip(pos, width)
        return int.from_bytes(self.data[pos:end], "big", signed=True)

    def skip(self, pos: int, size: int) -> int:
        if not 0 <= size <= len(self.data) - pos:
            raise Unreadable
        return pos + size
