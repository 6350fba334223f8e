"""Waits for the end of a pool of workers, and drains it: running handlers may end in time."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from typing import Any

from ...tasks import start_task
from ..core.tasks import retrieve_exception, until_cancelled_no_more
from .failure_log import log_unraised

__all__ = ["DrainablePool", "until_drained"]


class DrainablePool(ABC):
    """A pool of workers that stops by itself, with an error, at a signal or when it is closed."""

    def __init__(self) -> None:
        self._is_stopping = asyncio.Event()
        self._is_cancelling = False
        self._error: BaseException | None = None

    @property
    def error(self) -> BaseException | None:
        """The error that stopped the pool, or None."""
        return self._error

    @abstractmethod
    def stop(self) -> None:
        """Stops accepting records and starting handlers; the drain timeout counts from now."""

    @abstractmethod
    def cancel_handlers(self) -> None:
        """Cancels the handlers; their records do not count as processed."""

    def end_drain(self) -> None:
        """Stops the pool, and cancels the handlers before `drain_timeout_ms` is over."""
        self.stop()
        self.cancel_handlers()

    def on_signal(self) -> None:
        """Stops the pool; a second signal cancels the handlers."""
        if self._is_stopping.is_set():
            self.cancel_handlers()
        self.stop()

    def fail(self, error: BaseException) -> None:
        """Stops the pool with `error`; logs `error` if the pool has another error already."""
        if self._error is None:
            self._error = error
        elif error is not self._error:
            log_unraised(error)
        self.stop()


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
