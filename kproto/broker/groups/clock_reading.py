"""Defines a time by two clocks: the monotonic clock for deadlines, and the wall clock."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ClockReading"]


class ClockReading(NamedTuple):
    """Holds the current time in ms: `ms` of the monotonic clock, `timestamp_ms` since 1970."""

    ms: int
    timestamp_ms: int

    def at(self, ms: int) -> ClockReading:
        """Returns the time at which the monotonic clock showed `ms`."""
        return ClockReading(ms, self.timestamp_ms + ms - self.ms)
