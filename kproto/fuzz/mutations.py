"""Changes bytes of valid encodings, to test how readers handle invalid bytes.

`mutations` changes bytes at random positions. `mutate` makes a named change: for example, `length`
makes a length wrong. Both functions use the random numbers of `source`, which the caller seeds.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from typing import Final

from ..wire.writing import uvarint
from .lenient_reader import LengthField, LengthUnit

__all__ = ["MUTATIONS", "mutate", "mutations", "number_bytes"]


def mutations(valid: list[bytes], source: random.Random) -> Iterator[bytes]:
    """Yields an endless sequence of encodings from `valid`, with 1 to 3 random changes each."""
    while True:
        data = bytearray(source.choice(valid))
        for _ in range(source.choice((1, 1, 1, 2, 3))):
            source.choice(_MUTATIONS)(data, source, valid)
        yield bytes(data)


#: Bytes with a special meaning in lengths, counts, tags and null markers.
_SPECIAL_BYTES: Final = (0x00, 0x01, 0x02, 0x7F, 0x80, 0xFE, 0xFF)

#: Bytes to insert, in hex. Lengths and varints: null, below null, the largest, and varints that are
#: longer than needed or allowed; also bytes that are not UTF-8.
_RUNS_IN_HEX: Final = """
    ffff fffe 7fff 8000 0000 ffffffff fffffffe 7fffffff 80000000 00000000 00000001 8000 8100 808000
    818000 8080808000 8180808000 ffffffff07 ffffffff0f 8080808008 8080808010 808080808000
    ffffffffff01 c328 eda080 f4908080
"""
_SPECIAL_RUNS: Final = tuple(bytes.fromhex(run) for run in _RUNS_IN_HEX.split())


def _flip_bit(data: bytearray, source: random.Random, valid: list[bytes]) -> None:
    if data:
        data[source.randrange(len(data))] ^= 1 << source.randrange(8)


def _set_byte(data: bytearray, source: random.Random, valid: list[bytes]) -> None:
    if data:
        byte = source.choice(_SPECIAL_BYTES) if source.random() < 0.7 else source.randrange(256)
        data[source.randrange(len(data))] = byte


def _count_by_one(data: bytearray, source: random.Random, valid: list[bytes]) -> None:
    if data:
        at = source.randrange(len(data))
        data[at] = (data[at] + source.choice((-1, 1))) % 256


def _truncate(data: bytearray, source: random.Random, valid: list[bytes]) -> None:
    del data[source.randrange(len(data) + 1) :]


def _insert(data: bytearray, source: random.Random, valid: list[bytes]) -> None:
    at = source.randrange(len(data) + 1)
    data[at:at] = source.randbytes(source.randint(1, 4))


def _delete(data: bytearray, source: random.Random, valid: list[bytes]) -> None:
    at = source.randrange(len(data) + 1)
    del data[at : at + source.randint(1, 4)]


def _write_run(data: bytearray, source: random.Random, valid: list[bytes]) -> None:
    run = source.choice(_SPECIAL_RUNS)
    at = source.randrange(len(data) + 1)
    # The run replaces as many bytes as it has, replaces one byte, or is inserted.
    data[at : at + source.choice((len(run), 1, 0))] = run


def _lengthen_varint(data: bytearray, source: random.Random, valid: list[bytes]) -> None:
    if data:
        at = source.randrange(len(data))
        data[at : at + 1] = bytes([data[at] | 0x80, 0])


def _repeat(data: bytearray, source: random.Random, valid: list[bytes]) -> None:
    at = source.randrange(len(data) + 1)
    data[at:at] = data[at : at + source.randint(1, 16)]


def _splice(data: bytearray, source: random.Random, valid: list[bytes]) -> None:
    other = source.choice(valid)
    data[source.randrange(len(data) + 1) :] = other[source.randrange(len(other) + 1) :]


def _insert_tags(data: bytearray, source: random.Random, valid: list[bytes]) -> None:
    """Replaces a zero byte, perhaps a count of tagged fields, by one to three tagged fields."""
    zeroes = [at for at, byte in enumerate(data) if byte == 0]
    at = source.choice(zeroes[-8:]) if zeroes else len(data)
    count = source.randint(1, 3)
    section = bytearray([count])
    for _ in range(count):
        content = source.randbytes(source.randrange(6))
        size = len(content) + source.choice((0, 0, 0, 0, 1, -1))
        section += bytes([source.choice((0, 1, 2, 3, 100)), max(size, 0)]) + content
    data[at : at + 1] = section


_MUTATIONS: Final[tuple[Callable[[bytearray, random.Random, list[bytes]], None], ...]] = (
    _flip_bit,
    _flip_bit,
    _set_byte,
    _set_byte,
    _count_by_one,
    _truncate,
    _insert,
    _delete,
    _write_run,
    _write_run,
    _lengthen_varint,
    _repeat,
    _splice,
    _insert_tags,
)


#: A mask that converts a negative length to an unsigned 32-bit number. This number is far too large
#: for a length.
_UINT32: Final = 0xFFFFFFFF


def number_bytes(length_field: LengthField, value: int) -> bytes:
    """Encodes `value` in the format of `length_field`.

    A varint gets the lower 32 bits; otherwise `value` is limited to the range of the field.
    """
    if length_field.width == 0:
        return uvarint((value + (length_field.role is not LengthUnit.TAGS)) & _UINT32)
    low, high = -(1 << 8 * length_field.width - 1), (1 << 8 * length_field.width - 1) - 1
    return struct.pack(">h" if length_field.width == 2 else ">i", min(max(value, low), high))


def _flip(
    data: bytes, length_fields: tuple[LengthField, ...], source: random.Random
) -> bytes | None:
    """Flips a random bit."""
    if not data:
        return None
    mutated = bytearray(data)
    mutated[source.randrange(len(mutated))] ^= 1 << source.randrange(8)
    return bytes(mutated)


def _cut(
    data: bytes, length_fields: tuple[LengthField, ...], source: random.Random
) -> bytes | None:
    """Removes a random number of bytes at the end."""
    return data[: source.randrange(len(data))] if data else None


def _grow(
    data: bytes, length_fields: tuple[LengthField, ...], source: random.Random
) -> bytes | None:
    """Inserts one to four random bytes, at the end or at a random position."""
    more = source.randbytes(source.randint(1, 4))
    at = len(data) if source.random() < 0.5 else source.randrange(len(data) + 1)
    return data[:at] + more + data[at:]


def _change_number(
    role: LengthUnit, data: bytes, length_fields: tuple[LengthField, ...], source: random.Random
) -> bytes | None:
    found = [length_field for length_field in length_fields if length_field.role is role]
    if not found:
        return None
    length_field = source.choice(found)
    remaining = len(data) - length_field.end
    candidates = (
        length_field.value + 1,
        length_field.value - 1,
        0,
        -1,
        -2,
        remaining,
        remaining + 1,
        0x7FFF,
        0x7FFFFFFF,
    )
    other = number_bytes(
        length_field, source.choice([value for value in candidates if value != length_field.value])
    )
    return data[: length_field.begin] + other + data[length_field.end :]


def _length(
    data: bytes, length_fields: tuple[LengthField, ...], source: random.Random
) -> bytes | None:
    """Changes a length: by one, to 0, to null, to a negative size, or up to or beyond the end."""
    return _change_number(LengthUnit.LENGTH, data, length_fields, source)


def _count(
    data: bytes, length_fields: tuple[LengthField, ...], source: random.Random
) -> bytes | None:
    """Changes a count of elements, in the same way as `_length` changes a length."""
    return _change_number(LengthUnit.COUNT, data, length_fields, source)


def _varint(
    data: bytes, length_fields: tuple[LengthField, ...], source: random.Random
) -> bytes | None:
    """Adds one to five bytes to the varint of a length or count, even beyond the allowed length."""
    found = [length_field for length_field in length_fields if length_field.width == 0]
    if not found:
        return None
    length_field = source.choice(found)
    last = bytes([data[length_field.end - 1] | 0x80])
    more = b"\x80" * source.choice((0, 0, 0, 1, 2, 3, 4)) + b"\0"
    return data[: length_field.end - 1] + last + more + data[length_field.end :]


def _tags(
    data: bytes, length_fields: tuple[LengthField, ...], source: random.Random
) -> bytes | None:
    """Returns `data` with one more tagged field; None if no struct in it can have tagged fields.

    The field is unknown, a duplicate, out of order, or has a wrong size.
    """
    found = [length_field for length_field in length_fields if length_field.role is LengthUnit.TAGS]
    if not found:
        return None
    length_field = source.choice(found)
    number = source.choice((50, 127, 128, 5000, 5000, 5000, 1 << 21, 0x7FFFFFFE, 0, 1, 2))
    content = source.randbytes(source.choice((0, 1, 4, 130)))
    size = len(content) + source.choice((0, 0, 0, 0, 0, 1, 100))
    field = uvarint(number) + uvarint(size) + content
    at = length_field.stop if source.random() < 0.8 else length_field.end
    section = data[length_field.end : at] + field + data[at : length_field.stop]
    head = number_bytes(length_field, length_field.value + 1)
    return data[: length_field.begin] + head + section + data[length_field.stop :]


_NAMED: Final[
    dict[str, Callable[[bytes, tuple[LengthField, ...], random.Random], bytes | None]]
] = {
    "flip": _flip,
    "cut": _cut,
    "grow": _grow,
    "length": _length,
    "count": _count,
    "varint": _varint,
    "tags": _tags,
}

#: The names of the changes that `mutate` makes.
MUTATIONS: Final = tuple(_NAMED)


def mutate(
    name: str, data: bytes, length_fields: tuple[LengthField, ...], source: random.Random
) -> bytes | None:
    """Returns `data` with the change called `name`, one of MUTATIONS.

    Returns None if `data` has no byte or no field that the change needs. `length_fields` are the
    length fields of `data`. Raises KeyError for an unknown name.
    """
    return _NAMED[name](data, length_fields, source)
