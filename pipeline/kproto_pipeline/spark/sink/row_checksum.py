"""Computes a checksum of rows that depends neither on their order nor on their Arrow batches.

Spark may replay the rows of a task in another order, for example after a shuffle, so the checksum
is the sum of the rows' CRC-32, modulo 2**64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from zlib import crc32

import numpy as np
import pyarrow as pa

from ...columns.arrow_numpy import lengths
from .micro_batch import WrittenRows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .sink_rows import SinkRows

__all__ = ["RowChecksum"]

_MASK: Final = (1 << 64) - 1


class RowChecksum:
    """Adds rows; `written` has their number and their checksum."""

    def __init__(self) -> None:
        self._rows = 0
        self._sum = 0

    @property
    def written(self) -> WrittenRows:
        """The rows so far."""
        return WrittenRows(self._rows, self._sum)

    def add(self, rows: SinkRows) -> None:
        """Adds rows: their topics, partitions, keys, values and headers."""
        checksums = _places(rows)
        for column in (rows.keys, rows.values, rows.headers.data):
            checksums = _with_column(checksums, column)
        self._rows += len(rows.topics)
        self._sum = (self._sum + sum(checksums)) & _MASK


def _places(rows: SinkRows) -> Iterable[int]:
    """Returns the checksum of each row's topic and partition."""
    names = [crc32(name.encode()) for name in rows.names]
    places = np.array(names, dtype=np.int64)[rows.topics] ^ (rows.partitions & 0xFFFFFFFF)
    found: list[int] = places.tolist()
    return found


def _with_column(checksums: Iterable[int], column: pa.Array) -> Iterable[int]:
    """Returns the checksums of rows with one more column; its lengths count, and nulls."""
    sizes = lengths(column, null=-1)
    # The length separates the bytes of a column from those of the next one.
    seeds = (np.fromiter(checksums, np.int64, len(column)) * 31 + sizes) & 0xFFFFFFFF
    _, offsets, buffer = column.buffers()
    if buffer is None or not buffer.size:
        found: list[int] = seeds.tolist()
        return found
    data = memoryview(buffer)
    bounds = np.frombuffer(offsets, dtype=np.int32)[column.offset :][: len(column) + 1].tolist()
    return [
        crc32(data[begin:end], seed)
        for begin, end, seed in zip(bounds, bounds[1:], seeds.tolist(), strict=False)
    ]
