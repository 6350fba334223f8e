"""Clocks for tests: `ManualClock` changes only by `advance`; `SkewedClock` is ahead or behind.

    clock = ManualClock()
    async with Broker(clock=clock) as broker: ...
        await clock.advance(30_000)  # fires the timers of the next 30 s, in order

`PausableClock` runs until `freeze`. Times, timers, sleeps and timeouts depend on the clock; sockets
still take real time.
"""

from __future__ import annotations

from ..clock import Clock
from ..manual_clock import ManualClock, PausableClock

__all__ = ["ManualClock", "PausableClock", "SkewedClock"]


class SkewedClock(Clock):
    """The machine's clock with the time of day shifted by `offset_ms` (negative: behind).

    A broker with this clock sets timestamps and computes ages like a broker whose machine has a
    wrong clock. Timers use the machine's monotonic clock, which is not shifted.
    """

    def __init__(self, offset_ms: int = 0) -> None:
        self.offset_ms = offset_ms

    def now_ms(self) -> int:
        return super().now_ms() + self.offset_ms

    def move(self, ms: int) -> None:
        """Shifts the time of day by `ms` more: ahead if positive, back if negative."""
        self.offset_ms += ms
