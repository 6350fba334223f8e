"""Waits for tasks to end, and retrieves their exceptions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

__all__ = ["is_in_task", "retrieve_exception", "until_ended"]


def is_in_task() -> bool:
    """Returns True if a task runs now.

    Returns False in a callback, and while Python destroys a coroutine whose event loop is closed.
    """
    try:
        return asyncio.current_task() is not None
    except RuntimeError:  # no loop runs
        return False


async def until_ended(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Waits until these cancelled tasks have ended, even if the caller is cancelled meanwhile.

    If the caller was cancelled, raises CancelledError after the wait.
    """
    cancelled: asyncio.CancelledError | None = None
    left = {task for task in tasks if not task.done()}
    while left:
        try:
            _, left = await asyncio.wait(left)
        except asyncio.CancelledError as error:
            cancelled = error
            left = {task for task in left if not task.done()}
    if cancelled is not None:
        raise cancelled


def retrieve_exception(task: asyncio.Task[None]) -> None:
    """Retrieves the exception of a task, so that asyncio does not log it as never retrieved."""
    if not task.cancelled():
        task.exception()
