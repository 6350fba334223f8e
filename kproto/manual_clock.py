"""Clocks that a program sets: `ManualClock` changes only by `advance`; `PausableClock` can run.

Times, timers, sleeps and timeouts depend on the clock; sockets still take real time.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from itertools import count
from types import TracebackType
from typing import Final

from .clock import SYSTEM_CLOCK, Clock

__all__ = ["ManualClock", "PausableClock"]

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
        return self._start_ms + round(self.monotonic() * 1000)

    def monotonic(self) -> float:
        return self._elapsed

    def call_later(self, seconds: float, callback: Callable[[], object]) -> _Timer:
        timer = _Timer(callback)
        if seconds <= 0:
            asyncio.get_running_loop().call_soon(timer.fire)
            return timer
        # Timers that are due at the same time fire in the order of their `call_later`.
        self._schedule(self.monotonic() + seconds, timer)
        return timer

    def _schedule(self, due: float, timer: _Timer) -> None:
        """Adds a timer that is due at `due`, in seconds of the clock."""
        heapq.heappush(self._timers, (due, next(self._numbers), timer))

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
        return (self._timers[0][0] - self.monotonic()) * 1000 if self._timers else None

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


class PausableClock(ManualClock):
    """A clock that runs with the machine's time, until `freeze`; `resume` lets it run again.

    `advance` sets the clock ahead, whether it runs or is frozen. The clock starts at the machine's
    time, or at `start_ms`, in ms since the epoch. Call all methods in the event loop that uses the
    clock.
    """

    def __init__(self, start_ms: int | None = None) -> None:
        super().__init__(start_ms)
        #: The machine's monotonic time at which `_elapsed` was the time; None while frozen.
        self._running_since: float | None = time.monotonic()
        self._next_call: asyncio.TimerHandle | None = None

    @property
    def is_frozen(self) -> bool:
        """Returns True from `freeze` to `resume`."""
        return self._running_since is None

    def monotonic(self) -> float:
        if self._running_since is None:
            return self._elapsed
        return self._elapsed + time.monotonic() - self._running_since

    def freeze(self) -> None:
        """Stops the clock: until `resume`, only `advance` changes it. No timer fires meanwhile."""
        self._elapsed = self.monotonic()
        self._running_since = None
        self._cancel_next_call()

    def resume(self) -> None:
        """Lets the clock run again, from its present time."""
        if self._running_since is None:
            self._running_since = time.monotonic()
            self._await_next_timer()

    async def advance(self, ms: float) -> None:
        """Advances the time by `ms`; fires the timers that are due until then, earliest first."""
        was_frozen = self.is_frozen
        self.freeze()
        try:
            await super().advance(ms)
        finally:
            if not was_frozen:
                self.resume()

    def _schedule(self, due: float, timer: _Timer) -> None:
        super()._schedule(due, timer)
        if not self.is_frozen and self._timers[0][2] is timer:
            self._await_next_timer()

    def _await_next_timer(self) -> None:
        self._cancel_next_call()
        left_ms = self.next_timer_ms
        if left_ms is not None:
            loop = asyncio.get_running_loop()
            self._next_call = loop.call_later(max(left_ms, 0) / 1000, self._fire_due_timers)

    def _cancel_next_call(self) -> None:
        call, self._next_call = self._next_call, None
        if call is not None:
            call.cancel()

    def _fire_due_timers(self) -> None:
        """Fires the timers that are due; runs while the clock runs."""
        while (left_ms := self.next_timer_ms) is not None and left_ms <= 0:
            heapq.heappop(self._timers)[2].fire()
        self._await_next_timer()


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
