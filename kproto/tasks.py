"""Defines `start_task`, which works the same way under every event loop and task factory."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["start_task"]

T = TypeVar("T")


def start_task(coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Returns a task that runs `coroutine`; the task starts when the caller waits or ends."""
    loop = asyncio.get_running_loop()
    if loop.get_task_factory() is None:
        return loop.create_task(coroutine)
    task = loop.create_task(_start_later(coroutine))
    # A task that is cancelled before its start awaits no coroutine, about which Python would warn.
    task.add_done_callback(lambda task: coroutine.close())
    return task


async def _start_later(coroutine: Coroutine[Any, Any, T]) -> T:
    await asyncio.sleep(0)
    return await coroutine
