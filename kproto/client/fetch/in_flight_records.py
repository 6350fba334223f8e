"""Defines ranges of returned records, and adapts the number of records between two checks.

A range is in flight from the poll that returns its records until they are processed. At each check
the consumer finds out whether the session of its member may have expired. Between two checks the
consumer returns `AdaptiveBatchSize.size` records.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from .partition_state import TopicPartitionState

__all__ = ["AdaptiveBatchSize", "InFlightRange", "PollMarker"]

#: The number of polls, and the first offset in flight (-1 for none): each poll changes the marker.
PollMarker: TypeAlias = tuple[int, int]


class InFlightRange(NamedTuple):
    """Polled records that are not processed yet: from `offset` to `next_offset`, exclusive."""

    state: TopicPartitionState
    offset: int
    next_offset: int


class AdaptiveBatchSize:
    """Adapts `size`, the number of records that are returned between checks of the group session.

    A handler that never waits blocks the event loop, and with it heartbeats and commits; and the
    machine may be suspended between two records. So `size` is smaller for a slower handler.
    """

    __slots__ = ("_returned_at", "size")

    def __init__(self) -> None:
        self.size = _FIRST_SIZE
        self._returned_at: float | None = None

    def on_records_returned(self, now: float) -> None:
        """Starts to measure the time that the caller takes for the records of a poll."""
        self._returned_at = now

    def on_poll(self, now: float) -> float:
        """Adapts `size`, when the caller polls again.

        Returns the time in seconds that the caller took for the records of the previous poll; 0 if
        the previous poll returned no records.
        """
        if self._returned_at is None:
            return 0.0
        took, self._returned_at = now - self._returned_at, None
        fitting = self.size * _TARGET_S / max(took, _SHORTEST_S)
        if took < _BUSY_S:
            fitting = max(fitting, self.size / _GROWTH)
        self.size = max(1, int(min(fitting, self.size * _GROWTH, _MAX_RECORDS)))
        return took


#: The wanted processing time of `size` records, in seconds. A check costs a hundredth of this time.
#: A handler that needs more than this time for one record gets one record at a time.
_TARGET_S: Final = 0.0004
_SHORTEST_S: Final = 1e-6

#: If the records took less than this many seconds, other processes on a busy machine may have
#: caused the delay: the next `size` is then at least a fourth of the last one.
_BUSY_S: Final = 0.02

#: The size before the first measurement, and the largest factor from one size to the next.
_FIRST_SIZE: Final = 1
_GROWTH: Final = 4

#: The largest size: a limit is needed, because a fast handler may become slow. With this limit a
#: group consumer costs 2 % more than a plain consumer; with half of this limit it costs 6 % more.
_MAX_RECORDS: Final = 512
