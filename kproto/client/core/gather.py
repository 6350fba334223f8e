"""Runs calls concurrently; none of them is left running."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

__all__ = ["gather_all"]

T = TypeVar("T")


async def gather_all(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Runs calls concurrently, and returns their results; an error cancels the other calls."""
    calls = list(calls)
    if len(calls) == 1:
        return [await calls[0]]
    tasks = [asyncio.create_task(call) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
