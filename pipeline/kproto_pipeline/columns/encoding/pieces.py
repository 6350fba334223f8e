"""Joins pieces of several columns to byte strings, row by row, by one call of Arrow's `take`.

All columns are concatenated once. `take` then copies the pieces of the first row, those of the
second row, and so on. This takes less time than `binary_join_element_wise`, and the rows may have
another order than the columns.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kproto.records.varints import encode_varint

from ..arrow_numpy import bounds, number_array
from .varints import varints

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ..record_columns import Int64s

__all__ = ["Piece", "group_binary", "join_pieces", "number_piece"]

#: The numbers from -1 to the one before this one have a shared table of their varints.
_SHORT: Final = 1 << 14


class Piece(NamedTuple):
    """A piece of each row: the binary array `entries`, and the index of each row's entry.

    A null entry counts as empty.
    """

    entries: pa.Array
    indexes: npt.NDArray[np.signedinteger]

    def take(self, order: Int64s) -> Piece:
        """Returns the pieces of the rows with the indexes `order`."""
        return Piece(self.entries, self.indexes[order])


def join_pieces(rows: int, pieces: Sequence[Piece | bytes]) -> pa.Array:
    """Returns a binary array of `rows` byte strings: the pieces of each row, joined.

    A piece of type bytes is the same in all rows.
    """
    begins: dict[int, int] = {}
    tables: list[pa.Array] = []
    size = 0
    chosen = np.empty((rows, len(pieces)), dtype=np.int32)
    for number, piece in enumerate(pieces):
        entries, indexes = (_single(piece), 0) if isinstance(piece, bytes) else piece
        begin = begins.get(id(entries))
        if begin is None:
            begin = begins[id(entries)] = size
            tables.append(entries)
            size += len(entries)
        np.add(indexes, begin, out=chosen[:, number], casting="same_kind")
    joined = pc.take(pa.concat_arrays(tables), number_array(chosen.reshape(-1)), boundscheck=False)
    return group_binary(joined, np.arange(rows + 1) * len(pieces))


def group_binary(pieces: pa.Array, ends: Int64s) -> pa.Array:
    """Joins consecutive byte strings into groups.

    `ends` has a 0, then for each group the index after its last byte string.
    """
    offsets = np.ascontiguousarray(bounds(pieces)[ends], dtype=np.int32)
    data = pieces.buffers()[2] or pa.py_buffer(b"")
    return pa.Array.from_buffers(pa.binary(), len(ends) - 1, [None, pa.py_buffer(offsets), data])


def number_piece(numbers: Int64s) -> Piece | bytes:
    """Returns the varint of each number, from -1 to 2**31 - 1, as a piece of its row."""
    smallest, largest = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    if smallest == largest:
        return encode_varint(smallest)
    if largest < _SHORT:
        table = _short_varints().slice(smallest + 1, largest - smallest + 1)
        return Piece(table, numbers - smallest)
    return Piece(varints(numbers), np.arange(len(numbers)))


@lru_cache(maxsize=1)
def _short_varints() -> pa.Array:
    return varints(np.arange(-1, _SHORT))


def _single(data: bytes) -> pa.Array:
    """Returns an array with one byte string."""
    offsets = np.array([0, len(data)], dtype=np.int32)
    return pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
