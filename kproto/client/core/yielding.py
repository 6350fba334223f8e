"""When code that never waits yields to the event loop: the one place that decides it.

While a consumer or a handler goes on without waiting, sockets are not read and no heartbeat is
sent. So it yields once a millisecond, and longer after handlers that blocked the event loop.
"""

from __future__ import annotations

import asyncio
from typing import Final

__all__ = ["LoopYielder"]

_LONG_AGO: Final = float("-inf")

#: How often the event loop turns at least, in seconds: what arrives meanwhile is read from the
#: socket, and the broker sends on.
_INTERVAL_S: Final = 0.001

#: Handlers that may have blocked the event loop for so long, in seconds, are followed by several
#: turns of it: a heartbeat and its response take that many.
_LONG_S: Final = 0.02
_HEARTBEAT_TURNS: Final = 10


class LoopYielder:
    """Yields for one task; from `next_at` on, in seconds of the clock, it has to be asked again."""

    __slots__ = ("_blocked_s", "_has_turned", "next_at")

    def __init__(self) -> None:
        self.next_at = _LONG_AGO
        self._has_turned = True  # the loop, since `next_at` was set
        self._blocked_s = 0.0

    async def at_intervals(self, now: float, took_s: float = 0.0, *, unless: bool = False) -> bool:
        """Yields if the loop has not turned for an interval; returns True if it did.

        `took_s` is how long the last handlers took: if that is long, the loop turns several times.
        It does not yield with `unless`, and counts the interval from `now` all the same.
        """
        if now < self.next_at:
            return False
        yields = not self._has_turned and not unless
        if yields:
            await self._turn(_HEARTBEAT_TURNS if took_s > _LONG_S else 1)
        self.next_at = now + _INTERVAL_S
        self._has_turned = False
        asyncio.get_running_loop().call_soon(self._turned)
        return yields

    def _turned(self) -> None:
        self._has_turned = True

    async def after_blocking(self, took_s: float) -> None:
        """Yields for several turns once handlers have taken long, in sum of `took_s`."""
        self._blocked_s += took_s
        if self._blocked_s > _LONG_S:
            self._blocked_s = 0.0
            await self._turn(_HEARTBEAT_TURNS)

    @staticmethod
    async def _turn(turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
