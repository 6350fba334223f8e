"""Reads arrays of uniform structs: all have the same size, because their arrays have equal counts.

One `struct.Struct` reads them all; their own arrays of numbers stay bytes. Flexible layouts only.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

__all__ = ["UniformStructs"]

#: Bounds the cache of Structs by array counts, because a peer chooses the counts.
_MAX_FOUND: Final = 64


class _Found(NamedTuple):
    """Caches how structs with these array counts are read."""

    shape: struct.Struct
    #: Offset and value of each byte that every struct must have: the counts, and 0 tagged fields.
    marks: tuple[tuple[int, bytes], ...]


def _fits(found: _Found, data: bytes, pos: int, count: int) -> bool:
    """Returns whether `count` such structs stand at `pos`, none of them cut off."""
    shape, marks = found
    stop = pos + shape.size * count
    for at, byte in marks:  # noqa: SIM110 - a generator would cost as much again
        if data[pos + at : stop : shape.size] != byte * count:
            return False
    return True


class UniformStructs:
    """Finds the `struct.Struct` for uniform structs of one layout.

    The layout alternates format letters of numbers and the letter of an array:
    `UniformStructs("hi", "i", "")` is an int16, an int32, an array of int32, and nothing behind it.
    it. Each array begins with its count plus one in one byte, and each struct ends with one byte,
    the count of its tagged fields, which must be 0.
    """

    __slots__ = ("_arrays", "_found", "_latest", "_parts", "_tail_size")

    def __init__(self, *parts: str) -> None:
        self._parts = parts
        sizes = [struct.calcsize(f">{part}") for part in parts]
        #: For each array: the bytes before its count, and the size of one number.
        self._arrays = [*zip(sizes[::2], sizes[1::2], strict=False)]
        self._tail_size = sizes[-1]
        #: Keyed by the bytes of the counts.
        self._found: dict[bytes, _Found] = {}
        #: The entry that was used last: mostly the next structs have the same counts.
        self._latest = self._build(bytes([1]) * len(self._arrays))

    def of(self, data: bytes, pos: int, count: int) -> struct.Struct | None:
        """Returns the Struct that reads each of the `count` structs at `pos`; `count` is above 0.

        Returns None if counts differ or need more than one byte, if an array is null, if a struct
        has tagged fields, or if bytes are missing. Raises IndexError if the first struct is cut.
        """
        latest = self._latest
        if _fits(latest, data, pos, count):
            return latest.shape
        found = self._first(data, pos)
        if found is None or found is latest or not _fits(found, data, pos, count):
            return None
        self._latest = found
        return found.shape

    def _first(self, data: bytes, pos: int) -> _Found | None:
        """Returns how the struct at `pos` is read; None if it cannot be uniform."""
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

    def _build(self, counts: bytes) -> _Found:
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
        return _Found(struct.Struct(f"{letters}{self._parts[-1]}x"), tuple(marks))
