"""The leader epochs of a log and their start offsets (KIP-101, KIP-279, KIP-320). Plain data."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final, NamedTuple

__all__ = ["FIRST_EPOCH", "UNKNOWN_EPOCH", "EpochEnd", "LeaderEpochCache"]

#: The leader epoch of a new partition.
FIRST_EPOCH: Final = 0
#: The epoch in requests and responses without one.
UNKNOWN_EPOCH: Final = -1


class EpochEnd(NamedTuple):
    """A leader epoch, and the offset after its last record."""

    epoch: int
    end_offset: int


class LeaderEpochCache:
    """The start offset of each leader epoch; `current` is the epoch of the current leader.

    As in Kafka's leader-epoch-checkpoint, the next epoch replaces an epoch without records, because
    both start at the same offset.
    """

    def __init__(self) -> None:
        self._epochs = [FIRST_EPOCH]
        self._starts = [0]

    @property
    def current(self) -> int:
        """Returns the epoch of the current leader."""
        return self._epochs[-1]

    def assign(self, epoch: int, offset: int) -> None:
        """Adds an epoch, higher than all before, that starts at `offset`."""
        while self._starts and self._starts[-1] >= offset:
            del self._starts[-1], self._epochs[-1]
        self._epochs.append(epoch)
        self._starts.append(offset)

    def at(self, offset: int) -> int:
        """Returns the epoch of the record at that offset."""
        return self._epochs[max(0, bisect_right(self._starts, offset) - 1)]

    def end_of(self, epoch: int, log_end: int) -> EpochEnd | None:
        """Returns the largest known epoch up to `epoch`, and its end offset.

        Returns None for an epoch above the current one, and for UNKNOWN_EPOCH. As in Kafka, for an
        epoch below the first known one, returns that epoch and the start offset of the first one.
        """
        if epoch == UNKNOWN_EPOCH or epoch > self.current:
            return None
        index = bisect_right(self._epochs, epoch) - 1
        if index < 0:
            return EpochEnd(epoch, self._starts[0])
        after = index + 1
        end = self._starts[after] if after < len(self._starts) else log_end
        return EpochEnd(self._epochs[index], end)
