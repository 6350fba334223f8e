"""Writes values of primitive types; each `write_` function passes the encoded bytes to `append`.

The caller joins all bytes to a message. The other functions prepare values. A value that cannot be
encoded raises one of `faults.WRITE_FAULTS`. The values are declared `Any` because the fields of a
message may hold any object: with `str`, mypyc would bypass the methods of a subclass of `str`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import islice
from typing import Any, Final, TypeAlias, TypeVar

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
    "utf8",
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

#: The values that a bool field accepts. The struct module would accept all objects as bools.
BOOLS: Final = {False: False, True: True}

#: The unsigned varints of 0 to 127, which have one byte.
UVARINT: Final = [bytes((value,)) for value in range(128)]


class _CountedArrayStructs(dict[str, list[struct.Struct]]):
    """Maps two format characters to a list of 127 Structs.

    The Struct at index n packs a count and n numbers. The first character is the format of the
    count, the second character is the format of the numbers. The Structs are built at the first
    use.
    """

    def __missing__(self, letters: str) -> list[struct.Struct]:
        count, number = letters[0], letters[1]
        made = [struct.Struct(f">{count}{many}{number}") for many in range(SHARED_COUNTS - 1)]
        self[letters] = made
        return made


#: The Structs, by format characters and then by count of numbers. In a compact array, the count of
#: fewer than 127 numbers has one byte.
COUNTED_ARRAY_STRUCTS: Final = _CountedArrayStructs()

_TWO_BYTES: Final = struct.Struct("BB")
_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")


def uvarint(value: int) -> bytes:
    """Returns the shortest unsigned varint of `value`. Raises WireFault if it is no uint32."""
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
    """Returns the encoded length of a compact string of `size` bytes.

    Raises WireFault for more than MAX_STRING_BYTES.
    """
    if size > MAX_STRING_BYTES:
        raise WireFault
    return uvarint(size + 1)


def elements(values: Collection[T]) -> Collection[T]:
    """Returns the elements of an array field as a list or tuple.

    Raises WireFault if `values` is a str, a mapping (only its keys would be written) or not
    iterable. Also raises it if `values` yields more or fewer elements than its `len`.
    """
    kind = type(values)
    if kind is list or kind is tuple:
        return values
    if isinstance(values, Mapping | str) or not isinstance(values, Iterable):
        raise WireFault
    count = len(values)
    made = [*islice(values, count + 1)]  # no more, because the iterable may be endless
    if len(made) != count:
        raise WireFault
    return made


def uuid_bytes(value: Any) -> bytes:
    """Returns the bytes of a uuid or another buffer; raises WireFault unless there are 16 bytes."""
    raw: bytes = value if type(value) is Uuid else octets(value)
    if len(raw) != 16:
        raise WireFault
    return raw


def utf8(value: Any) -> bytes:
    """Returns an encoded string, for compiled code."""
    if type(value) is str:
        return value.encode()
    raw: bytes = value.encode()
    return raw


def write_string(append: Append, value: Any) -> None:
    """Writes a string with an int16 length."""
    raw = value.encode()
    append(_INT16.pack(len(raw)))
    append(raw)


def write_nullable_string(append: Append, value: Any) -> None:
    """Writes a string with an int16 length; null is the length -1."""
    if value is None:
        append(b"\xff\xff")
    else:
        write_string(append, value)


def write_compact_string(append: Append, value: Any) -> None:
    """Writes a string with a compact length: an unsigned varint of the length plus one."""
    raw = value.encode()
    size = len(raw)
    append(UVARINT[size + 1] if size < 127 else compact_string_length(size))
    append(raw)


def write_compact_nullable_string(append: Append, value: Any) -> None:
    """Writes a string with a compact length; null is the varint 0."""
    if value is None:
        append(b"\0")
    else:
        write_compact_string(append, value)


def write_bytes(append: Append, value: Any) -> None:
    """Writes bytes with an int32 length."""
    if type(value) is not bytes:
        value = octets(value)
    size = len(value)
    if size > MAX_LENGTH:
        raise WireFault
    append(_INT32.pack(size))
    append(value)


def write_nullable_bytes(append: Append, value: Any) -> None:
    """Writes bytes with an int32 length; null is the length -1."""
    if value is None:
        append(b"\xff\xff\xff\xff")
    else:
        write_bytes(append, value)


def write_compact_bytes(append: Append, value: Any) -> None:
    """Writes bytes with a compact length: an unsigned varint of the length plus one."""
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


def write_compact_nullable_bytes(append: Append, value: Any) -> None:
    """Writes bytes with a compact length; null is the varint 0."""
    if value is None:
        append(b"\0")
    else:
        write_compact_bytes(append, value)


def write_array_length(append: Append, count: int) -> None:
    """Writes an int32 count of elements."""
    append(_INT32.pack(count))


def write_compact_array_length(append: Append, count: int) -> None:
    """Writes a count of elements, encoded as an unsigned varint of the count plus one."""
    append(UVARINT[count + 1] if count < 127 else uvarint(count + 1))


def write_numbers(append: Append, values: Collection[int] | Collection[float], letter: str) -> None:
    """Writes numbers of the `struct` format character `letter`, without a count."""
    if type(values) is not list:
        values = elements(values)
    count = len(values)
    if count < SHARED_COUNTS:
        append(ARRAY_STRUCTS[letter][count].pack(*values))
    else:
        append(struct.pack(f">{count}{letter}", *values))


def write_uuids(append: Append, values: Collection[bytes]) -> None:
    """Writes the 16 bytes of each uuid; writes no count before them."""
    for value in elements(values):
        append(uuid_bytes(value))


def write_strings(append: Append, values: Collection[str]) -> None:
    """Writes strings with int16 lengths, without a count."""
    for value in elements(values):
        write_string(append, value)


def write_compact_strings(append: Append, values: Collection[str]) -> None:
    """Writes compact strings, without a count."""
    for value in elements(values):
        write_compact_string(append, value)


def write_tags(
    append: Append,
    fields: Iterable[RawTaggedField],
    unknown: Iterable[RawTaggedField] | None,
    known: Collection[int] = (),
) -> None:
    """Writes the tagged fields of a struct in the order of their tags (KIP-482).

    `fields` must already be in the order of their tags. `known` are the tags of the struct's fields
    in all versions. Raises WireFault if a tag occurs twice or is above MAX_TAG, and if a field in
    `unknown` has a known tag, even if the known field is not written.
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
