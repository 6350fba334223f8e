"""`Call`: one call of a blocking method, which the event loop's thread carries out.

The calling thread waits on a lock, because a lock costs a few microseconds, and because a signal
handler can interrupt the wait: Ctrl-C raises KeyboardInterrupt in the waiting call.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context, copy_context
from typing import Any, Final

from ..wire.errors import ConfigurationError, UndecodableRecordError, UnreadableRecordError

__all__ = ["Call", "PlainCall", "TaskLoop"]

#: The longest wait in seconds between two checks for signals. A signal that the main thread
#: receives ends its wait at once; a signal that another thread receives does not, and no signal
#: does on Windows.
_WAIT_S: Final = 0.05 if sys.platform == "win32" else 1.0

#: How long an interrupted call waits for the end of its cancelled coroutine, in seconds: most
#: coroutines end at once, and the next call then finds the object at rest. A close may take longer,
#: and continues in the event loop. Nothing depends on this wait: the event loop carries out the
#: next call after the cancellation.
_CANCEL_S: Final = 0.1


class TaskLoop(asyncio.SelectorEventLoop):
    """An event loop that carries out the first step of a task at once."""

    def create_started_task(
        self, coroutine: Coroutine[Any, Any, None], context: Context
    ) -> asyncio.Task[None]:
        """Creates a task, and carries out its first step; call it in a callback of this loop."""
        if sys.version_info >= (3, 12):
            return asyncio.Task(coroutine, loop=self, context=context, eager_start=True)
        steps: list[Callable[[], object]] = []

        def keep(step: Callable[[], object], *, context: Context) -> None:
            steps.append(step)

        # The constructor of a task schedules its first step: the loop keeps this step instead.
        self.call_soon = keep  # type: ignore[method-assign, assignment]
        try:
            task = asyncio.Task(coroutine, loop=self, context=context)
        finally:
            del self.call_soon
        for step in steps:
            context.run(step)
        return task


class PlainCall:
    """Calls a plain function in the event loop; `wait` returns its result or raises its error."""

    __slots__ = (
        "_args",
        "_done",
        "_function",
        "_is_taken",
        "_kwargs",
        "context",
        "error",
        "result",
    )

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self._function = function
        self._args = args
        self._kwargs = kwargs
        self._done = threading.Lock()
        self._done.acquire()
        self._is_taken = False
        #: Hooks of the client see the context variables of the calling thread.
        self.context = copy_context()
        self.result: Any = None
        self.error: BaseException | None = None

    def start(self) -> None:
        """Carries out the call; the event loop calls it."""
        try:
            self.succeed(self._function(*self._args, **self._kwargs))
        except BaseException as error:  # noqa: BLE001 - the waiting thread raises it
            self.fail(error)

    async def run(self) -> None:
        """Carries out the call in the current task, for a thread that runs a function of it."""
        self.start()

    def succeed(self, result: Any) -> None:
        """Makes `wait` return `result`."""
        self.result = result
        self._done.release()

    def fail(self, error: BaseException) -> None:
        """Makes `wait` raise `error`."""
        self.error = error
        self._done.release()

    def wait(self, submit: Callable[[PlainCall], object]) -> Any:
        """Passes the call to `submit`; blocks the calling thread until the call has ended.

        Returns the result, or raises the error of the call. If a signal handler raises in the
        calling thread, for example KeyboardInterrupt, abandons the call, and raises that exception.
        """
        try:
            submit(self)
            while not self._done.acquire(timeout=_WAIT_S):
                pass
            if self.error is None:
                return self.result
            self._is_taken = True
            raise self.error
        except BaseException:
            if not self._is_taken:
                self._abandon()
            raise
        # An interrupt must not be raised from here on, because the result would be lost: CPython
        # checks for signals only when a function begins, after a call in C, and in loops.
        finally:
            self._function = _nothing  # its arguments may refer to the caller's frames
            self._args, self._kwargs = (), {}
            self.error = None  # the traceback of the error refers to this frame

    def _abandon(self) -> None:
        """Handles the end of the wait by an exception that the call has not raised."""


def _nothing(*_: Any, **__: Any) -> Any:
    """Takes the place of the function of a call that has ended."""


class Call(PlainCall):
    """Runs a coroutine function in a task of the event loop.

    The first step of the task is carried out at once, and its last step wakes the calling thread.
    So a call that does not wait takes one iteration of the event loop.

    If the calling thread is interrupted, the task is cancelled. If the task has succeeded already,
    or succeeds nevertheless, `undo` is called in the event loop, because no caller receives the
    result; so it is after an error that counts as the result for a record. `undo` is called before
    any later call is carried out.
    """

    __slots__ = ("_has_ended", "_is_abandoned", "_needs_undo", "_undo", "loop", "task")

    def __init__(
        self,
        loop: TaskLoop,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        undo: Callable[[], object] | None = None,
    ) -> None:
        super().__init__(function, args, kwargs)
        self.loop = loop
        self.task: asyncio.Task[None] | None = None
        self._undo = undo
        self._is_abandoned = False
        self._has_ended = False
        self._needs_undo = False

    def start(self) -> None:
        """Starts the task of the call; the event loop calls it."""
        coroutine = self._run_in_task()
        try:
            self.task = self.loop.create_started_task(coroutine, self.context)
        except BaseException as error:  # noqa: BLE001 - the waiting thread raises it
            coroutine.close()
            if self.error is None:
                self.fail(error)

    async def _run_in_task(self) -> None:
        try:
            result = await self._function(*self._args, **self._kwargs)
        except (asyncio.CancelledError, GeneratorExit):  # the event loop has ended
            self._has_ended = True
            self.fail(ConfigurationError("the client was closed during the call"))
            raise
        except BaseException as error:  # noqa: BLE001 - the waiting thread raises it
            self._end(needs_undo=isinstance(error, UndecodableRecordError | UnreadableRecordError))
            self.fail(error)
        else:
            self._end(needs_undo=True)
            self.succeed(result)

    def _end(self, *, needs_undo: bool) -> None:
        self._has_ended = True
        self._needs_undo = needs_undo and self._undo is not None
        if self._is_abandoned:
            self._undo_result()

    def _undo_result(self) -> None:
        if self._needs_undo and self._undo is not None:
            self._undo()

    async def run(self) -> None:
        """Runs the coroutine in the current task; raises CancelledError if it is cancelled."""
        try:
            result = await self._function(*self._args, **self._kwargs)
        except BaseException as error:
            self.fail(error)
            if isinstance(error, asyncio.CancelledError):
                raise
        else:
            self.succeed(result)

    def _abandon(self) -> None:
        ended = threading.Lock()
        ended.acquire()
        with suppress(RuntimeError):  # the event loop is closed
            self.loop.call_soon_threadsafe(self._cancel, ended)
            # `_done` would not do: it may be free already, before `_cancel` has called `undo`.
            ended.acquire(timeout=_CANCEL_S)

    def _cancel(self, ended: threading.Lock) -> None:
        """Cancels the task, or undoes its success; then releases `ended`."""
        self._is_abandoned = True
        if self.task is not None and not self._has_ended:
            self.task.add_done_callback(lambda _: ended.release())
            self.task.cancel()
            return
        self._undo_result()
        ended.release()
