"""Provides the clock and the timers that client and broker use.

Owns no event loop and no task, and does not depend on Kafka. Objects that wait for a time or set
timestamps take a `Clock`, so that a test can pass a clock that it controls
(`kproto.testing.clock.ManualClock`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

__all__ = ["SYSTEM_CLOCK", "Clock", "Timer"]


class Timer(Protocol):
    """A call that `Clock.call_later` has scheduled."""

    def cancel(self) -> None:
        """Cancels the call if it is still pending."""


class Clock:
    """The machine's clock, with timers on the running event loop."""

    def now_ms(self) -> int:
        """Returns the time of day in ms since 1970, as in record timestamps; may decrease."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Returns seconds since an arbitrary moment, for deadlines; the value never decreases."""
        return time.monotonic()

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Schedules `callback` on the running event loop after `seconds`."""
        return asyncio.get_running_loop().call_later(seconds, callback)

    async def sleep(self, seconds: float) -> None:
        """Waits for `seconds`."""
        await asyncio.sleep(seconds)

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        """Returns an async context manager that raises TimeoutError after `seconds`."""
        return asyncio.timeout(seconds)


#: The default clock.
SYSTEM_CLOCK: Final = Clock()
