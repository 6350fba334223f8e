"""Computes a checksum of rows that depends neither on their order nor on their Arrow batches.

Spark may replay the rows of a task in another order, for example after a shuffle, so the checksum
is the sum of the rows' CRC-32, modulo 2**64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from zlib import crc32

import numpy as np

from ...columns.arrow_numpy import bounds, lengths
from ...columns.encoding import join_binary
from .micro_batch import WrittenRows

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

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
        joined = join_binary(*(columns := (rows.keys, rows.values, rows.headers.data)))
        data = memoryview(joined.buffers()[2] or b"")
        ends = bounds(joined).tolist()
        self._rows += len(rows.topics)
        self._sum += sum(
            crc32(data[begin:end], seed)
            for begin, end, seed in zip(ends, ends[1:], _seeds(rows, columns), strict=False)
        )
        self._sum &= _MASK


def _seeds(rows: SinkRows, columns: Iterable[pa.Array]) -> list[int]:
    """Returns the first value of each row's CRC: from its topic, its partition and the lengths.

    The lengths separate the bytes of one column from those of the next, and tell null from empty.
    """
    names = [crc32(name.encode()) for name in rows.names]
    seeds = np.array(names, dtype=np.int64)[rows.topics] ^ (rows.partitions & 0xFFFFFFFF)
    for column in columns:
        seeds = (seeds * 31 + lengths(column, null=-1)) & 0xFFFFFFFF
    found: list[int] = seeds.tolist()
    return found
