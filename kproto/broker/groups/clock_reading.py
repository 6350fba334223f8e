"""The time by both clocks: the monotonic clock for deadlines, and the wall clock."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ClockReading"]


class ClockReading(NamedTuple):
    """The time in ms: `ms` by the monotonic clock, `timestamp_ms` since 1970."""

    ms: int
    timestamp_ms: int

    def at(self, ms: int) -> ClockReading:
        """Returns the reading at which the monotonic clock was at `ms`."""
        return ClockReading(ms, self.timestamp_ms + ms - self.ms)
