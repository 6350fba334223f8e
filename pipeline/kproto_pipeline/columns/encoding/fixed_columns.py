"""Joins columns whose byte strings all have the same length, by strided copies of numpy.

The rows that such columns form have the same length, too, so each column is one copy for all rows.
This takes less time than a `take`, and reads the columns from their beginning to their end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from ..arrow_numpy import binary_data, bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ..record_columns import Int64s

__all__ = [
    "FixedColumn",
    "empty_column",
    "empty_data",
    "fixed_column",
    "join_array",
    "join_into",
    "scatter_rows",
    "width_of",
]

#: Rows are joined in parts of about this size, in bytes, which stay in the processor's cache.
_PART_BYTES: Final = 512 << 10


class FixedColumn(NamedTuple):
    """A byte string of `width` bytes for each row.

    The byte string of row n begins in `data` at `begin` + n * `step`. All numbers are in bytes, and
    `width` is at least 1.
    """

    data: npt.NDArray[np.uint8]
    begin: int
    step: int
    width: int

    def elements(self, rows: int) -> npt.NDArray[Any]:
        """Returns the byte strings of the first `rows` rows, one array element each."""
        return np.ndarray(rows, f"V{self.width}", self.data, self.begin, (self.step,))

    def part(self, begin: int, width: int) -> FixedColumn:
        """Returns the part of each byte string that begins at `begin` and has `width` bytes."""
        return FixedColumn(self.data, self.begin + begin, self.step, width)


def empty_column(rows: int, width: int) -> FixedColumn:
    """Returns a column of `rows` byte strings with arbitrary bytes."""
    return FixedColumn(empty_data(rows * width), 0, width, width)


def empty_data(size: int) -> npt.NDArray[np.uint8]:
    """Returns `size` arbitrary bytes, at least 1."""
    return np.frombuffer(pa.allocate_buffer(size), dtype=np.uint8)


def fixed_column(array: pa.Array, width: int) -> FixedColumn:
    """Returns a binary array, whose byte strings all have `width` bytes, without a copy."""
    return FixedColumn(binary_data(array), int(bounds(array)[0]), width, width)


def width_of(parts: Sequence[FixedColumn | bytes]) -> int:
    """Returns the length of a row of these parts, in bytes."""
    return sum(len(part) if isinstance(part, bytes) else part.width for part in parts)


def join_into(joined: FixedColumn, rows: int, parts: Sequence[FixedColumn | bytes]) -> None:
    """Writes the parts of each of the first `rows` rows, joined, to the column `joined`.

    A part of type bytes is the same in all rows.
    """
    for target, source in _copies(joined, rows, rows, parts):
        target[:] = source


def join_array(rows: int, parts: Sequence[FixedColumn | bytes]) -> pa.Array:
    """Returns a binary array of `rows` byte strings: the parts of each row, joined."""
    joined = empty_column(rows, width_of(parts))
    join_into(joined, rows, parts)
    offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(joined.width)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(joined.data)]
    return pa.Array.from_buffers(pa.binary(), rows, buffers)


def scatter_rows(
    data: npt.NDArray[np.uint8],
    begins: Int64s,
    skipped: Int64s,
    parts: Sequence[FixedColumn | bytes],
) -> None:
    """Joins the parts of each row, and writes them to `data` at the row's index in `begins`.

    Leaves out the first bytes of each row; `skipped` has their number.
    """
    width = width_of(parts)
    step = min(len(begins), max(1, _PART_BYTES // width))
    joined = empty_column(step, width)
    copies = _copies(joined, step, len(begins), parts)
    for first in range(0, len(begins), step):
        end = min(first + step, len(begins))
        for target, source in copies:
            target[: end - first] = source[first:end]
        places = begins[first:end]
        for skip in range(int(skipped[first:end].min()), int(skipped[first:end].max()) + 1):
            elements = joined.part(skip, width - skip).elements(end - first)
            rows = skipped[first:end] == skip
            if rows.all():
                _scatter(data, places, elements)
            elif rows.any():
                _scatter(data, places[rows], elements[rows])


def _scatter(data: npt.NDArray[np.uint8], begins: Int64s, elements: npt.NDArray[Any]) -> None:
    """Writes each of the `elements` to `data` at its index in `begins`."""
    kind = elements.dtype
    np.ndarray(len(data) - kind.itemsize + 1, kind, data, 0, (1,))[begins] = elements


def _copies(
    joined: FixedColumn, target_rows: int, rows: int, parts: Sequence[FixedColumn | bytes]
) -> list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    """Returns the targets and sources of the copies that join the parts, in the order of copying.

    The first copy writes the bytes that all rows share.
    """
    row = b"".join(part if isinstance(part, bytes) else bytes(part.width) for part in parts)
    shared = FixedColumn(np.frombuffer(row, np.uint8), 0, 0, len(row))
    copies = [(joined.elements(target_rows), shared.elements(rows))]
    at = 0
    for part in parts:
        if isinstance(part, bytes):
            at += len(part)
        else:
            copies.append((joined.part(at, part.width).elements(target_rows), part.elements(rows)))
            at += part.width
    return copies
