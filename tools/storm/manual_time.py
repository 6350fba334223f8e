"""`ManualTime`: advances the manual clock of a schedule, and lets bytes arrive between advances."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from kproto.testing.clock import ManualClock

__all__ = ["STRIDE_MS", "ManualTime"]

#: The longest time, in ms of the manual clock, until a member has left or records are processed.
PATIENCE_MS: Final = 600_000
#: The most ms of one advance of the clock, so that bytes can arrive between advances.
STRIDE_MS: Final = 250.0
#: The iterations of the event loop before each advance, in which bytes pass through sockets.
TURNS: Final = 25


class ManualTime:
    """Advances `clock`, which the brokers and the members of a schedule share."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock

    async def pass_ms(self, ms: float) -> None:
        """Advances the clock by `ms`, timer by timer."""
        while ms > 0:
            await _turn()
            following = self.clock.next_timer_ms
            stride = min(ms, STRIDE_MS, ms if following is None else max(following, 1.0))
            await self.clock.advance(stride)
            ms -= stride
        await _turn()

    async def until(self, holds: Callable[[], bool]) -> bool:
        """Advances the clock until `holds()`; returns False if `PATIENCE_MS` pass before."""
        left = float(PATIENCE_MS)
        while not holds():
            await self.pass_ms(STRIDE_MS)
            left -= STRIDE_MS
            if left <= 0:
                return False
        return True


async def _turn() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)
