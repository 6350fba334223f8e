"""`ManualClock`: a clock whose hands a test turns; `SkewedClock`: one that goes wrong.

    clock = ManualClock()
    async with Broker(clock=clock) as broker: ...
        await clock.advance(30_000)  # what was due within 30 s has happened, in its order

Bytes still move in real time: only what waits for the time waits for the test.
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

#: Turns of the loop before the hands move, so that what is awake gets on first.
TURNS: Final = 10


class ManualClock(Clock):
    """Time stands still until `advance`. `start_ms` is the time of day that it begins at.

    Without it that is the machine's, so that a broker takes the timestamps of a client that goes
    by the machine's clock.
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
        # The number keeps timers of one moment in the order in which they were set.
        heapq.heappush(self._timers, (self._elapsed + seconds, next(self._numbers), timer))
        return timer

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self.call_later(seconds, lambda: None if over.done() else over.set_result(None))
        try:
            await over
        finally:
            timer.cancel()

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        return _Timeout(self, seconds)

    @property
    def next_timer_ms(self) -> float | None:
        """Returns how far away the next timer is, in ms; None when nobody waits for the time."""
        while self._timers and self._timers[0][2].callback is None:
            heapq.heappop(self._timers)
        return (self._timers[0][0] - self._elapsed) * 1000 if self._timers else None

    async def advance(self, ms: float) -> None:
        """Turn the hands on. What is due on the way is called at its time, in order."""
        await _let_others_run()
        end = self._elapsed + ms / 1000
        while self.next_timer_ms is not None and self._timers[0][0] <= end:
            due, _, timer = heapq.heappop(self._timers)
            self._elapsed = max(self._elapsed, due)
            timer.fire()
            await _let_others_run()
        self._elapsed = end
        await _let_others_run()


async def _let_others_run() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)


class SkewedClock(Clock):
    """The clock of this machine with another time of day, `offset_ms` ahead, or behind below 0.

    A broker with one dates records by it and judges their age, as on a machine whose clock is
    wrong. What waits goes on as ever: `move` makes nothing due.
    """

    def __init__(self, offset_ms: int = 0) -> None:
        self.offset_ms = offset_ms

    def now_ms(self) -> int:
        return super().now_ms() + self.offset_ms

    def move(self, ms: int) -> None:
        """Set the time of day ahead by `ms`, or back."""
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
    """`asyncio.timeout`, whose end the clock says."""

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
