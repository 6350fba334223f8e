"""A moment by both clocks: one for deadlines, which is never set back, and the time of day."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Moment"]


class Moment(NamedTuple):
    """`ms` counts from some moment, `date_ms` from 1970."""

    ms: int
    date_ms: int

    def at(self, ms: int) -> Moment:
        """The moment at which the first clock was at `ms`."""
        return Moment(ms, self.date_ms + ms - self.ms)
