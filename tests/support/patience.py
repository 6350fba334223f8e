"""Waiting for what a broker in the same loop does, without knowing when."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["until"]


async def until(condition: Callable[[], object]) -> None:
    """Wait until `condition` holds; fail when it does not within the patience of a busy machine."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - what is waited for is the broker's own affair
            await asyncio.sleep(0.01)
