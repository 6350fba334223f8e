"""Finds the `struct.Struct` that reads all structs of an array, if they are uniform.

Structs are uniform if the arrays in them have equal counts, so that all structs have the same size.
Supports only structs of numbers and arrays of numbers, in flexible versions.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

__all__ = ["UniformStructs"]

#: The maximum number of entries of the cache. The cache is bounded because a peer chooses the
#: counts.
_MAX_FOUND: Final = 64


class _CountedStruct(NamedTuple):
    """Describes the structs whose arrays have certain counts; `shape` is their `struct.Struct`.

    `shape` unpacks numbers as numbers, and each array as bytes.
    """

    shape: struct.Struct
    #: Offset and value of the bytes that must be equal in each struct: the encoded counts of its
    #: arrays, and 0 tagged fields.
    marks: tuple[tuple[int, bytes], ...]


def _fits(found: _CountedStruct, data: bytes, pos: int, count: int) -> bool:
    """Returns True if the `count` structs at `pos` have the form `found`.

    `found.marks` has the bytes that all these structs must have in common, each with its offset in
    the struct: array counts, and the end of the tagged fields.
    """
    shape, marks = found
    stop = pos + shape.size * count
    for at, byte in marks:  # noqa: SIM110 - a generator would take twice the time
        if data[pos + at : stop : shape.size] != byte * count:
            return False
    return True


class UniformStructs:
    """Finds the `struct.Struct` for uniform structs of a layout.

    `parts` are `struct` format characters of numbers, of an array, of numbers, and so on:
    `UniformStructs("hi", "i", "")` is an int16, an int32, an array of int32, and nothing after it.
    Each array begins with its count plus one, in one byte. Each struct ends with the number of its
    tagged fields, which must be 0.
    """

    __slots__ = ("_arrays", "_found", "_latest", "_parts", "_tail_size")

    def __init__(self, *parts: str) -> None:
        self._parts = parts
        sizes = [struct.calcsize(f">{part}") for part in parts]
        #: For each array: how many bytes precede its count, and the size of a number in bytes.
        self._arrays = [*zip(sizes[::2], sizes[1::2], strict=False)]
        self._tail_size = sizes[-1]
        #: The cache, by the encoded counts of the arrays.
        self._found: dict[bytes, _CountedStruct] = {}
        #: The latest entry, tried first because the next structs mostly have the same counts.
        self._latest = self._build(bytes([1]) * len(self._arrays))

    def of(self, data: bytes, pos: int, count: int) -> struct.Struct | None:
        """Returns the Struct that reads each of the `count` (1 or more) structs at `pos`.

        Returns None if the structs are not uniform, if a struct has tagged fields, or if the data
        ends inside a struct. Also returns None if an array is null, or if its count needs several
        bytes. Raises IndexError if the data ends even before the last array count of the first
        struct.
        """
        latest = self._latest
        if _fits(latest, data, pos, count):
            return latest.shape
        found = self._first(data, pos)
        if found is None or found is latest or not _fits(found, data, pos, count):
            return None
        self._latest = found
        return found.shape

    def _first(self, data: bytes, pos: int) -> _CountedStruct | None:
        """Returns the cache entry for the array counts of the struct at `pos`.

        Builds a missing entry. Returns None if an array is null, or if the count of an array has
        several bytes.
        """
        counts = bytearray()
        for front, size in self._arrays:
            pos += front
            count_byte = data[pos]
            if not 0 < count_byte < 128:
                return None
            counts.append(count_byte)
            pos += 1 + (count_byte - 1) * size
        key = bytes(counts)
        found = self._found.get(key)
        if found is None:
            found = self._build(key)
            if len(self._found) < _MAX_FOUND:
                self._found[key] = found
        return found

    def _build(self, counts: bytes) -> _CountedStruct:
        letters = ">"
        marks = []
        at = 0
        for numbers, (front, size), count_byte in zip(
            self._parts[::2], self._arrays, counts, strict=False
        ):
            letters += f"{numbers}x{(count_byte - 1) * size}s"
            at += front
            marks.append((at, bytes([count_byte])))
            at += 1 + (count_byte - 1) * size
        marks.append((at + self._tail_size, b"\0"))
        return _CountedStruct(struct.Struct(f"{letters}{self._parts[-1]}x"), tuple(marks))
