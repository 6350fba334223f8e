"""Runs calls concurrently, and leaves none of them running."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

__all__ = ["gather_all"]

T = TypeVar("T")


async def gather_all(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Returns the results of all calls, which run concurrently; cancels the others after
    an error.
    """
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
