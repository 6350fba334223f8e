"""Waits for the end of a pool of workers, and drains it: running handlers may end in time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from ...tasks import start_task
from ..core.tasks import retrieve_exception, until_cancelled_no_more

__all__ = ["DrainablePool", "until_drained"]


class DrainablePool(Protocol):
    """The methods of a pool that `until_drained` calls."""

    def stop(self) -> None:
        """Stops accepting records and starting handlers; the drain timeout counts from now."""
        ...

    def end_drain(self) -> None:
        """Cancels the handlers before `drain_timeout_ms` is over."""
        ...


async def until_drained(
    pool: DrainablePool,
    stopping: asyncio.Event,
    poll_task: asyncio.Task[None],
    drain: Callable[[asyncio.Task[None]], Coroutine[Any, Any, None]],
) -> None:
    """Waits until the pool sets `stopping`, or until this call is cancelled; then drains the pool.

    Stops the pool, cancels `poll_task`, and runs `drain` in a task of its own. If the call is
    cancelled, raises CancelledError after the drain. A second cancellation ends the drain at once.
    A cancellation that is repeated in each iteration of the event loop, as by anyio, counts as one.
    """
    cancelled: asyncio.CancelledError | None = None
    try:
        await stopping.wait()
    except asyncio.CancelledError as error:
        cancelled = error
    pool.stop()
    poll_task.cancel()
    draining = start_task(drain(poll_task))
    draining.add_done_callback(retrieve_exception)
    if cancelled is not None:
        await until_cancelled_no_more(draining)
    while not draining.done():
        try:
            await asyncio.wait([draining])
        except asyncio.CancelledError as error:
            if cancelled is None:
                cancelled = error
            else:
                pool.end_drain()
            await until_cancelled_no_more(draining)
    if cancelled is not None:
        raise cancelled
    draining.result()
