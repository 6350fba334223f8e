"""Which leader epoch the record before an offset has, of one partition that is read (KIP-320).

A fetch runs ahead of what is handed out and done, by records of perhaps another epoch. A commit
says the epoch of the last record that is done: a larger one would hide that the log lost records,
a smaller one would tell of losses that are none. Plain data.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

from ..metadata.cluster import UNKNOWN_EPOCH

__all__ = ["EpochHistory"]

#: Changes of the leader that are remembered: those of what is fetched and not done matter.
_MOST: Final = 1_000


class EpochHistory:
    """Where epochs begin, from `begins` on; before that `epoch`, of the record before `begins`."""

    __slots__ = ("_begins", "_epochs", "_first", "_from")

    def __init__(self, begins: int, epoch: int) -> None:
        self._from = begins
        self._first = epoch
        self._begins: list[int] = []
        self._epochs: list[int] = []

    @property
    def last(self) -> int:
        """The epoch of the last record that is known."""
        return self._epochs[-1] if self._epochs else self._first

    def add(self, changes: Iterable[tuple[int, int]]) -> None:
        """Take note of offsets from which on records have another epoch, in order."""
        for begins, epoch in changes:
            if epoch != self.last:
                self._begins.append(begins)
                self._epochs.append(epoch)
        if len(self._begins) > _MOST:
            self._from = self._begins[-_MOST]
            self._first = UNKNOWN_EPOCH
            del self._begins[:-_MOST], self._epochs[:-_MOST]

    def before(self, offset: int) -> int:
        """The epoch of the record before `offset`; UNKNOWN_EPOCH where that is not known."""
        at = bisect_left(self._begins, offset)
        if at:
            return self._epochs[at - 1]
        return self._first if offset >= self._from else UNKNOWN_EPOCH
