"""Clocks for tests: `ManualClock` changes only by `advance`; `SkewedClock` is ahead or behind.

    clock = ManualClock()
    async with Broker(clock=clock) as broker: ...
        await clock.advance(30_000)  # fires the timers of the next 30 s, in order

Times, timers, sleeps and timeouts depend on the clock; sockets still take real time.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from itertools import count
from types import TracebackType
from typing import Final

from ..clock import SYSTEM_CLOCK, Clock

__all__ = ["ManualClock", "SkewedClock"]

#: Iterations of the event loop before and after each timer, so that runnable tasks run first.
TURNS: Final = 10


class ManualClock(Clock):
    """A clock that changes only by `advance`. `start_ms` is its first time, in ms since the epoch.

    By default the clock starts at the machine's time, so that a broker with this clock accepts
    timestamps of a client that uses the machine's clock.
    """

    def __init__(self, start_ms: int | None = None) -> None:
        self._start_ms = SYSTEM_CLOCK.now_ms() if start_ms is None else start_ms
        self._elapsed = 0.0  # seconds
        self._timers: list[tuple[float, int, _Timer]] = []
        self._numbers = count()

    def now_ms(self) -> int:
        return self._start_ms + round(self._elapsed * 1000)

    def monotonic(self) -> float:
        return self._elapsed

    def call_later(self, seconds: float, callback: Callable[[], object]) -> _Timer:
        timer = _Timer(callback)
        if seconds <= 0:
            asyncio.get_running_loop().call_soon(timer.fire)
            return timer
        # Timers that are due at the same time fire in the order of their `call_later`.
        heapq.heappush(self._timers, (self._elapsed + seconds, next(self._numbers), timer))
        return timer

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self.call_later(seconds, lambda: None if future.done() else future.set_result(None))
        try:
            await future
        finally:
            timer.cancel()

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        return _Timeout(self, seconds)

    @property
    def next_timer_ms(self) -> float | None:
        """Returns the ms until the next timer; None if there is no timer."""
        while self._timers and self._timers[0][2].callback is None:
            heapq.heappop(self._timers)
        return (self._timers[0][0] - self._elapsed) * 1000 if self._timers else None

    async def advance(self, ms: float) -> None:
        """Advances the time by `ms`; fires the timers that are due until then, earliest first."""
        await _run_pending_tasks()
        end = self._elapsed + ms / 1000
        while self.next_timer_ms is not None and self._timers[0][0] <= end:
            due, _, timer = heapq.heappop(self._timers)
            self._elapsed = max(self._elapsed, due)
            timer.fire()
            await _run_pending_tasks()
        self._elapsed = end
        await _run_pending_tasks()


async def _run_pending_tasks() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)


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


class _Timer:
    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None

    def fire(self) -> None:
        callback, self.callback = self.callback, None
        if callback is not None:
            callback()


class _Timeout:
    """Works like `asyncio.timeout`, but with the time of a ManualClock."""

    def __init__(self, clock: ManualClock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._inner = asyncio.timeout(None)
        self._timer: _Timer | None = None

    async def __aenter__(self) -> object:
        await self._inner.__aenter__()
        self._timer = self._clock.call_later(self._seconds, self._expire)
        return self

    def _expire(self) -> None:
        self._inner.reschedule(asyncio.get_running_loop().time())

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._inner.__aexit__(kind, error, traceback)
