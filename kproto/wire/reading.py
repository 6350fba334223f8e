"""Reads values of primitive types; each function returns the value and the position after it.

Invalid bytes raise one of `faults.READ_FAULTS`. If a string or bytes is cut off, a function returns
the bytes that exist, and a position after the end of the data. The next read, or the check at the
end of the message, detects such a position.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

from .compiled import __compiled__
from .faults import WireFault
from .limits import (
    MAX_ARRAY_ELEMENTS,
    MAX_LENGTH,
    MAX_STRING_BYTES,
    MAX_TAG,
    MAX_TAGGED_FIELDS,
)
from .number_reading import read_int16, read_int32
from .tags import RawTaggedField
from .uuid import Uuid

if TYPE_CHECKING:
    from .native import i64

__all__ = [
    "ARRAY_STRUCTS",
    "SHARED_COUNTS",
    "read_array_length",
    "read_bytes",
    "read_compact_array_length",
    "read_compact_bytes",
    "read_compact_nullable_array_length",
    "read_compact_nullable_bytes",
    "read_compact_nullable_string",
    "read_compact_string",
    "read_compact_strings",
    "read_nullable_array_length",
    "read_nullable_bytes",
    "read_nullable_string",
    "read_numbers",
    "read_string",
    "read_strings",
    "read_struct_mark",
    "read_tags",
    "read_unknown_tags",
    "read_uuids",
    "read_uvarint",
]

_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")

#: An array of fewer numbers than this uses a shared `struct.Struct`. Most arrays list the replicas
#: of a partition, and so are short.
SHARED_COUNTS: Final = 128


class _ArrayStructs(dict[str, list[struct.Struct]]):
    """Maps a `struct` format character to the Structs for 0, 1, 2 … numbers of that format.

    The Structs of a format are built at the first use of the format.
    """

    def __missing__(self, letter: str) -> list[struct.Struct]:
        made = [struct.Struct(f">{count}{letter}") for count in range(SHARED_COUNTS)]
        self[letter] = made
        return made


#: The shared Structs, by format character and then by count of numbers.
ARRAY_STRUCTS: Final = _ArrayStructs()


def read_uvarint(data: bytes, pos: i64) -> tuple[i64, i64]:
    """Reads an unsigned varint of up to 5 bytes; drops bits above the 32nd.

    Accepts unnecessarily long varints, as Kafka does.
    """
    byte: i64 = data[pos]
    if byte < 128:
        return byte, pos + 1
    value: i64 = byte & 127
    for index, shift in ((1, 7), (2, 14), (3, 21)):
        byte = data[pos + index]
        if byte < 128:
            return value | byte << shift, pos + index + 1
        value |= (byte & 127) << shift
    byte = data[pos + 4]
    if byte > 127:
        raise WireFault
    return (value | byte << 28) & 0xFFFFFFFF, pos + 5


def read_string(data: bytes, pos: i64) -> tuple[str, i64]:
    """Reads a string with an int16 length."""
    if __compiled__:
        size = read_int16(data, pos)
    else:
        (size,) = _INT16.unpack_from(data, pos)
    if size < 0:
        raise WireFault
    pos += 2
    end = pos + size
    return data[pos:end].decode(), end


def read_nullable_string(data: bytes, pos: i64) -> tuple[str | None, i64]:
    """Reads a string with an int16 length; -1 means null."""
    if __compiled__:
        size = read_int16(data, pos)
    else:
        (size,) = _INT16.unpack_from(data, pos)
    pos += 2
    if size < 0:
        if size != -1:
            raise WireFault
        return None, pos
    end = pos + size
    return data[pos:end].decode(), end


def read_compact_string(data: bytes, pos: i64) -> tuple[str, i64]:
    """Reads a string with a compact length: an unsigned varint of the length plus one."""
    size: i64 = data[pos]
    if size > 127:
        size, pos = read_uvarint(data, pos)
        if size > MAX_STRING_BYTES + 1:
            raise WireFault
    else:
        pos += 1
    if not size:
        raise WireFault
    end = pos + size - 1
    return data[pos:end].decode(), end


def read_compact_nullable_string(data: bytes, pos: i64) -> tuple[str | None, i64]:
    """Reads a string with a compact length; the varint 0 means null."""
    size: i64 = data[pos]
    if size > 127:
        size, pos = read_uvarint(data, pos)
        if size > MAX_STRING_BYTES + 1:
            raise WireFault
    else:
        pos += 1
    if not size:
        return None, pos
    end = pos + size - 1
    return data[pos:end].decode(), end


def read_bytes(data: bytes, pos: i64) -> tuple[bytes, i64]:
    """Reads bytes with an int32 length."""
    if __compiled__:
        size = read_int32(data, pos)
    else:
        (size,) = _INT32.unpack_from(data, pos)
    if size < 0:
        raise WireFault
    pos += 4
    end = pos + size
    return data[pos:end], end


def read_nullable_bytes(data: bytes, pos: i64) -> tuple[bytes | None, i64]:
    """Reads bytes with an int32 length; -1 means null."""
    if __compiled__:
        size = read_int32(data, pos)
    else:
        (size,) = _INT32.unpack_from(data, pos)
    pos += 4
    if size < 0:
        if size != -1:
            raise WireFault
        return None, pos
    end = pos + size
    return data[pos:end], end


def read_compact_bytes(data: bytes, pos: i64) -> tuple[bytes, i64]:
    """Reads bytes with a compact length: an unsigned varint of the length plus one."""
    size, pos = read_uvarint(data, pos)
    if not size:
        raise WireFault
    end = pos + size - 1
    return data[pos:end], end


def read_compact_nullable_bytes(data: bytes, pos: i64) -> tuple[bytes | None, i64]:
    """Reads bytes with a compact length; the varint 0 means null."""
    size: i64 = data[pos]
    if size < 128:
        pos += 1
    elif data[pos + 1] < 128:  # a varint of two bytes, the usual size
        size += (data[pos + 1] << 7) - 128
        pos += 2
    else:
        size, pos = read_uvarint(data, pos)
    if not size:
        return None, pos
    end = pos + size - 1
    return data[pos:end], end


def read_array_length(data: bytes, pos: i64) -> tuple[i64, i64]:
    """Reads an int32 count of elements.

    Raises WireFault if the count is negative, or exceeds the number of bytes left or
    MAX_ARRAY_ELEMENTS. The other functions for counts check both bounds too, so that hostile counts
    allocate no memory.
    """
    if __compiled__:
        count = read_int32(data, pos)
    else:
        (count,) = _INT32.unpack_from(data, pos)
    pos += 4
    if count < 0 or count > len(data) - pos or count > MAX_ARRAY_ELEMENTS:
        raise WireFault
    return count, pos


def read_nullable_array_length(data: bytes, pos: i64) -> tuple[i64, i64]:
    """Reads an int32 count of elements; returns -1 for null."""
    if __compiled__:
        count = read_int32(data, pos)
    else:
        (count,) = _INT32.unpack_from(data, pos)
    pos += 4
    if count < -1 or count > len(data) - pos or count > MAX_ARRAY_ELEMENTS:
        raise WireFault
    return count, pos


def read_compact_array_length(data: bytes, pos: i64) -> tuple[i64, i64]:
    """Reads a count of elements, encoded as an unsigned varint of the count plus one."""
    count: i64 = data[pos]
    if count > 127:
        count, pos = read_uvarint(data, pos)
    else:
        pos += 1
    if not count or count - 1 > len(data) - pos or count - 1 > MAX_ARRAY_ELEMENTS:
        raise WireFault
    return count - 1, pos


def read_compact_nullable_array_length(data: bytes, pos: i64) -> tuple[i64, i64]:
    """Reads a count of elements, encoded as an unsigned varint of the count plus one.

    Returns -1 for null, which is encoded as 0.
    """
    count: i64 = data[pos]
    if count > 127:
        count, pos = read_uvarint(data, pos)
    else:
        pos += 1
    if count - 1 > len(data) - pos or count - 1 > MAX_ARRAY_ELEMENTS:
        raise WireFault
    return count - 1, pos


def read_struct_mark(data: bytes, pos: i64) -> tuple[bool, i64]:
    """Reads the marker of a nullable struct in a tagged field; returns False if the struct is null.

    The marker is a varint. The struct is null if the varint, as an int32, is below 1. Outside
    tagged fields the marker is a byte, which generated code reads.
    """
    mark, pos = read_uvarint(data, pos)
    return 0 < mark <= MAX_LENGTH, pos


def read_numbers(data: bytes, pos: i64, count: i64, letter: str) -> tuple[list[Any], i64]:
    """Reads `count` values of the `struct` format character `letter`: int, float or bool."""
    if count < SHARED_COUNTS:
        shape = ARRAY_STRUCTS[letter][count]
    else:
        shape = struct.Struct(f">{count}{letter}")
    return list(shape.unpack_from(data, pos)), pos + shape.size


def read_uuids(data: bytes, pos: i64, count: i64) -> tuple[list[Uuid], i64]:
    """Reads `count` uuids of 16 bytes."""
    end = pos + 16 * count
    if end > len(data):
        raise WireFault
    return [Uuid(data[at : at + 16]) for at in range(pos, end, 16)], end


def read_strings(data: bytes, pos: i64, count: i64) -> tuple[list[str], i64]:
    """Reads `count` strings with int16 lengths."""
    values = []
    for _ in range(count):
        value, pos = read_string(data, pos)
        values.append(value)
    return values, pos


def read_compact_strings(data: bytes, pos: i64, count: i64) -> tuple[list[str], i64]:
    """Reads `count` compact strings."""
    values = []
    for _ in range(count):
        value, pos = read_compact_string(data, pos)
        values.append(value)
    return values, pos


def read_tags(data: bytes, pos: i64) -> tuple[list[tuple[int, int, int]], i64]:
    """Reads the tagged fields of a struct; returns (tag, start, end) of each value.

    Raises WireFault if the tags do not ascend or are too many, if a tag is above MAX_TAG, or if a
    value exceeds the data.
    """
    count, pos = read_uvarint(data, pos)
    if count > MAX_TAGGED_FIELDS:
        raise WireFault
    tags = []
    previous = -1
    for _ in range(count):
        tag, pos = read_uvarint(data, pos)
        size, pos = read_uvarint(data, pos)
        end = pos + size
        if tag <= previous or end > len(data):
            raise WireFault
        tags.append((tag, pos, end))
        previous = tag
        pos = end
    if previous > MAX_TAG:
        raise WireFault
    return tags, pos


def read_unknown_tags(data: bytes, pos: i64) -> tuple[list[RawTaggedField] | None, i64]:
    """Reads the tagged fields of a struct in whose definition no field is tagged.

    Returns the fields, or None if there are none, and the position after them. Raises the errors of
    `read_tags`.
    """
    if not data[pos]:
        return None, pos + 1
    tags, pos = read_tags(data, pos)
    return [RawTaggedField(tag, data[start:end]) for tag, start, end in tags], pos
