"""Reads messages as leniently as Kafka's classes do, and reports deviations and oddities.

kproto refuses some bytes that Kafka's readers accept (`DeviationFromKafka`). kproto accepts no
bytes that Kafka's readers refuse. The reader in this module detects the deviations. It follows the
layout of the message version, shares no code with kproto's codec and builds no message. The reader
also reports bytes that all readers accept and no writer creates (`Oddity`), and the positions of
the lengths, counts and tags that `mutations` changes.
"""

from __future__ import annotations

import contextlib
import struct
from enum import Enum
from typing import Final, NamedTuple

from ..schema.layout import FORMATS, StructLayout, WireType
from .default_values import encoded_default

__all__ = [
    "DeviationFromKafka",
    "LengthField",
    "LengthUnit",
    "LenientReadResult",
    "Oddity",
    "TagSection",
    "UnreadableMessageError",
    "length_fields_in",
    "read_leniently",
    "walk_message",
]


class DeviationFromKafka(Enum):
    """Lists the kinds of bytes that kproto refuses and Kafka accepts; each value describes one."""

    LENGTH = "kproto refuses a length or count below -1; Kafka takes it for null"
    TAG_COUNT = "kproto refuses a count of 2^31 tagged fields or more; Kafka 3.9 takes it for 0"
    TAG_ORDER = "kproto refuses tags twice or out of order; Kafka takes the last value of each tag"
    TAG_SIZE = "kproto refuses a known tag whose declared size is wrong; Kafka ignores this size"
    UTF8 = "kproto refuses bytes that are not UTF-8; Kafka replaces them by U+FFFD"
    TAG_NUMBER = "kproto refuses a tag of 2^31-1 or more; Kafka reads this tag, but cannot write it"
    TAG_VERSION = (
        "kproto refuses a tag that is a field only of later versions; older Kafka keeps it"
    )


class Oddity(Enum):
    """Bytes that all readers accept, and no writer creates; the value describes them."""

    UNKNOWN_TAGS = "unknown tagged fields"
    LONG_VARINT = "a varint longer than needed"
    BOOL = "a bool that is neither 0 nor 1"
    DEFAULT = "a tagged field with its default"
    MARK = "a mark of null or presence that is neither -1, 0 nor 1"


class LengthUnit(Enum):
    """The unit of a length field: bytes, elements of an array, or tagged fields."""

    LENGTH = "length"
    COUNT = "count"
    TAGS = "tags"


class LengthField(NamedTuple):
    """A length or count, which is encoded in the bytes from `begin` to `end`.

    `value` is the length or count, -1 for null. `stop` is the offset after the content that has
    this length or count. `width` is the size of the field in bytes, or 0 for an unsigned varint. A
    varint is encoded as the value plus one, except for TAGS.
    """

    role: LengthUnit
    begin: int
    end: int
    stop: int
    value: int
    width: int


class TagSection(NamedTuple):
    """The tagged fields of a struct, in the bytes from `begin` (the count) to `stop`.

    `entries` has the tag and the offset of each field, in the order of the bytes.
    """

    shape: StructLayout
    begin: int
    stop: int
    entries: tuple[tuple[int, int], ...]


class LenientReadResult(NamedTuple):
    """Holds the results of reading one message.

    `end` is the offset after the message. `deviations` and `oddities` have no duplicates.
    `length_fields` are the lengths and counts of the message, in the order in which their contents
    end. `strings` are the length fields of strings. `tag_sizes` has the first and the last offset
    of the size of each tagged field that the message version has. `tag_sections` are the tagged
    fields of each flexible struct, except of structs inside a tagged field, whose size would change
    with them.
    """

    end: int
    deviations: tuple[DeviationFromKafka, ...]
    oddities: tuple[Oddity, ...]
    length_fields: tuple[LengthField, ...]
    strings: tuple[LengthField, ...]
    tag_sizes: tuple[tuple[int, int], ...]
    tag_sections: tuple[TagSection, ...]


class UnreadableMessageError(Exception):
    """Raised for bytes that both Kafka's readers and kproto refuse."""


_SIZES: Final = {kind: struct.calcsize(">" + letter) for kind, letter in FORMATS.items()}

_MAX_STRING: Final = 0x7FFF


def read_leniently(shape: StructLayout, data: bytes) -> tuple[int, list[DeviationFromKafka]]:
    """Returns the offset after the message at the start of `data`, and the deviations in its bytes.

    The deviations are the bytes that kproto refuses and Kafka's readers accept, in the order of the
    bytes. Raises UnreadableMessageError if Kafka's readers refuse the message.
    """
    reader = _LenientReader(data)
    end = reader.struct(shape, 0)
    return end, reader.found


def walk_message(shape: StructLayout, data: bytes) -> LenientReadResult:
    """Reads the message at the start of `data`.

    Raises UnreadableMessageError if Kafka's readers refuse the message.
    """
    reader = _LenientReader(data)
    end = reader.struct(shape, 0)
    oddities = tuple(dict.fromkeys(reader.oddities))
    return LenientReadResult(
        end,
        tuple(dict.fromkeys(reader.found)),
        oddities,
        tuple(reader.length_fields),
        tuple(reader.strings),
        tuple(reader.tag_sizes),
        tuple(reader.tag_sections),
    )


def length_fields_in(shape: StructLayout, data: bytes) -> tuple[LengthField, ...]:
    """Returns the length fields in `data`, up to the first unreadable byte."""
    reader = _LenientReader(data)
    with contextlib.suppress(UnreadableMessageError, RecursionError):
        reader.struct(shape, 0)
    return tuple(reader.length_fields)


class _LenientReader:
    """Reads `data` by a layout; collects deviations, oddities, length fields, sizes of tags."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.found: list[DeviationFromKafka] = []
        self.oddities: list[Oddity] = []
        self.length_fields: list[LengthField] = []
        self.strings: list[LengthField] = []
        self.tag_sizes: list[tuple[int, int]] = []
        self.tag_sections: list[TagSection] = []
        self.open_tags = 0

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
                begin = pos
                size, pos = self.length(kind, pos, 4)
                end = self.skip(pos, size or 0)
                self.length_field(
                    LengthUnit.LENGTH, begin, pos, end, size, 0 if kind.compact else 4
                )
                return end
            case "bool":
                end = self.skip(pos, 1)
                if self.data[pos] > 1:
                    self.oddities.append(Oddity.BOOL)
                return end
            case fixed:
                return self.skip(pos, _SIZES[fixed])

    def nested(self, kind: WireType, pos: int) -> int:
        assert kind.struct is not None
        if kind.nullable:
            if kind.compact:
                mark, pos = self.uvarint(pos)
                present = mark > 0
                usual = mark in (0, 1)
            else:
                mark = self.number(pos, 1)
                present = mark >= 0
                usual = mark in (-1, 1)
                pos += 1
            if not usual:
                self.oddities.append(Oddity.MARK)
            if not present:
                return pos
        return self.struct(kind.struct, pos)

    def array(self, kind: WireType, pos: int) -> int:
        begin = pos
        count, pos = self.length(kind, pos, 4)
        head = pos
        assert kind.element is not None
        if count is not None and count > len(self.data) - pos:
            raise UnreadableMessageError
        for _ in range(count or 0):
            pos = self.value(kind.element, pos)
        self.length_field(LengthUnit.COUNT, begin, head, pos, count, 0 if kind.compact else 4)
        return pos

    def length_field(
        self, role: LengthUnit, begin: int, end: int, stop: int, value: int | None, width: int
    ) -> None:
        self.length_fields.append(
            LengthField(role, begin, end, stop, -1 if value is None else value, width)
        )

    def string(self, kind: WireType, pos: int) -> int:
        begin = pos
        size, pos = self.length(kind, pos, 2)
        if size is not None and size > _MAX_STRING:
            raise UnreadableMessageError
        end = self.skip(pos, size or 0)
        self.length_field(LengthUnit.LENGTH, begin, pos, end, size, 0 if kind.compact else 2)
        self.strings.append(self.length_fields[-1])
        try:
            self.data[pos:end].decode()
        except UnicodeDecodeError:
            self.found.append(DeviationFromKafka.UTF8)
        return end

    def length(self, kind: WireType, pos: int, width: int) -> tuple[int | None, int]:
        """Returns a length (None for null), and the position after it."""
        if kind.compact:
            size, pos = self.uvarint(pos)
            size = 0x7FFFFFFF if size == -0x80000000 else size - 1  # overflows like a Java int
        else:
            size = self.number(pos, width)
            pos += width
        if size >= 0:
            return size, pos
        if not kind.nullable:
            raise UnreadableMessageError
        if size < -1:
            self.found.append(DeviationFromKafka.LENGTH)
        return None, pos

    def tags(self, shape: StructLayout, pos: int) -> int:
        begin = pos
        known = {field.tag: field for field in shape.tagged}
        elsewhere = {spec.tag for spec in shape.absent}
        others = elsewhere | {field.spec.tag for field in shape.fields} - {None}
        count, pos = self.uvarint(pos)
        head = pos
        if count < 0:
            self.found.append(DeviationFromKafka.TAG_COUNT)
        previous = -1
        entries: list[tuple[int, int]] = []
        for _ in range(count):
            field_begin = pos
            tag, pos = self.uvarint(pos)
            entries.append((tag, field_begin))
            size_begin = pos
            size, pos = self.uvarint(pos)
            unsigned = tag & 0xFFFFFFFF
            if unsigned <= previous:
                self.found.append(DeviationFromKafka.TAG_ORDER)
            if unsigned >= 0x7FFFFFFF:
                self.found.append(DeviationFromKafka.TAG_NUMBER)
            if tag in others:
                self.found.append(DeviationFromKafka.TAG_VERSION)
            previous = unsigned
            field = known.get(tag)
            if field is None:
                self.oddities.append(Oddity.UNKNOWN_TAGS)
                pos = self.skip(pos, size)
                continue
            self.tag_sizes.append((size_begin, pos))
            self.open_tags += 1
            end = self.value(field.type, pos)
            self.open_tags -= 1
            if end - pos != size:
                self.found.append(DeviationFromKafka.TAG_SIZE)
            if self.data[pos:end] == encoded_default(field):
                self.oddities.append(Oddity.DEFAULT)
            pos = end
        self.length_field(LengthUnit.TAGS, begin, head, pos, max(count, 0), 0)
        if not self.open_tags:
            self.tag_sections.append(TagSection(shape, begin, pos, tuple(entries)))
        return pos

    def uvarint(self, pos: int) -> tuple[int, int]:
        """Returns an unsigned varint and the position after it.

        Like Kafka's Java code, converts the varint to a signed 32-bit int.
        """
        value = 0
        for index in range(5):
            byte = self.number(pos, 1) & 0xFF
            pos += 1
            value |= (byte & 0x7F) << 7 * index
            if byte < 0x80:
                if byte == 0 and index:
                    self.oddities.append(Oddity.LONG_VARINT)
                value &= 0xFFFFFFFF
                return value - (value >> 31 << 32), pos
        raise UnreadableMessageError

    def number(self, pos: int, width: int) -> int:
        end = self.skip(pos, width)
        return int.from_bytes(self.data[pos:end], "big", signed=True)

    def skip(self, pos: int, size: int) -> int:
        if not 0 <= size <= len(self.data) - pos:
            raise UnreadableMessageError
        return pos + size
