"""Cancels a coroutine once, or repeatedly as cancel scopes of anyio do."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

import pytest

from .availability import imported

__all__ = ["KINDS", "run_until_cancelled"]

#: asyncio cancels a task once. "repeated" cancels it in each iteration of the event loop until it
#: ends, without anyio. "anyio" does so by anyio's own cancel scope.
KINDS: Final = ("once", "repeated", "anyio")


async def run_until_cancelled(
    work: Coroutine[Any, Any, object], ready: asyncio.Event, kind: str
) -> None:
    """Runs `work`, cancels it when `ready` is set, and waits until it has ended as cancelled.

    `kind` is one of `KINDS`, and selects how `work` is cancelled.
    """
    if kind == "anyio":
        await _in_cancel_scope(work, ready)
        return
    task = asyncio.create_task(_completed(work))
    await ready.wait()
    task.cancel()
    while kind == "repeated" and not task.done():
        await asyncio.sleep(0)
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def _completed(work: Coroutine[Any, Any, object]) -> None:
    await work


async def _in_cancel_scope(work: Coroutine[Any, Any, object], ready: asyncio.Event) -> None:
    scope = imported("anyio", "cancel scopes of anyio").CancelScope()

    async def run() -> None:
        with scope:
            await work

    task = asyncio.create_task(run())
    await ready.wait()
    scope.cancel()
    await task
    assert scope.cancelled_caught
