"""Encodes rows as records sections of batches, by column.

Splits rows into batches, and writes records of magic 2 (KIP-98): length, attributes, timestamp
delta, offset delta, key, value, headers. All records of a batch have the same timestamp. The client
adds the batch header, the checksum and the compression.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pyarrow as pa

from kproto.records.varints import encode_varint

from ..arrow_numpy import binary_scalar, bounds
from .fixed_columns import (
    FixedColumn,
    empty_column,
    empty_data,
    fixed_column,
    join_array,
    join_into,
    scatter_rows,
    width_of,
)
from .headers import HeaderColumn, binary_lengths, join_binary
from .pieces import Piece, join_pieces, number_piece
from .varints import VARINT_RANGES, varint_sizes, varints

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..record_columns import Int64s

__all__ = ["EncodedRows", "record_sections"]

#: The attributes of a record, always 0, and a timestamp delta of 0.
_HEAD: Final = b"\x00\x00"

#: The maximum number of bytes of a record before its key: its length, _HEAD, the offset delta.
_LARGEST_HEAD: Final = 12

#: A part of each record.
_Part: TypeAlias = Piece | FixedColumn | bytes


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
    parts, size = _parts_after_delta(keys, values, headers)
    sizes = np.full(rows, size) if isinstance(size, int) else size[order]
    starts = _batch_starts(sizes + _LARGEST_HEAD, batch_bytes, ends or [rows])
    deltas = np.arange(rows, dtype=np.int64)
    deltas -= np.repeat(deltas[starts], np.diff(np.append(starts, rows)))
    fixed = [part for part in parts if not isinstance(part, Piece)]
    if len(fixed) == len(parts):
        data, begins = _fixed_records(fixed, order, deltas)
    else:
        data, begins = _records(parts, sizes, order, deltas)
    for first, last in zip(starts, [*starts[1:], rows], strict=True):
        at, end = int(begins[first]), int(begins[last])
        yield EncodedRows(data[at:end].tobytes(), int(first), int(last - first))


def _parts_after_delta(
    keys: pa.Array, values: pa.Array, headers: HeaderColumn
) -> tuple[list[_Part], Int64s | int]:
    """Returns the parts of the records after their offset delta, and the size of these parts.

    The size is an integer if all records have the same.
    """
    lengths = binary_lengths(keys), binary_lengths(values)
    columns = (
        (lengths[0], *_content(keys, lengths[0])),
        (lengths[1], *_content(values, lengths[1])),
        (headers.counts, *_header_content(headers)),
    )
    parts: list[_Part] = []
    total: Int64s | int = 0
    for numbers, content, size in columns:
        number = number_piece(numbers)
        parts += [number, *content]
        total = total + size
        total = total + (len(number) if isinstance(number, bytes) else varint_sizes(numbers))
    return parts, total


def _content(column: pa.Array, lengths: Int64s) -> tuple[list[_Part], Int64s | int]:
    """Returns the bytes of a column as parts, and the length of each; -1 in `lengths` is null."""
    width = int(lengths[0])
    if (lengths != width).any():
        return [Piece(column, np.arange(len(column)))], np.maximum(lengths, 0)
    if width < 1:
        return [], 0
    return [fixed_column(column, width)], width


def _header_content(headers: HeaderColumn) -> tuple[list[_Part], Int64s | int]:
    """Returns the encoded headers as parts, and their length."""
    if headers.fixed is None:
        return _content(headers.data, binary_lengths(headers.data))
    return [*headers.fixed], width_of(headers.fixed)


def _records(
    parts: Sequence[_Part], sizes: Int64s, order: Int64s, deltas: Int64s
) -> tuple[memoryview, Int64s]:
    """Returns the records in the given order, and where each begins and the last one ends.

    `sizes` has the size of the parts, and `deltas` the offset deltas, both in the given order.
    """
    rows = len(order)
    sizes = sizes + varint_sizes(deltas) + len(_HEAD)
    heads = _heads(int(deltas.max()).bit_length())
    pieces: list[Piece | bytes] = [number_piece(sizes), Piece(heads, deltas)]
    fixed: list[FixedColumn | bytes] = []
    for part in parts:
        if isinstance(part, Piece):
            pieces += [*_joined(fixed, order), part.take(order)]
            fixed = []
        else:
            fixed.append(part)
    pieces += _joined(fixed, order)
    data = join_pieces(rows, pieces)
    return memoryview(data.buffers()[2]), bounds(data)


def _joined(fixed: Sequence[FixedColumn | bytes], order: Int64s) -> list[Piece | bytes]:
    """Joins consecutive parts to one piece of each record; returns none without parts."""
    shared = [part for part in fixed if isinstance(part, bytes)]
    if len(shared) < len(fixed):
        return [Piece(join_array(len(order), fixed), order)]
    return [b"".join(shared)] if shared else []


def _fixed_records(
    parts: Sequence[FixedColumn | bytes], order: Int64s, deltas: Int64s
) -> tuple[memoryview, Int64s]:
    """Returns the same as `_records`, for records whose parts have the same size."""
    size = width_of(parts)
    heads, widths = _right_aligned_heads(int(deltas.max()), size)
    begins = np.zeros(len(order) + 1, dtype=np.int64)
    np.cumsum(widths[deltas] + size, out=begins[1:])
    data = empty_data(int(begins[-1]))
    row_deltas = np.empty_like(deltas)
    row_deltas[order] = deltas
    row_begins = np.empty_like(deltas)
    row_begins[order] = begins[:-1]
    row_heads = heads.elements(len(widths))[row_deltas].view(np.uint8)
    head = FixedColumn(row_heads, 0, heads.width, heads.width)
    scatter_rows(data, row_begins, heads.width - widths[row_deltas], [head, *parts])
    return data.data, begins


def _right_aligned_heads(largest: int, size: int) -> tuple[FixedColumn, Int64s]:
    """Returns the bytes before the parts, for each offset delta up to `largest`, and their number.

    `size` is the size of the parts. The column has as many bytes for each delta as the largest
    delta needs; arbitrary bytes precede the others.
    """
    ranges = [(first, min(end, largest + 1)) for first, end in VARINT_RANGES if first <= largest]
    starts = [encode_varint(size + len(_HEAD) + width + 1) for width in range(len(ranges))]
    table = _heads(largest.bit_length())
    most = len(starts[-1]) + len(_HEAD) + len(ranges)
    heads = empty_column(largest + 1, most)
    widths = np.empty(largest + 1, dtype=np.int64)
    for start, (first, end), width in zip(starts, ranges, range(3, 8), strict=False):
        its = fixed_column(table.slice(first), width)
        widths[first:end] = len(start) + width
        rows = FixedColumn(heads.data, first * most, most, most)
        join_into(rows, end - first, [bytes(most - len(start) - width) + start, its])
    return heads, widths


@lru_cache(maxsize=4)
def _heads(bits: int) -> pa.Array:
    """Returns attributes, timestamp delta and offset delta, for offset deltas below 2**`bits`."""
    return join_binary(binary_scalar(_HEAD), varints(np.arange(1 << bits)))


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
