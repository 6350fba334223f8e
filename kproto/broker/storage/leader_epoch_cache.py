"""Which leader epoch wrote which offsets of a log (KIP-101, KIP-279, KIP-320). Plain data."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final, NamedTuple

__all__ = ["FIRST_EPOCH", "UNKNOWN_EPOCH", "EpochEnd", "LeaderEpochCache"]

#: The leader epoch of a new partition.
FIRST_EPOCH: Final = 0
#: What requests and responses say for no epoch.
UNKNOWN_EPOCH: Final = -1


class EpochEnd(NamedTuple):
    """A leader epoch, and the offset behind the last record that was written in it."""

    epoch: int
    end_offset: int


class LeaderEpochCache:
    """Where each leader epoch of a partition begins; `current` is that of the leader now.

    As in Kafka's leader-epoch-checkpoint, an epoch in which nothing was written gives way to the
    next one that begins at the same offset.
    """

    def __init__(self) -> None:
        self._epochs = [FIRST_EPOCH]
        self._starts = [0]

    @property
    def current(self) -> int:
        """The epoch of the leader now."""
        return self._epochs[-1]

    def begin(self, epoch: int, offset: int) -> None:
        """A leader of `epoch` begins to write at `offset`; the epoch is above all before."""
        while self._starts and self._starts[-1] >= offset:
            del self._starts[-1], self._epochs[-1]
        self._epochs.append(epoch)
        self._starts.append(offset)

    def at(self, offset: int) -> int:
        """The epoch in which the record of that offset was, or would be, written."""
        return self._epochs[max(0, bisect_right(self._starts, offset) - 1)]

    def end_of(self, epoch: int, log_end: int) -> EpochEnd | None:
        """The largest epoch that is known and not above `epoch`, and where it ends.

        None for an epoch above the current one, and for UNKNOWN_EPOCH. As in Kafka, one below the
        first that is known is given back with the offset at which that begins.
        """
        if epoch == UNKNOWN_EPOCH or epoch > self.current:
            return None
        index = bisect_right(self._epochs, epoch) - 1
        if index < 0:
            return EpochEnd(epoch, self._starts[0])
        after = index + 1
        end = self._starts[after] if after < len(self._starts) else log_end
        return EpochEnd(self._epochs[index], end)
