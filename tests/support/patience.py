"""Waits for the effects of a broker that runs in the test's own event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["until"]


async def until(condition: Callable[[], object]) -> None:
    """Waits until `condition` holds; fails after a minute."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - the broker has no event to wait for
            await asyncio.sleep(0.01)
