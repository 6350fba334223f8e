"""Arrays of structs that are alike: of one size, since their own arrays have as many numbers each.

One Struct reads them all; the arrays come as their bytes. Only flexible layouts are read so.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

__all__ = ["AlikeStructs"]

#: Of so many sets of counts it is remembered what structs are; they come from outside.
_MAX_FOUND: Final = 64


class _Found(NamedTuple):
    """What structs with some counts are."""

    shape: struct.Struct
    #: Where in a struct each byte stands that all have in common, and that byte: each count, and
    #: none of tagged fields.
    marks: tuple[tuple[int, bytes], ...]


def _fits(found: _Found, data: bytes, pos: int, count: int) -> bool:
    """Whether each of `count` structs from `pos` on is such a one, all there."""
    shape, marks = found
    stop = pos + shape.size * count
    for at, byte in marks:  # noqa: SIM110 - a generator would cost as much again
        if data[pos + at : stop : shape.size] != byte * count:
            return False
    return True


class AlikeStructs:
    """One layout: the format letters of numbers, then the letter of an array, by turns.

    `AlikeStructs("hi", "i", "")` is an int16, an int32 and an array of int32, and no number behind
    it. Each array begins with its count plus one in a byte, and each struct ends with a byte for
    its tagged fields, of which it has none.
    """

    __slots__ = ("_arrays", "_behind", "_found", "_latest", "_parts")

    def __init__(self, *parts: str) -> None:
        self._parts = parts
        sizes = [struct.calcsize(f">{part}") for part in parts]
        #: Of each array: the bytes in front of its count, and the size of its numbers.
        self._arrays = [*zip(sizes[::2], sizes[1::2], strict=False)]
        self._behind = sizes[-1]
        #: By the bytes of the counts.
        self._found: dict[bytes, _Found] = {}
        #: Of the structs that were read last: mostly the next are the same.
        self._latest = self._made(bytes([1]) * len(self._arrays))

    def of(self, data: bytes, pos: int, count: int) -> struct.Struct | None:
        """The Struct of each of `count` structs from `pos` on, at least one, if they are alike.

        None where counts differ or take more than a byte, where an array is null, where tagged
        fields follow, and where bytes are missing. Raises IndexError where those of the first do.
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
        """What the struct at `pos` is; None for one that cannot be alike to any."""
        counts = bytearray()
        for front, size in self._arrays:
            pos += front
            held = data[pos]
            if not 0 < held < 128:
                return None
            counts.append(held)
            pos += 1 + (held - 1) * size
        key = bytes(counts)
        found = self._found.get(key)
        if found is None:
            found = self._made(key)
            if len(self._found) < _MAX_FOUND:
                self._found[key] = found
        return found

    def _made(self, counts: bytes) -> _Found:
        letters = ">"
        marks = []
        at = 0
        for numbers, (front, size), held in zip(
            self._parts[::2], self._arrays, counts, strict=False
        ):
            letters += f"{numbers}x{(held - 1) * size}s"
            at += front
            marks.append((at, bytes([held])))
            at += 1 + (held - 1) * size
        marks.append((at + self._behind, b"\0"))
        return _Found(struct.Struct(f"{letters}{self._parts[-1]}x"), tuple(marks))
