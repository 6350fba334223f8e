"""The time, and waiting for it: the one place where client and broker ask for either.

Owns no loop and no task, knows nothing of Kafka. Whoever waits or dates something takes a `Clock`,
so that a test can give it one whose hands it turns (`kproto.testing.clock.ManualClock`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

__all__ = ["SYSTEM_CLOCK", "Clock", "Timer"]


class Timer(Protocol):
    """A call that is due later."""

    def cancel(self) -> None:
        """Drop the call, if it has not been made."""


class Clock:
    """The time of this machine."""

    def now_ms(self) -> int:
        """The time of day in ms since 1970, as timestamps of records are; it may be set back."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds since some moment; never set back. For deadlines."""
        return time.monotonic()

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Have the running loop call `callback` in `seconds`."""
        return asyncio.get_running_loop().call_later(seconds, callback)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        """Returns a context whose body gets `seconds`; after that it raises TimeoutError."""
        return asyncio.timeout(seconds)


#: What everybody takes who is given no other.
SYSTEM_CLOCK: Final = Clock()
