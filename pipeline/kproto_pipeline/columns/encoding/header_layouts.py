"""Encodes the headers of records that mostly have the same names and the same lengths.

Such records have few layouts: the sequence of the lengths of their values. All records of a layout
are encoded together, as the rows of a two-dimensional array of bytes: the names and lengths are the
same in every row, and each value is a range of columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from numpy.lib.stride_tricks import sliding_window_view

from ..arrow_numpy import binary_data, bounds, lengths, number_array
from .varints import binary_of, varints

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ..record_columns import Int64s

__all__ = ["common_names", "headers_by_layout", "heads_of"]

#: With fewer records per layout, `binary_join_element_wise` is faster.
_LEAST_RECORDS: Final = 64

#: Odd numbers of 64 bits, by which the lengths of a record are multiplied to tell layouts apart.
#: Powers of one odd number; `numpy.random` would take time at the start of each worker.
_MULTIPLIERS: Final = np.cumprod(np.full(256, 0x1E3779B97F4A7C15, dtype=np.int64))


def headers_by_layout(names: Sequence[bytes], values: pa.Array) -> pa.Array | None:
    """Returns the encoded headers of each record; None if the records have too many layouts.

    Every record has headers with these `names`; `values` has the values of all headers, no nulls.
    """
    count = len(names)
    records = len(values) // count
    sizes = lengths(values, null=0).reshape(records, count)
    data, offsets = binary_data(values), bounds(values)
    if (sizes == sizes[0]).all():
        width = int(sizes[0].sum())
        first = int(offsets[0])
        rows = data[first : first + records * width].reshape(records, width)
        return _binary_rows(_encoded(names, sizes[0], rows))
    found = _layouts(sizes)
    if found is None:
        return None
    examples, layout_of = found
    order = np.argsort(layout_of, kind="stable")
    ends = np.cumsum(np.bincount(layout_of, minlength=len(examples)))
    begins = offsets[:-1:count]
    parts = []
    for first, last, its in zip([0, *ends[:-1]], ends, sizes[examples], strict=True):
        width = int(its.sum())
        rows = sliding_window_view(data, width)[begins[order[first:last]]]
        parts.append(_binary_rows(_encoded(names, its, rows)))
    place = np.empty(records, dtype=np.int64)
    place[order] = np.arange(records)
    return pa.concat_arrays(parts).take(number_array(place))


def common_names(counts: Int64s, keys: pa.Array) -> list[bytes] | None:
    """Returns the names of the headers, if every record has the same names in the same order.

    `counts` has the number of headers of each record; `keys` has the names of all headers. Returns
    None for few records, too.
    """
    records = len(counts)
    if records < _LEAST_RECORDS:
        return None
    count = int(counts[0])
    if not 0 < count <= len(_MULTIPLIERS) or (counts != count).any():
        return None
    sizes = lengths(keys, null=0).reshape(records, count)
    if (sizes != sizes[0]).any():
        return None
    begin = int(bounds(keys)[0])
    width = int(sizes[0].sum())
    rows = binary_data(keys)[begin : begin + records * width].reshape(records, width)
    if (rows != rows[0]).any():
        return None
    first = rows[0].tobytes()
    stops = np.cumsum(sizes[0]).tolist()
    return [first[at:end] for at, end in zip([0, *stops], stops, strict=False)]


def _layouts(sizes: npt.NDArray[np.int64]) -> tuple[Int64s, Int64s] | None:
    """Returns a record of each layout, and the number of each record's layout.

    Returns None if there are too many layouts.
    """
    records, count = sizes.shape
    sums = sizes @ _MULTIPLIERS[:count]
    _, examples, layout_of = np.unique(sums, return_index=True, return_inverse=True)
    if len(examples) * _LEAST_RECORDS > records or (sizes != sizes[examples][layout_of]).any():
        return None
    return examples, layout_of


def heads_of(names: Sequence[bytes], sizes: Int64s) -> pa.Array | None:
    """Returns the encoded name of each header, with the encoded length of its value.

    `sizes` has the length of each value, and the names repeat. Returns None if the lengths differ
    so much that a table of all heads would not pay.
    """
    limit = int(sizes.max(initial=0)) + 1
    if limit * len(names) > len(sizes) // 4:
        return None
    ends = varints(np.arange(limit)).to_pylist()
    starts = [size + name for size, name in zip(_varints_of(names), names, strict=True)]
    table = pa.array([start + end for start in starts for end in ends], pa.binary())
    numbers = np.resize(np.arange(len(names)) * limit, len(sizes)) + sizes
    return table.take(number_array(numbers))


def _varints_of(names: Sequence[bytes]) -> list[bytes]:
    found: list[bytes] = varints(np.array([len(name) for name in names])).to_pylist()
    return found


def _encoded(
    names: Sequence[bytes], sizes: Int64s, values: npt.NDArray[np.uint8]
) -> npt.NDArray[np.uint8]:
    """Returns the encoded headers of each row; `values` has the values of a row without gaps."""
    template = bytearray()
    places = []
    value_sizes = varints(sizes).to_pylist()
    for name_size, name, value_size, size in zip(
        _varints_of(names), names, value_sizes, sizes.tolist(), strict=True
    ):
        template += name_size + name + value_size
        places.append(len(template))
        template += bytes(size)
    rows = np.empty((len(values), len(template)), dtype=np.uint8)
    rows[:] = np.frombuffer(template, dtype=np.uint8)
    begin = 0
    for place, size in zip(places, sizes.tolist(), strict=True):
        rows[:, place : place + size] = values[:, begin : begin + size]
        begin += size
    return rows


def _binary_rows(rows: npt.NDArray[np.uint8]) -> pa.Array:
    return binary_of(rows.reshape(-1), np.full(len(rows), rows.shape[1], dtype=np.int64))
