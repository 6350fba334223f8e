"""Defines a time by two clocks: the monotonic clock for deadlines, and the wall clock."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ClockReading"]


class ClockReading(NamedTuple):
    """Holds one time by two clocks.

    `ms` is the time of the monotonic clock in ms. `timestamp_ms` is the time of the wall clock, in
    ms since 1970.
    """

    ms: int
    timestamp_ms: int

    def at(self, ms: int) -> ClockReading:
        """Returns the time at which the monotonic clock showed `ms`."""
        return ClockReading(ms, self.timestamp_ms + ms - self.ms)
