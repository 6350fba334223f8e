"""A moment by both clocks: one for deadlines, which is never set back, and the time of day."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ClockReading"]


class ClockReading(NamedTuple):
    """`ms` counts from some moment, `timestamp_ms` from 1970."""

    ms: int
    timestamp_ms: int

    def at(self, ms: int) -> ClockReading:
        """The moment at which the first clock was at `ms`."""
        return ClockReading(ms, self.timestamp_ms + ms - self.ms)
