"""`LoopYielder`: makes code that never waits yield to the event loop.

While a consumer or a handler runs without waiting, the event loop reads no socket and sends no
heartbeat. So the consumer yields once a millisecond. After handlers that have blocked the event
loop, the consumer yields for several iterations.
"""

from __future__ import annotations

import asyncio
from typing import Final

__all__ = ["LoopYielder"]

_LONG_AGO: Final = float("-inf")

#: Code that never waits yields to the event loop after this many seconds. Each iteration of the
#: event loop reads the sockets, so that brokers can continue to send.
_INTERVAL_S: Final = 0.001

#: After handlers that took more than this many seconds, the event loop gets several iterations, in
#: which a heartbeat can be sent and its response received.
_LONG_S: Final = 0.02
_HEARTBEAT_ITERATIONS: Final = 10


class LoopYielder:
    """Yields to the event loop for one task that otherwise never waits.

    `yield_at_intervals` does nothing before `next_at`, in seconds of the clock.
    """

    __slots__ = ("_blocked_s", "_has_iterated", "next_at")

    def __init__(self) -> None:
        self.next_at = _LONG_AGO
        self._has_iterated = True  # True if the loop has iterated since `next_at` was set
        self._blocked_s = 0.0

    async def yield_at_intervals(
        self, now: float, took_s: float = 0.0, *, unless: bool = False
    ) -> bool:
        """Yields if the event loop had no iteration for 1 ms; returns True if this call yielded.

        `took_s` is the time that the last handlers took, in seconds: after more than 20 ms the
        event loop gets several iterations. If `unless` is True, does not yield, but starts a new
        interval at `now`, in seconds of the clock.
        """
        if now < self.next_at:
            return False
        yields = not self._has_iterated and not unless
        if yields:
            await self._yield(_HEARTBEAT_ITERATIONS if took_s > _LONG_S else 1)
        self.next_at = now + _INTERVAL_S
        self._has_iterated = False
        asyncio.get_running_loop().call_soon(self._on_iteration)
        return yields

    def _on_iteration(self) -> None:
        self._has_iterated = True

    async def yield_after_blocking(self, took_s: float) -> None:
        """Yields to the event loop after handlers have blocked it for more than 20 ms in sum.

        `took_s` is the time in seconds for which a handler has just blocked the event loop.
        """
        self._blocked_s += took_s
        if self._blocked_s > _LONG_S:
            self._blocked_s = 0.0
            await self._yield(_HEARTBEAT_ITERATIONS)

    @staticmethod
    async def _yield(iterations: int) -> None:
        for _ in range(iterations):
            await asyncio.sleep(0)
