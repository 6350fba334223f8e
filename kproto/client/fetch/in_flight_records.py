"""What was polled and is not processed yet, and how many records a poll returns. Plain data."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from .partition_state import TopicPartitionState

__all__ = ["AdaptiveBatchSize", "InFlightRange", "PollMarker"]

#: The number of polls, and the first offset in flight: another marker means that the caller polled.
PollMarker: TypeAlias = tuple[int, int]


class InFlightRange(NamedTuple):
    """Records that were polled and are not processed: from `offset` up to before `next_offset`."""

    state: TopicPartitionState
    offset: int
    next_offset: int


class AdaptiveBatchSize:
    """How many records of a list are returned before the session is checked again: `size`.

    A handler that never waits blocks the event loop, and with it heartbeats and commits; and the
    machine may be suspended between two records. So the slower a handler is, the smaller is `size`.
    """

    __slots__ = ("_returned_at", "size")

    def __init__(self) -> None:
        self.size = _FIRST_SIZE
        self._returned_at: float | None = None

    def on_records_returned(self, now: float) -> None:
        """Starts the measurement: a poll has returned records."""
        self._returned_at = now

    def on_poll(self, now: float) -> float:
        """Adapts `size`; returns how long the records took in seconds, 0 if none were returned."""
        if self._returned_at is None:
            return 0.0
        took, self._returned_at = now - self._returned_at, None
        fitting = self.size * _TARGET_S / max(took, _SHORTEST_S)
        if took < _BUSY_S:
            fitting = max(fitting, self.size / _GROWTH)
        self.size = max(1, int(min(fitting, self.size * _GROWTH, _MOST)))
        return took


#: How long `size` records shall take, in seconds: a slower handler gets one record at a time, and a
#: check costs a hundredth of that time.
_TARGET_S: Final = 0.0004
_SHORTEST_S: Final = 1e-6

#: A shorter time, in seconds, may be due to other processes on a busy machine: then the next `size`
#: is not much smaller.
_BUSY_S: Final = 0.02

#: The size before the first measurement; and how much larger the next size may be.
_FIRST_SIZE: Final = 1
_GROWTH: Final = 4

#: The largest size, as a fast handler may become slow. With half of it a group consumer costs 6 %
#: more than a plain consumer, in place of 2.
_MOST: Final = 512
