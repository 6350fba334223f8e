"""Encodes rows as records sections of batches, by column.

Splits rows into batches, and writes records of magic 2 (KIP-98): length, attributes, timestamp
delta, offset delta, key, value, headers. All records of a batch have the same timestamp. The client
adds the batch header, the checksum and the compression.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from ..arrow_numpy import binary_scalar, bounds
from .headers import binary_lengths, join_binary
from .pieces import Piece, join_pieces, number_piece
from .varints import varint_sizes, varints

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..record_columns import Int64s
from .headers import HeaderColumn

__all__ = ["EncodedRows", "record_sections"]

#: The attributes of a record, always 0, and a timestamp delta of 0.
_HEAD: Final = binary_scalar(b"\x00\x00")

#: The maximum size of an offset delta as a varint, in bytes.
_LARGEST_DELTA: Final = 5


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """The encoded records of one batch, the index of its first row, and its number of rows."""

    data: bytes
    first: int
    count: int


def record_sections(
    keys: pa.Array,
    values: pa.Array,
    headers: HeaderColumn,
    *,
    batch_bytes: int,
    order: Int64s | None = None,
    ends: Iterable[int] | None = None,
) -> Iterator[EncodedRows]:
    """Yields the rows, split into batches of up to `batch_bytes` uncompressed bytes.

    A larger row is alone in its batch. Offsets begin at 0 in each batch. `order` has the indexes of
    all rows in the order in which they are encoded; the default is their own order. `ends` has the
    end of each group of rows in this order, ascending; a batch has rows of one group only. By
    default all rows are one group. A call for many small groups takes much less time than a call
    for each group.
    """
    rows = len(keys)
    if not rows:
        return
    order = np.arange(rows) if order is None else order
    lengths = [binary_lengths(keys), binary_lengths(values), headers.counts]
    sizes = binary_lengths(headers.data) + 2
    for each in lengths:
        sizes += varint_sizes(each)
    for each in lengths[:2]:
        sizes += np.maximum(each, 0)
    sizes = sizes[order]
    starts = _batch_starts(sizes + (_LARGEST_DELTA + 5), batch_bytes, ends or [rows])
    deltas = np.arange(rows, dtype=np.int64)
    deltas -= np.repeat(deltas[starts], np.diff(np.append(starts, rows)))
    pieces = [number_piece(sizes + varint_sizes(deltas)), _heads(deltas)]
    for numbers, column in zip(lengths, (keys, values, headers.data), strict=True):
        of_numbers = number_piece(numbers)
        if not isinstance(of_numbers.indexes, int):
            of_numbers = of_numbers._replace(indexes=of_numbers.indexes[order])
        pieces.append(of_numbers)
        if column.null_count < rows and column.nbytes:
            pieces.append(Piece(column, order))
    data = join_pieces(rows, pieces)
    ends = bounds(data)
    view = memoryview(data.buffers()[2])
    for first, last in zip(starts, [*starts[1:], rows], strict=True):
        at, end = int(ends[first]), int(ends[last])
        yield EncodedRows(view[at:end].tobytes(), int(first), int(last - first))


def _heads(deltas: Int64s) -> Piece:
    """Returns the attributes, the timestamp delta and the offset delta of each record."""
    return Piece(_table_of_heads(int(deltas.max()).bit_length()), deltas)


@lru_cache(maxsize=4)
def _table_of_heads(bits: int) -> pa.Array:
    """Returns the heads of the records with offset deltas below 2**`bits`."""
    return join_binary(_HEAD, varints(np.arange(1 << bits)))


def _batch_starts(sizes: Int64s, batch_bytes: int, ends: Iterable[int]) -> list[int]:
    """Returns the index of the first row of each batch.

    `sizes` has the maximum encoded size of each row, in bytes. A batch has rows of at most
    `batch_bytes` bytes in total, or a single larger row. A batch ends at the latest at the next of
    the indexes `ends`, which are the ends of groups.
    """
    totals = np.cumsum(sizes)
    starts: list[int] = []
    first = 0
    for end in ends:
        while first < end:
            starts.append(first)
            before = int(totals[first - 1]) if first else 0
            following = int(np.searchsorted(totals, before + batch_bytes, side="right"))
            first = min(max(following, first + 1), end)
    return starts
