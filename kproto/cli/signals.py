"""Runs the coroutine of a command until it ends or a signal stops it."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final

from .closed_output import until_output_is_closed

__all__ = ["TERMINATED", "run_until_signal"]

#: The exit code of a shell after SIGTERM.
TERMINATED: Final = 128 + signal.SIGTERM

#: The threshold of the youngest generation: thousands of records are in use at a time, and they are
#: in no cycles. With Python's default of 700, collections take a fifth of the time of `produce`.
_GC_THRESHOLD: Final = 100_000


def run_until_signal(coroutine: Coroutine[Any, Any, int], *, prints: bool = False) -> int:
    """Runs the coroutine of a command; returns its exit code, or TERMINATED after SIGTERM.

    SIGTERM cancels the coroutine as Ctrl-C does, so that a member commits and leaves its group, and
    an open transaction is aborted. If the command `prints`, a pipe that its reader closes cancels
    the coroutine, too; then raises BrokenPipeError. Raises KeyboardInterrupt after Ctrl-C.
    """

    async def run() -> int:
        task = asyncio.ensure_future(coroutine)
        stopped = False
        closed: asyncio.Future[None] | None = None

        def stop() -> None:
            nonlocal stopped
            stopped = True
            task.cancel()

        if sys.platform != "win32":
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
        if prints:
            closed = asyncio.ensure_future(until_output_is_closed())
            closed.add_done_callback(lambda done: None if done.cancelled() else task.cancel())
        try:
            return await task
        except asyncio.CancelledError:
            if stopped:
                return TERMINATED
            if closed is not None and closed.done() and not closed.cancelled():
                raise BrokenPipeError from None
            task.cancel()
            await asyncio.wait([task])
            raise
        finally:
            if closed is not None:
                closed.cancel()

    with _fewer_collections():
        return asyncio.run(run())


@contextmanager
def _fewer_collections() -> Iterator[None]:
    """Collects cyclic garbage less often."""
    before = gc.get_threshold()
    gc.set_threshold(max(_GC_THRESHOLD, before[0]) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
