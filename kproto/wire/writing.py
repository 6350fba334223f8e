"""Writing primitives: each function hands its pieces to `append`, and one join makes the message.

What cannot be written raises one of `faults.WRITE_FAULTS`.
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

#: What a bool field takes. The struct module itself takes any object for true or false.
BOOLS: Final = {False: False, True: True}

#: The one-byte unsigned varints.
UVARINT: Final = [bytes((value,)) for value in range(128)]


class _CountedArrayStructs(dict[str, list[struct.Struct]]):
    """The Structs of a count and of 0 to 126 numbers behind it, made at the first use.

    The key is the format letter of the count and that of the numbers.
    """

    def __missing__(self, letters: str) -> list[struct.Struct]:
        count, number = letters[0], letters[1]
        made = [struct.Struct(f">{count}{many}{number}") for many in range(SHARED_COUNTS - 1)]
        self[letters] = made
        return made


#: Fewer than 127 numbers have a count of one byte in the compact form.
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

    Raises WireFault when there are not as many as its length says, on a mapping, of which only the
    keys would be written, on a str, and on what is no Iterable.
    """
    kind = type(values)
    if kind is list or kind is tuple:
        return values
    if isinstance(values, Mapping | str) or not isinstance(values, Iterable):
        raise WireFault
    count = len(values)
    made = [*islice(values, count + 1)]  # it may never end
    if len(made) != count:
        raise WireFault
    return made


def uuid_bytes(value: bytes) -> bytes:
    """Returns the 16 bytes of a uuid, which may stand in any buffer."""
    if type(value) is not Uuid:
        value = octets(value)
    if len(value) != 16:
        raise WireFault
    return value


def write_string(append: Append, value: str) -> None:
    """A string with an int16 length."""
    raw = value.encode()
    append(_INT16.pack(len(raw)))
    append(raw)


def write_nullable_string(append: Append, value: str | None) -> None:
    """A string with an int16 length, -1 for null."""
    if value is None:
        append(b"\xff\xff")
    else:
        write_string(append, value)


def write_compact_string(append: Append, value: str) -> None:
    """A string whose length plus one is an unsigned varint."""
    raw = value.encode()
    size = len(raw)
    append(UVARINT[size + 1] if size < 127 else compact_string_length(size))
    append(raw)


def write_compact_nullable_string(append: Append, value: str | None) -> None:
    """A string whose length plus one is an unsigned varint, 0 for null."""
    if value is None:
        append(b"\0")
    else:
        write_compact_string(append, value)


def write_bytes(append: Append, value: bytes) -> None:
    """Bytes with an int32 length."""
    if type(value) is not bytes:
        value = octets(value)
    append(_INT32.pack(len(value)))
    append(value)


def write_nullable_bytes(append: Append, value: bytes | None) -> None:
    """Bytes with an int32 length, -1 for null."""
    if value is None:
        append(b"\xff\xff\xff\xff")
    else:
        write_bytes(append, value)


def write_compact_bytes(append: Append, value: bytes) -> None:
    """Bytes whose length plus one is an unsigned varint."""
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
    """Bytes whose length plus one is an unsigned varint, 0 for null."""
    if value is None:
        append(b"\0")
    else:
        write_compact_bytes(append, value)


def write_array_length(append: Append, count: int) -> None:
    """An int32 count of elements."""
    append(_INT32.pack(count))


def write_compact_array_length(append: Append, count: int) -> None:
    """A count of elements, plus one, as an unsigned varint."""
    append(UVARINT[count + 1] if count < 127 else uvarint(count + 1))


def write_numbers(append: Append, values: Collection[int] | Collection[float], letter: str) -> None:
    """Numbers of one format letter of `struct`."""
    if type(values) is not list:
        values = elements(values)
    count = len(values)
    if count < SHARED_COUNTS:
        append(ARRAY_STRUCTS[letter][count].pack(*values))
    else:
        append(struct.pack(f">{count}{letter}", *values))


def write_uuids(append: Append, values: Collection[bytes]) -> None:
    """Uuids of 16 bytes."""
    for value in elements(values):
        append(uuid_bytes(value))


def write_strings(append: Append, values: Collection[str]) -> None:
    """Strings with int16 lengths."""
    for value in elements(values):
        write_string(append, value)


def write_compact_strings(append: Append, values: Collection[str]) -> None:
    """Strings in the compact form."""
    for value in elements(values):
        write_compact_string(append, value)


def write_tags(
    append: Append,
    fields: Iterable[RawTaggedField],
    unknown: Iterable[RawTaggedField] | None,
    known: Collection[int] = (),
) -> None:
    """The tagged fields of a struct, by ascending number, each number once (KIP-482).

    `known` are the numbers that are fields of any version; an unknown field may not take one, not
    even where the version does not have that field, or leaves it out at its default.
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
