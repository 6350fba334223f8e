"""Stores the leader epochs of a log with their start offsets (KIP-101, KIP-279, KIP-320)."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final, NamedTuple

__all__ = ["FIRST_EPOCH", "UNKNOWN_EPOCH", "EpochEnd", "LeaderEpochCache"]

#: The leader epoch of a new partition.
FIRST_EPOCH: Final = 0
#: The leader epoch in requests and responses if none is known.
UNKNOWN_EPOCH: Final = -1


class EpochEnd(NamedTuple):
    """Holds a leader epoch, and the offset after its last record."""

    epoch: int
    end_offset: int


class LeaderEpochCache:
    """Holds the start offset of each leader epoch of a log.

    An epoch without records is replaced by the next epoch, because both start at the same offset,
    as in Kafka's leader-epoch-checkpoint.
    """

    def __init__(self) -> None:
        self._epochs = [FIRST_EPOCH]
        self._starts = [0]

    @property
    def current(self) -> int:
        """Returns the epoch of the current leader."""
        return self._epochs[-1]

    def assign(self, epoch: int, offset: int) -> None:
        """Adds `epoch`, which starts at `offset`; `epoch` must be above all former epochs."""
        while self._starts and self._starts[-1] >= offset:
            del self._starts[-1], self._epochs[-1]
        self._epochs.append(epoch)
        self._starts.append(offset)

    def at(self, offset: int) -> int:
        """Returns the leader epoch of the record at `offset`."""
        return self._epochs[max(0, bisect_right(self._starts, offset) - 1)]

    def end_of(self, epoch: int, log_end: int) -> EpochEnd | None:
        """Returns the largest stored epoch that is at most `epoch`, and its end offset.

        `log_end` is the end offset of the current epoch. Returns None for UNKNOWN_EPOCH and for an
        epoch above the current epoch. If `epoch` is below all stored epochs, returns `epoch` and
        the start offset of the first stored epoch, as Kafka does.
        """
        if epoch == UNKNOWN_EPOCH or epoch > self.current:
            return None
        index = bisect_right(self._epochs, epoch) - 1
        if index < 0:
            return EpochEnd(epoch, self._starts[0])
        after = index + 1
        end = self._starts[after] if after < len(self._starts) else log_end
        return EpochEnd(self._epochs[index], end)
