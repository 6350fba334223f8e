"""The time and the timers of client and broker.

Owns no loop and no task, knows nothing of Kafka. Every part that waits or takes a timestamp gets a
`Clock`, so that a test can pass one that it controls (`kproto.testing.clock.ManualClock`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

__all__ = ["SYSTEM_CLOCK", "Clock", "Timer"]


class Timer(Protocol):
    """A scheduled call."""

    def cancel(self) -> None:
        """Cancels the call if it is still pending."""


class Clock:
    """The time of this machine."""

    def now_ms(self) -> int:
        """Returns the time of day in ms since 1970, as in record timestamps; it may be set back."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Returns seconds since an arbitrary moment; never set back. For deadlines."""
        return time.monotonic()

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Schedules `callback` on the running loop in `seconds`."""
        return asyncio.get_running_loop().call_later(seconds, callback)

    async def sleep(self, seconds: float) -> None:
        """Waits for `seconds`."""
        await asyncio.sleep(seconds)

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        """Returns a context that raises TimeoutError if its body takes more than `seconds`."""
        return asyncio.timeout(seconds)


#: The default clock.
SYSTEM_CLOCK: Final = Clock()
