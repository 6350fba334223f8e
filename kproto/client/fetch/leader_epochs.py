"""`EpochHistory`: the leader epoch of the record before an offset of a partition (KIP-320).

The fetch position is ahead of the processed offset, perhaps by records of another epoch. A commit
has the epoch of the last processed record: a larger one would hide that the log was truncated, a
smaller one would report a truncation that did not happen. Plain data.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

from ..metadata.cluster import UNKNOWN_EPOCH

__all__ = ["EpochHistory"]

#: The most changes that are kept: only those of records that are not processed matter.
_MOST: Final = 1_000


class EpochHistory:
    """The offsets at which epochs begin, from `begins` on; `epoch` is of the record before it."""

    __slots__ = ("_begins", "_epochs", "_first", "_from")

    def __init__(self, begins: int, epoch: int) -> None:
        self._from = begins
        self._first = epoch
        self._begins: list[int] = []
        self._epochs: list[int] = []

    @property
    def last(self) -> int:
        """The epoch of the last known record."""
        return self._epochs[-1] if self._epochs else self._first

    def add(self, changes: Iterable[tuple[int, int]]) -> None:
        """Adds offsets at which another epoch begins, in order."""
        for begins, epoch in changes:
            if epoch != self.last:
                self._begins.append(begins)
                self._epochs.append(epoch)
        if len(self._begins) > _MOST:
            self._from = self._begins[-_MOST]
            self._first = UNKNOWN_EPOCH
            del self._begins[:-_MOST], self._epochs[:-_MOST]

    def before(self, offset: int) -> int:
        """Returns the epoch of the record before `offset`; UNKNOWN_EPOCH if it is not known."""
        at = bisect_left(self._begins, offset)
        if at:
            return self._epochs[at - 1]
        return self._first if offset >= self._from else UNKNOWN_EPOCH
