"""Runs calls concurrently, and waits until all of them have ended, even after an error."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from ...tasks import start_task

__all__ = ["gather_all"]

T = TypeVar("T")


async def gather_all(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Runs coroutines concurrently; returns their results in the order of `calls`.

    The first error cancels the other coroutines, and is raised once all coroutines have ended.
    """
    calls = list(calls)
    if len(calls) == 1:
        return [await calls[0]]
    tasks = [start_task(call) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
