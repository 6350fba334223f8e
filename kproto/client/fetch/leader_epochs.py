"""`EpochHistory`: the leader epoch of the record before an offset of a partition (KIP-320).

The fetch position is ahead of the processed offset, perhaps by records of another epoch. A commit
needs the epoch of the last processed record. A larger epoch would hide a truncation of the log; a
smaller one would report a truncation that did not happen. Does no I/O.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

from ..metadata.cluster import UNKNOWN_EPOCH

__all__ = ["EpochHistory"]

#: The most epoch changes in memory; only changes at records that are not processed matter.
_MAX_EPOCHS: Final = 1_000


class EpochHistory:
    """The offsets at which leader epochs begin, from the offset `start_offset` on.

    `epoch` is the epoch of the record before `start_offset`. The history has tuples, because a
    consumer may have thousands of partitions, most of them without a change or with one change.
    """

    __slots__ = ("_epochs", "_first", "_from", "_start_offsets")

    def __init__(self, start_offset: int, epoch: int) -> None:
        self._from = start_offset
        self._first = epoch
        self._start_offsets: tuple[int, ...] = ()
        self._epochs: tuple[int, ...] = ()

    @property
    def last(self) -> int:
        """The epoch of the last known record."""
        return self._epochs[-1] if self._epochs else self._first

    def add(self, changes: Iterable[tuple[int, int]]) -> None:
        """Adds leader epochs, in ascending order: pairs of start offset and epoch."""
        last = self.last
        added: list[tuple[int, int]] = []
        for start_offset, epoch in changes:
            if epoch != last:
                added.append((start_offset, epoch))
                last = epoch
        if not added:
            return
        self._start_offsets += tuple(start_offset for start_offset, _ in added)
        self._epochs += tuple(epoch for _, epoch in added)
        if len(self._start_offsets) > _MAX_EPOCHS:
            self._from = self._start_offsets[-_MAX_EPOCHS]
            self._first = UNKNOWN_EPOCH
            self._start_offsets = self._start_offsets[-_MAX_EPOCHS:]
            self._epochs = self._epochs[-_MAX_EPOCHS:]

    def rewind(self, offset: int) -> int:
        """Removes the epoch changes from `offset` on.

        Returns the leader epoch of the record before `offset`.
        """
        at = bisect_left(self._start_offsets, offset)
        self._start_offsets, self._epochs = self._start_offsets[:at], self._epochs[:at]
        return self.epoch_before(offset)

    def epoch_before(self, offset: int) -> int:
        """Returns the leader epoch of the record before `offset`; UNKNOWN_EPOCH if unknown."""
        at = bisect_left(self._start_offsets, offset)
        if at:
            return self._epochs[at - 1]
        return self._first if offset >= self._from else UNKNOWN_EPOCH
