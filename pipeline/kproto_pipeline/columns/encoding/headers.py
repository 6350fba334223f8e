"""The headers of records as the bytes that stand in them: how many, and each with its lengths."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..plain_arrays import empty_bytes, lengths, numbers, scalar_of
from .varints import NULL_LENGTH, varints

if TYPE_CHECKING:
    from ..record_columns import Int64s

__all__ = ["HeaderColumn", "headers_of_lists", "joined", "lengths_of"]


class HeaderColumn(NamedTuple):
    """For each record how many headers it has, and their bytes (a binary array)."""

    counts: Int64s
    data: pa.Array

    def take(self, rows: Int64s) -> HeaderColumn:
        """The headers of these rows, in this order."""
        return HeaderColumn(self.counts[rows], self.data.take(numbers(rows)))

    @staticmethod
    def none(rows: int) -> HeaderColumn:
        """No headers at all."""
        return HeaderColumn(np.zeros(rows, dtype=np.int64), empty_bytes(rows))


def headers_of_lists(lists: pa.Array) -> HeaderColumn:
    """The headers in a column of lists of (key, value); a null list is an empty one.

    Raises:
        ValueError: a key is null; its `args[1]` is the row.
    """
    counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    counts = counts.astype(np.int64)
    entries = lists.flatten()
    keys, values = entries.field("key"), entries.field("value")
    if entries.null_count or keys.null_count:
        missing = pc.fill_null(entries.is_valid(), False) if entries.null_count else keys.is_valid()
        missing = pc.invert(pc.and_(missing, keys.is_valid())).to_numpy(zero_copy_only=False)
        entry = int(np.flatnonzero(missing)[0])
        row = int(np.searchsorted(np.cumsum(counts), entry, side="right"))
        raise ValueError("the key of a header is null", row)
    data = joined(
        varints(lengths_of(keys)), keys.cast(pa.binary()), varints(lengths_of(values)), values
    )
    ends = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=ends[1:])
    return HeaderColumn(counts, regrouped(data, ends))


def regrouped(pieces: pa.Array, ends: Int64s) -> pa.Array:
    """Byte strings that lie one behind the other, joined in groups: up to `ends[1]`, `ends[2]` …"""
    buffers = pieces.buffers()
    bounds = np.frombuffer(buffers[1], dtype=np.int32)[pieces.offset :][: len(pieces) + 1]
    if not len(pieces):
        bounds = np.zeros(1, dtype=np.int32)
    offsets = np.ascontiguousarray(bounds[ends], dtype=np.int32)
    return pa.Array.from_buffers(
        pa.binary(), len(ends) - 1, [None, pa.py_buffer(offsets), buffers[2] or pa.py_buffer(b"")]
    )


def lengths_of(array: pa.Array) -> Int64s:
    """The length in bytes of each byte string or text; -1 where it is null."""
    return lengths(array, null=NULL_LENGTH)


def joined(*columns: pa.Array | pa.Scalar) -> pa.Array:
    """The byte strings of several columns, row by row one behind the other; null is empty."""
    return pc.binary_join_element_wise(
        *columns, scalar_of(b""), null_handling="replace", null_replacement=""
    )
