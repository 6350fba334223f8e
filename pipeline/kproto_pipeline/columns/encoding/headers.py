"""Encodes record headers: their count, and each key and value with its length."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kproto.records.varints import encode_varint

from ..arrow_numpy import binary_data, binary_scalar, bounds, empty_bytes, lengths, number_array
from .fixed_columns import FixedColumn, join_array
from .header_names import common_names, heads_of
from .pieces import Piece, group_binary, join_pieces, number_piece
from .varints import NULL_LENGTH

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ..record_columns import Int64s

__all__ = ["HeaderColumn", "binary_lengths", "check_keys", "headers_of_lists", "join_binary"]


class HeaderColumn:
    """The number of each record's headers, and their encoded bytes.

    `data` has the bytes as a binary array. `fixed` has the same bytes as columns if they have the
    same length in all records; otherwise `fixed` is None.
    """

    def __init__(
        self,
        counts: Int64s,
        data: pa.Array | None = None,
        *,
        fixed: Sequence[FixedColumn | bytes] | None = None,
    ) -> None:
        self.counts = counts
        self.fixed = fixed
        self._data = data

    @property
    def data(self) -> pa.Array:
        """The encoded headers of each record, as a binary array."""
        if self._data is None:
            assert self.fixed is not None, "a column has one of the two"
            self._data = join_array(len(self.counts), self.fixed)
        return self._data

    def take(self, rows: Int64s) -> HeaderColumn:
        """Returns the headers of the rows with the given indexes, in the order of the indexes."""
        return HeaderColumn(self.counts[rows], self.data.take(number_array(rows)))

    @staticmethod
    def none(rows: int) -> HeaderColumn:
        """Returns a column of `rows` records without headers."""
        return HeaderColumn(np.zeros(rows, dtype=np.int64), empty_bytes(rows), fixed=())


def headers_of_lists(lists: pa.Array) -> HeaderColumn:
    """Encodes a column of lists of (key, value); a null list counts as empty.

    Raises:
        ValueError: a key is null or not UTF-8; `args[1]` is the row.
    """
    counts, names = _checked_names(lists)
    entries = lists.flatten()
    values = entries.field("value")
    sizes = binary_lengths(values)
    every = np.arange(len(sizes))
    if names is not None:
        if (fixed := _fixed_headers(names, values, sizes)) is not None:
            return HeaderColumn(counts, fixed=fixed)
        heads = heads_of(names, sizes)
    else:
        keys = entries.field("key").cast(pa.binary())
        heads = [number_piece(binary_lengths(keys)), Piece(keys, every), number_piece(sizes)]
    data = join_pieces(len(sizes), [*heads, Piece(values, every)])
    ends = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=ends[1:])
    return HeaderColumn(counts, group_binary(data, ends))


def _fixed_headers(
    names: Sequence[bytes], values: pa.Array, sizes: Int64s
) -> list[FixedColumn | bytes] | None:
    """Returns the headers of all records as columns; None if the lengths of the values differ.

    All records have the headers `names`. `sizes` has the length of each value, -1 for null.
    """
    count = len(names)
    if (sizes[count:] != sizes[:-count]).any() or sizes[:count].min() < 0:
        return None
    widths = sizes[:count].tolist()
    data, begin, step = binary_data(values), int(bounds(values)[0]), sum(widths)
    parts: list[FixedColumn | bytes] = []
    for name, width in zip(names, widths, strict=True):
        parts.append(encode_varint(len(name)) + name + encode_varint(width))
        if width:
            parts.append(FixedColumn(data, begin, step, width))
        begin += width
    return parts


def check_keys(lists: pa.Array) -> Int64s:
    """Checks the keys of the headers; returns the number of headers of each list.

    Raises ValueError as `headers_of_lists` does.
    """
    return _checked_names(lists)[0]


def _checked_names(lists: pa.Array) -> tuple[Int64s, tuple[bytes, ...] | None]:
    """Returns the number of headers of each list, and the names that all lists share, if they do.

    Raises ValueError as `headers_of_lists` does.
    """
    filled = pc.fill_null(pc.list_value_length(lists), 0)
    counts: Int64s = filled.to_numpy(zero_copy_only=False).astype(np.int64)
    entries = lists.flatten()
    keys = entries.field("key")
    if entries.null_count or keys.null_count:
        there = entries.is_valid().to_numpy(zero_copy_only=False)
        there = there & keys.is_valid().to_numpy(zero_copy_only=False)
        raise ValueError("the key of a header is null", _row_of(counts, ~there))
    names = common_names(counts, keys)
    if names is not None:
        keys = keys.slice(0, len(names))
    try:
        keys.validate(full=True)
    except pa.ArrowInvalid:
        wrong = np.array([not _is_text(key.as_buffer()) for key in keys])
        raise ValueError("the key of a header is no UTF-8", _row_of(counts, wrong)) from None
    return counts, names


def _row_of(counts: Int64s, entries: npt.NDArray[np.bool_]) -> int:
    """Returns the index of the row that contains the first header in the mask `entries`.

    `counts` has the number of headers of each row.
    """
    entry = int(np.flatnonzero(entries)[0])
    return int(np.searchsorted(np.cumsum(counts), entry, side="right"))


def _is_text(data: pa.Buffer) -> bool:
    try:
        data.to_pybytes().decode()
    except UnicodeDecodeError:
        return False
    return True


def binary_lengths(array: pa.Array) -> Int64s:
    """Returns the length in bytes of each string or byte string; -1 for null."""
    return lengths(array, null=NULL_LENGTH)


def join_binary(*columns: pa.Array | pa.Scalar) -> pa.Array:
    """Concatenates the byte strings of several columns, row by row; a null counts as empty."""
    return pc.binary_join_element_wise(
        *columns, binary_scalar(b""), null_handling="replace", null_replacement=""
    )
