"""Writes primitives; each function passes its chunks to `append`, and one join makes the message.

A value that cannot be written raises one of `faults.WRITE_FAULTS`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import islice
from typing import Final, TypeAlias, TypeVar

from .buffers import octets
from .faults import WireFault
from .limits import MAX_LENGTH, MAX_STRING_BYTES, MAX_TAG
from .reading import ARRAY_STRUCTS, SHARED_COUNTS
from .tags import RawTaggedField
from .uuid import Uuid

__all__ = [
    "BOOLS",
    "COUNTED_ARRAY_STRUCTS",
    "UVARINT",
    "Append",
    "compact_string_length",
    "elements",
    "uuid_bytes",
    "uvarint",
    "write_array_length",
    "write_bytes",
    "write_compact_array_length",
    "write_compact_bytes",
    "write_compact_nullable_bytes",
    "write_compact_nullable_string",
    "write_compact_string",
    "write_compact_strings",
    "write_nullable_bytes",
    "write_nullable_string",
    "write_numbers",
    "write_string",
    "write_strings",
    "write_tags",
    "write_uuids",
]

T = TypeVar("T")

Append: TypeAlias = Callable[[bytes], None]

#: The values of a bool field. The struct module itself takes any object for true or false.
BOOLS: Final = {False: False, True: True}

#: The one-byte unsigned varints.
UVARINT: Final = [bytes((value,)) for value in range(128)]


class _CountedArrayStructs(dict[str, list[struct.Struct]]):
    """The Structs for a count and the 0 to 126 numbers behind it, built at the first use.

    The key is the format letter of the count and that of the numbers.
    """

    def __missing__(self, letters: str) -> list[struct.Struct]:
        count, number = letters[0], letters[1]
        made = [struct.Struct(f">{count}{many}{number}") for many in range(SHARED_COUNTS - 1)]
        self[letters] = made
        return made


#: In the compact form, fewer than 127 numbers have a count of one byte.
COUNTED_ARRAY_STRUCTS: Final = _CountedArrayStructs()

_TWO_BYTES: Final = struct.Struct("BB")
_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")


def uvarint(value: int) -> bytes:
    """Returns an unsigned varint of up to 32 bits in its shortest form."""
    if 0 <= value < 128:
        return UVARINT[value]
    if not 0 <= value <= 0xFFFFFFFF:
        raise WireFault
    if value < 16384:
        return _TWO_BYTES.pack(value & 127 | 128, value >> 7)
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def compact_string_length(size: int) -> bytes:
    """Returns the length in front of a compact string of `size` bytes."""
    if size > MAX_STRING_BYTES:
        raise WireFault
    return uvarint(size + 1)


def elements(values: Collection[T]) -> Collection[T]:
    """Returns the elements of an array.

    Raises WireFault if there are more or fewer than `len` says, for a mapping (only its keys would
    be written), for a str, and for anything that is not iterable.
    """
    kind = type(values)
    if kind is list or kind is tuple:
        return values
    if isinstance(values, Mapping | str) or not isinstance(values, Iterable):
        raise WireFault
    count = len(values)
    made = [*islice(values, count + 1)]  # the iterable may be endless
    if len(made) != count:
        raise WireFault
    return made


def uuid_bytes(value: bytes) -> bytes:
    """Returns the 16 bytes of a uuid, which may be any buffer."""
    if type(value) is not Uuid:
        value = octets(value)
    if len(value) != 16:
        raise WireFault
    return value


def write_string(append: Append, value: str) -> None:
    """Writes a string with an int16 length."""
    raw = value.encode()
    append(_INT16.pack(len(raw)))
    append(raw)


def write_nullable_string(append: Append, value: str | None) -> None:
    """Writes a string with an int16 length, -1 for null."""
    if value is None:
        append(b"\xff\xff")
    else:
        write_string(append, value)


def write_compact_string(append: Append, value: str) -> None:
    """Writes a string whose length plus one is an unsigned varint."""
    raw = value.encode()
    size = len(raw)
    append(UVARINT[size + 1] if size < 127 else compact_string_length(size))
    append(raw)


def write_compact_nullable_string(append: Append, value: str | None) -> None:
    """Writes a string whose length plus one is an unsigned varint, 0 for null."""
    if value is None:
        append(b"\0")
    else:
        write_compact_string(append, value)


def write_bytes(append: Append, value: bytes) -> None:
    """Writes bytes with an int32 length."""
    if type(value) is not bytes:
        value = octets(value)
    append(_INT32.pack(len(value)))
    append(value)


def write_nullable_bytes(append: Append, value: bytes | None) -> None:
    """Writes bytes with an int32 length, -1 for null."""
    if value is None:
        append(b"\xff\xff\xff\xff")
    else:
        write_bytes(append, value)


def write_compact_bytes(append: Append, value: bytes) -> None:
    """Writes bytes whose length plus one is an unsigned varint."""
    if type(value) is not bytes:
        value = octets(value)
    size = len(value) + 1
    if 127 < size < 16384:
        append(_TWO_BYTES.pack(size & 127 | 128, size >> 7))
    elif size <= MAX_LENGTH + 1:
        append(uvarint(size))
    else:
        raise WireFault
    append(value)


def write_compact_nullable_bytes(append: Append, value: bytes | None) -> None:
    """Writes bytes whose length plus one is an unsigned varint, 0 for null."""
    if value is None:
        append(b"\0")
    else:
        write_compact_bytes(append, value)


def write_array_length(append: Append, count: int) -> None:
    """Writes an int32 count of elements."""
    append(_INT32.pack(count))


def write_compact_array_length(append: Append, count: int) -> None:
    """Writes a count of elements, plus one, as an unsigned varint."""
    append(UVARINT[count + 1] if count < 127 else uvarint(count + 1))


def write_numbers(append: Append, values: Collection[int] | Collection[float], letter: str) -> None:
    """Writes numbers of one format letter of `struct`."""
    if type(values) is not list:
        values = elements(values)
    count = len(values)
    if count < SHARED_COUNTS:
        append(ARRAY_STRUCTS[letter][count].pack(*values))
    else:
        append(struct.pack(f">{count}{letter}", *values))


def write_uuids(append: Append, values: Collection[bytes]) -> None:
    """Writes uuids of 16 bytes."""
    for value in elements(values):
        append(uuid_bytes(value))


def write_strings(append: Append, values: Collection[str]) -> None:
    """Writes strings with int16 lengths."""
    for value in elements(values):
        write_string(append, value)


def write_compact_strings(append: Append, values: Collection[str]) -> None:
    """Writes strings in the compact form."""
    for value in elements(values):
        write_compact_string(append, value)


def write_tags(
    append: Append,
    fields: Iterable[RawTaggedField],
    unknown: Iterable[RawTaggedField] | None,
    known: Collection[int] = (),
) -> None:
    """Writes the tagged fields of a struct in ascending order, each number once (KIP-482).

    `known` are the tag numbers of the struct's fields in any version; an unknown field may not have
    one of them, not even if this version lacks that field or omits it at its default.
    """
    written = sorted([*fields, *unknown]) if unknown else list(fields)
    if unknown and any(tag in known for tag, _ in unknown):
        raise WireFault
    append(uvarint(len(written)))
    previous = -1
    for tag, value in written:
        if tag <= previous:
            raise WireFault
        previous = tag
        append(uvarint(tag))
        raw = value if type(value) is bytes else octets(value)
        append(uvarint(len(raw)))
        append(raw)
    if previous > MAX_TAG:
        raise WireFault
