"""Waits for the effects of a broker: in its event loop, or in a thread that may block."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

__all__ = ["until", "wait_until"]


async def until(condition: Callable[[], object]) -> None:
    """Waits until `condition` holds; fails after a minute."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - the broker has no event to wait for
            await asyncio.sleep(0.01)


def wait_until(
    condition: Callable[[], object], *, limit_s: float = 60, interval_s: float = 0.01
) -> None:
    """Blocks until `condition` holds, checked each `interval_s`; fails after `limit_s`."""
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, "the expected state did not occur"
        time.sleep(interval_s)
