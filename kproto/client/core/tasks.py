"""Waits for tasks to end, even if the caller is cancelled, and retrieves their exceptions.

`task.cancel()` raises CancelledError once in a task. A cancel scope of anyio cancels its task again
in each iteration of the event loop, until the task ends. Until that end, each `await` in the task
raises CancelledError, even in a `finally` block, so the task can send no request. Therefore a
second task sends the last requests of a producer or consumer. The cancelled task waits for the
second task, and starts the wait again after each CancelledError.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final, TypeVar

from ...clock import Clock, Timer
from ...tasks import start_task
from ...wire.errors import RequestTimeoutError

__all__ = [
    "LONGEST_TIMER_S",
    "is_in_task",
    "retrieve_exception",
    "shielded",
    "until_cancelled_no_more",
    "until_ended",
]

T = TypeVar("T")

logger = logging.getLogger("kproto.client")

#: A task that waits for an event sets a timer of at most this many seconds. Through its timers the
#: event loop holds the task; Python destroys a task that nothing holds, with an error in the log.
LONGEST_TIMER_S: Final = 3_600.0

#: A cancellation counts as repeated if the next cancellation follows within this many iterations of
#: the event loop. anyio repeats a cancellation in the next iteration.
_REPEATED_WITHIN: Final = 3


def is_in_task() -> bool:
    """Returns True if a task runs now.

    Returns False in a callback, and while Python destroys a coroutine whose event loop is closed.
    """
    try:
        return asyncio.current_task() is not None
    except RuntimeError:  # no loop runs
        return False


async def until_ended(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Waits until the cancelled `tasks` have ended, even if the caller is cancelled meanwhile.

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


async def shielded(
    coroutine: Coroutine[Any, Any, T],
    clock: Clock,
    limit_ms: int,
    *,
    what: str,
    afterwards: str = "another close completes it",
    is_cancelled: bool = False,
    on_limit: Callable[[], object] | None = None,
    rest_ms: int = 0,
) -> T:
    """Runs `coroutine` in a task of its own, and waits for its end even if the caller is cancelled.

    Returns the result of `coroutine`, or raises its exception. If the caller is cancelled, the task
    may run for another `limit_ms`, and is then cancelled. Further cancellations of the caller have
    no effect. With `on_limit`, the task is not cancelled after `limit_ms`: instead `on_limit` is
    called, and the task is cancelled `rest_ms` later. Pass `is_cancelled` if the caller, or the
    caller of an earlier close, was cancelled before the call: `limit_ms` then counts from the call.

    If the task is cancelled at its limit, raises RequestTimeoutError; its text names the operation
    `what`, and ends with `afterwards`, which says what follows. If the caller is cancelled during
    the call, the call raises CancelledError after the task has ended, and logs the exception of
    `coroutine` or the RequestTimeoutError if there is one.
    """
    task = start_task(coroutine)
    timers: list[Timer] = []
    time_ms = limit_ms if on_limit is None else limit_ms + rest_ms
    timeout: RequestTimeoutError | None = None

    def cancel() -> None:
        nonlocal timeout
        timeout = RequestTimeoutError(
            f"{what} did not end within {time_ms} ms after a cancellation (error_flush_ms and "
            f"cancelled_close_ms), and was cancelled; {afterwards}"
        )
        task.cancel()

    def start_timers() -> None:
        if on_limit is not None:
            timers.append(clock.call_later(limit_ms / 1000, on_limit))
        timers.append(clock.call_later(time_ms / 1000, cancel))

    if is_cancelled:
        start_timers()
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:
        if not timers:
            start_timers()
        try:
            await until_ended([task])
        finally:
            error = timeout if task.cancelled() else task.exception()
            if error is not None:
                logger.warning("not raised, because the call was cancelled: %r", error)
        raise
    finally:
        for timer in timers:
            timer.cancel()
    if task.cancelled() and timeout is not None:
        raise timeout
    return task.result()


async def until_cancelled_no_more(task: asyncio.Task[Any]) -> None:
    """Waits until the repeated cancellations of the caller end, or until `task` is done.

    anyio cancels the caller again at each wait. This function returns once the caller was not
    cancelled for a few iterations of the event loop. So a later cancellation is a second request to
    cancel.
    """
    quiet = 0
    while quiet < _REPEATED_WITHIN and not task.done():
        quiet += 1
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            quiet = 0


def retrieve_exception(task: asyncio.Task[None]) -> None:
    """Retrieves the exception of a task, so that asyncio does not log it as never retrieved."""
    if not task.cancelled():
        task.exception()
