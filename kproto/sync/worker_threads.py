"""`WorkerThreads`: runs functions in threads; `run_in_thread` awaits one of them in a task.

Handlers of `run`, rebalance callbacks and operations of `retrying` are plain functions, which may
block: each of them runs in a thread. If such a function calls a method of `kproto.sync`, the task
that awaits the function makes the call. So the client sees the same task as in the asyncio client:
it refuses to close a consumer in its own callback, and a cancelled handler ends at its next call.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial
from queue import SimpleQueue
from typing import Any, Final, TypeVar

from ..wire.errors import ConfigurationError
from .calls import PlainCall

__all__ = ["WorkerThreads", "run_in_thread", "submit_to_task"]

T = TypeVar("T")

#: How long the end of the event loop waits for threads whose functions still run, in seconds.
_JOIN_S: Final = 0.1


class WorkerThreads:
    """Daemon threads that run functions; a function never waits for a free thread.

    A function returns another function, which passes on its outcome. The thread counts as free
    before it passes on the outcome: so `n` tasks, each with one function at a time, need `n`
    threads.

    They are no `concurrent.futures.ThreadPoolExecutor`, because that runs no function any more when
    the interpreter exits, and the client then still has to commit offsets and to look up brokers.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._workers: set[_Worker] = set()
        self._is_closed = False

    def run(self, function: Callable[[], Callable[[], object]]) -> None:
        """Calls `function` and then its result in an idle thread, or in a new one."""
        with self._lock:
            worker = self._idle.pop() if self._idle else None
            if worker is None:
                worker = _Worker(self, f"{self._name} worker {len(self._workers) + 1}")
                self._workers.add(worker)
        worker.functions.put(function)

    def on_idle(self, worker: _Worker) -> bool:
        """Returns True if `worker` waits for its next function, False if it ends."""
        with self._lock:
            if self._is_closed:
                self._workers.discard(worker)
                return False
            self._idle.append(worker)
            return True

    def close(self) -> None:
        """Ends the idle threads; a thread that runs a function ends when the function returns."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
            workers = [*self._workers]
        for worker in idle:
            worker.functions.put(None)
        ends_at = time.monotonic() + _JOIN_S
        for worker in sorted(workers, key=lambda each: each not in idle):
            if worker.thread is not threading.current_thread():
                left_s = max(0.0, ends_at - time.monotonic())
                worker.thread.join(None if worker in idle else left_s)


class _Worker:
    """A thread, and the queue of the functions that it calls; None ends the thread."""

    def __init__(self, threads: WorkerThreads, name: str) -> None:
        self.functions: SimpleQueue[Callable[[], Callable[[], object]] | None] = SimpleQueue()
        self._threads = threads
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while (function := self.functions.get()) is not None:
            pass_on = function()
            is_idle = self._threads.on_idle(self)
            pass_on()
            del function, pass_on
            if not is_idle:
                return


class _CurrentTask(threading.local):
    """The calls of the task for which the current thread runs a function, if any."""

    calls: _TaskCalls | None = None


_current: Final = _CurrentTask()


def submit_to_task(loop: asyncio.AbstractEventLoop, call: PlainCall) -> bool:
    """Passes `call` to the task for which the current thread runs a function.

    Returns False if there is no such task in `loop`; the call is then not made.
    """
    calls = _current.calls
    if calls is None or calls.loop is not loop:
        return False
    loop.call_soon_threadsafe(calls.add, call)
    return True


class _TaskCalls:
    """The calls that a function in a thread makes, and its outcome, for the task that awaits it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.result: Any = None
        self.error: BaseException | None = None
        self.has_ended = False
        self._waiting: deque[PlainCall] = deque()
        self._changed: asyncio.Future[None] | None = None
        self._is_closed = False

    # In the thread

    def run(self, context: Context, function: Callable[[], object]) -> Callable[[], object]:
        """Calls `function`; returns a function that passes the outcome to the task."""
        _current.calls = self
        result, error = None, None
        try:
            result = context.run(function)
        except BaseException as raised:  # noqa: BLE001 - the task raises it
            error = raised
        finally:
            _current.calls = None
        try:
            return partial(self._pass_on, result, error)
        finally:
            error = None  # the traceback of the error refers to this frame

    def _pass_on(self, result: object, error: BaseException | None) -> None:
        with suppress(RuntimeError):  # the event loop is closed: no task waits
            self.loop.call_soon_threadsafe(self._end, result, error)

    # In the event loop

    def _end(self, result: object, error: BaseException | None) -> None:
        self.result, self.error, self.has_ended = result, error, True
        self._wake()

    def add(self, call: PlainCall) -> None:
        """Adds a call of the thread; a call after the end of the task raises CancelledError."""
        if self._is_closed:
            call.fail(asyncio.CancelledError("the task of this function was cancelled"))
        else:
            self._waiting.append(call)
            self._wake()

    def _wake(self) -> None:
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)

    async def next(self) -> PlainCall | None:
        """Waits for the next call of the thread; returns None once the function has ended."""
        while not self._waiting:
            if self.has_ended:
                return None
            self._changed = self.loop.create_future()
            await self._changed
        return self._waiting.popleft()

    def close(self) -> None:
        """Cancels the calls that wait, and all later ones."""
        self._is_closed = True
        for call in self._waiting:
            call.fail(asyncio.CancelledError("the task of this function was cancelled"))


async def run_in_thread(threads: WorkerThreads, function: Callable[..., T], *args: Any) -> T:
    """Calls `function` in a thread; returns its result, or raises its error.

    If the task is cancelled, raises CancelledError at once: Python cannot end a thread. A call of
    `kproto.sync` that the function makes is cancelled too, and its later calls raise
    CancelledError.
    """
    calls = _TaskCalls(asyncio.get_running_loop())
    threads.run(partial(calls.run, copy_context(), partial(function, *args)))
    try:
        while (call := await calls.next()) is not None:
            await call.run()
    finally:
        calls.close()
    error = calls.error
    if error is None:
        result: T = calls.result
        return result
    try:
        if isinstance(error, SystemExit | KeyboardInterrupt | StopIteration):
            # These exceptions would end the event loop, or the coroutine.
            raise ConfigurationError(
                f"{function!r:.100} raised {error!r} in a thread: return, or raise kproto.Stop in "
                "a handler of run()"
            ) from error
        raise error
    finally:
        calls.error = error = None  # the traceback refers to this frame
