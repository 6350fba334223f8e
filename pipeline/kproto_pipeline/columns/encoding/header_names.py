"""Finds the header names that all records share, and encodes them.

Records of one kind mostly have the same names in the same order, as CloudEvents in binary mode do.
The encoded names are then entries of a small table, together with the lengths of short values.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from ..arrow_numpy import bounds
from .pieces import Piece, number_piece
from .varints import varints

if TYPE_CHECKING:
    from ..record_columns import Int64s

__all__ = ["common_names", "heads_of"]

#: With fewer records, a table for their names takes more time than it saves.
_LEAST_RECORDS: Final = 64

#: The most entries of a table of names and lengths.
_MOST_ENTRIES: Final = 1 << 13


def common_names(counts: Int64s, keys: pa.Array) -> tuple[bytes, ...] | None:
    """Returns the names of the headers, if every record has the same names in the same order.

    `counts` has the number of headers of each record; `keys` has the names of all headers. Returns
    None for few records, too.
    """
    if len(counts) < _LEAST_RECORDS:
        return None
    count = int(counts[0])
    if not count or (counts != count).any():
        return None
    ends = bounds(keys)
    sizes = np.diff(ends)
    if (sizes[count:] != sizes[:-count]).any():
        return None
    begin, width = int(ends[0]), int(ends[count] - ends[0])
    repeated = int(ends[-1]) - begin - width
    data = keys.buffers()[2]
    if repeated and not data.slice(begin, repeated).equals(data.slice(begin + width, repeated)):
        return None
    names = memoryview(data or b"")[begin : begin + width].tobytes()
    stops = np.cumsum(sizes[:count]).tolist()
    return tuple(names[at:end] for at, end in zip([0, *stops], stops, strict=False))


def heads_of(names: tuple[bytes, ...], sizes: Int64s) -> list[Piece | bytes]:
    """Returns the encoded name of each header, followed by the encoded length of its value.

    `sizes` has the length of each value, -1 for null; the names repeat.
    """
    count = len(names)
    bits = (int(sizes.max()) + 1).bit_length()
    numbers = np.arange(count)
    if count << bits <= min(_MOST_ENTRIES, len(sizes)):
        indexes = sizes.reshape(-1, count) + ((numbers << bits) + 1)
        return [Piece(_table_of_heads(names, bits), indexes.reshape(-1))]
    table = pa.array(_encoded(names), pa.binary())
    return [Piece(table, np.tile(numbers, len(sizes) // count)), number_piece(sizes)]


@lru_cache(maxsize=16)
def _table_of_heads(names: tuple[bytes, ...], bits: int) -> pa.Array:
    """Returns 2**`bits` entries for each name: the name and a length, from -1 on."""
    ends = varints(np.arange(-1, (1 << bits) - 1)).to_pylist()
    return pa.array([start + end for start in _encoded(names) for end in ends], pa.binary())


def _encoded(names: tuple[bytes, ...]) -> list[bytes]:
    sizes = varints(np.array([len(name) for name in names])).to_pylist()
    return [size + name for size, name in zip(sizes, names, strict=True)]
