"""`LoopThread`: the event loop of all blocking clients of a process, in a thread of its own.

The first client starts the thread, and the close of the last client ends it. A process that was
forked has no thread of its parent: it starts another one. At the exit of the interpreter, open
clients are closed, which sends their last records, commits, and leaves the groups.

`kproto.loop_thread` differs: it opens one embedded broker, or one client of the pytest plugin, for
a `with` block, in an event loop of its own, and handles neither forks nor interrupted calls.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import selectors
import sys
import threading
import warnings
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Final, Protocol

from ..wire.errors import ConfigurationError
from .calls import Call, PlainCall, TaskLoop
from .worker_threads import WorkerThreads, submit_to_task

__all__ = [
    "LoopThread",
    "OpenClient",
    "fork_count",
    "loop_thread",
    "process_lock",
    "worker_threads",
]

logger = logging.getLogger("kproto.client")

_NAME: Final = "kproto.sync"

#: At the exit of the interpreter, the close of the clients has this many seconds besides the time
#: that the clients' own settings limit; a thread that hangs must not block the exit.
_EXIT_S: Final = 5.0


class OpenClient(Protocol):
    """The methods of a bound client that the event loop's thread calls."""

    @property
    def is_closing(self) -> bool:
        """True once the program has called `close`."""
        ...

    async def close_at_exit(self) -> None:
        """Closes the client in the time of `error_flush_ms`; logs errors."""
        ...

    @property
    def close_limit_s(self) -> float:
        """The longest time that `close_at_exit` takes, in seconds."""
        ...


class _Loop(TaskLoop):
    """An event loop whose blocking calls, such as name look-ups, run in `threads`.

    The default executor of asyncio accepts no function when the interpreter exits.
    """

    threads: WorkerThreads

    def run_in_executor(  # type: ignore[override]  # the inherited one infers the result's type
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Calls `func` in a thread; returns the future of its result."""
        if executor is not None:
            return super().run_in_executor(executor, func, *args)
        future = self.create_future()

        def run() -> Callable[[], None]:
            outcome: tuple[Any, BaseException | None]
            try:
                outcome = (func(*args), None)
            except BaseException as error:  # noqa: BLE001 - the future raises it
                outcome = (None, error)
            return partial(pass_on, *outcome)

        def pass_on(result: Any, error: BaseException | None) -> None:
            with suppress(RuntimeError):  # the event loop is closed
                self.call_soon_threadsafe(_set_outcome, future, result, error)

        self.threads.run(run)
        return future


def _set_outcome(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


class LoopThread:
    """An event loop in a daemon thread; `call` and `call_plain` carry out calls in it.

    The thread is a daemon, because the interpreter waits for other threads before it calls
    `atexit` functions, and one of these ends this thread.
    """

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self.loop = _Loop(self._selector)
        self.threads = self.loop.threads = WorkerThreads(_NAME)
        self.clients: set[OpenClient] = set()
        self.is_ending = False
        self.is_forked = False
        self._submit_lock = threading.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, name=_NAME, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        loop = self.loop
        try:
            loop.run_forever()
        finally:
            tasks = asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            if tasks:
                loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    # Calls

    def call(
        self,
        function: Callable[..., Any],
        *args: Any,
        undo: Callable[[], object] | None,
        **kwargs: Any,
    ) -> Any:
        """Runs a coroutine function in the event loop, and waits for its end.

        Returns its result, or raises its error. If the wait is interrupted, for example by Ctrl-C,
        cancels the coroutine and raises the exception at once; if the coroutine has succeeded
        already, calls `undo` in the event loop. Raises ConfigurationError in the thread of the
        event loop, where the wait would never end, and once the event loop has ended.
        """
        return Call(self.loop, function, args, kwargs, undo).wait(self._submit)

    def call_plain(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Calls a plain function in the event loop, as `call` does."""
        if threading.current_thread() is self._thread:
            return function(*args, **kwargs)  # such as `seek` in a hook: it does not wait
        return PlainCall(function, args, kwargs).wait(self._submit)

    def _submit(self, call: PlainCall) -> None:
        if threading.current_thread() is self._thread:
            raise ConfigurationError(
                "a hook, a partitioner or a callback of a delivery makes a blocking call: it runs "
                "in the thread of the event loop, and would wait for itself"
            )
        with self._submit_lock:  # the event loop starts each call that it accepts
            if self.is_ending:
                raise ConfigurationError("the client is closed: create another one")
            if not submit_to_task(self.loop, call):
                self.loop.call_soon_threadsafe(call.start)

    def start_task(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Starts a task for which no thread waits; call it in the event loop."""
        task = self.loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Clients

    def add(self, client: OpenClient) -> None:
        """Keeps the event loop running until `remove` is called for `client`."""
        self.clients.add(client)

    def remove(self, client: OpenClient) -> None:
        """Ends the event loop if `client` was its last client; the event loop calls it."""
        with _state.lock, self._submit_lock:
            self.clients.discard(client)
            if self.clients or self.is_ending:
                return
            self.is_ending = True
            if _state.current is self:
                _state.current = None
        self.loop.call_soon(self.loop.stop)

    def join(self) -> None:
        """Waits for the end of the thread, if the event loop has no client left."""
        if self.is_ending and threading.current_thread() is not self._thread:
            self._thread.join()
            self.threads.close()

    # The end of the process

    def close_at_exit(self) -> None:
        """Closes the clients that are still open, in the limits of their settings."""
        clients = [*self.clients]
        if not clients:
            return
        limit_s = max(each.close_limit_s for each in clients) + _EXIT_S
        future = asyncio.run_coroutine_threadsafe(self._close_all(clients), self.loop)
        try:
            future.result(limit_s)
        except Exception as error:  # noqa: BLE001 - the interpreter exits
            logger.warning("not closed at the exit of the interpreter: %r", error)
        self._thread.join(limit_s)
        self.threads.close()
        if not all(each.is_closing for each in clients):
            warnings.warn(
                "a client of kproto.sync was not closed: use `with`, or call its `close()`",
                ResourceWarning,
                stacklevel=2,
            )

    async def _close_all(self, clients: list[OpenClient]) -> None:
        await asyncio.gather(*(each.close_at_exit() for each in clients), return_exceptions=True)
        for client in clients:
            self.remove(client)

    def abandon_after_fork(self) -> None:
        """Closes the inherited sockets in a forked process; the parent continues to use them.

        Otherwise a broker would not notice that the parent has closed a connection. Each file
        descriptor becomes the end of a pipe, because the objects that have its number stay: if they
        closed the number later, they could close a new file of the child.
        """
        self.is_forked = self.is_ending = True
        numbers = [key.fd for key in (self._selector.get_map() or {}).values()]
        if isinstance(self._selector, selectors.EpollSelector):
            numbers.append(
                self._selector.fileno()
            )  # the parent and the child share what it watches
        reading, writing = os.pipe()
        os.close(writing)
        for number in numbers:
            with suppress(OSError):
                os.dup2(reading, number, inheritable=False)
        os.close(reading)


class _State:
    """The present event loop of this process, and those that it has inherited by forks."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.current: LoopThread | None = None
        #: They are kept: their connections belong to the parent, and must not be destroyed here.
        self.inherited: list[LoopThread] = []
        self.forks = 0
        self.has_exit_hook = False


_state: Final = _State()


def worker_threads() -> WorkerThreads:
    """Returns the threads of the running event loop, which must be that of a `LoopThread`."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, _Loop), "it runs in a LoopThread"
    return loop.threads


def fork_count() -> int:
    """Returns how often this process and its ancestors were forked since the import."""
    return _state.forks


def process_lock() -> threading.RLock:
    """Returns the lock of this process, which guards the bindings of its clients."""
    return _state.lock


def loop_thread(client: OpenClient) -> LoopThread:
    """Returns the event loop's thread of this process, and adds `client` to it.

    Starts the thread if no client is open. Raises ConfigurationError if gevent or eventlet has
    replaced Python's threads.
    """
    with _state.lock:
        current = _state.current
        if current is None:
            _check_threads()
            current = _state.current = LoopThread()
            _register_exit()
        current.add(client)
        return current


def _check_threads() -> None:
    """Raises ConfigurationError if a library has replaced the threads of the standard library."""
    patched = {
        "gevent": ("gevent.monkey", "is_module_patched", "threading"),
        "eventlet": ("eventlet.patcher", "is_monkey_patched", "thread"),
    }
    for library, (module, function, name) in patched.items():
        check = getattr(sys.modules.get(module), function, None)
        if check is not None and check(name):
            raise ConfigurationError(
                f"{library} has replaced Python's threads, and the event loop of kproto.sync needs "
                f"a real thread: start the process without {library}'s monkey patches, for example "
                "with thread workers (gunicorn: --worker-class gthread)"
            )


def _register_exit() -> None:
    if not _state.has_exit_hook:
        _state.has_exit_hook = True
        atexit.register(_close_at_exit)
    # A child process of multiprocessing ends without the functions of atexit.
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None and processes.parent_process() is not None:
        from multiprocessing.util import Finalize

        Finalize(None, _close_at_exit, exitpriority=0)


def _close_at_exit() -> None:
    current = _state.current
    if current is not None:
        current.close_at_exit()


def _in_child() -> None:
    _state.lock = threading.RLock()
    _state.forks += 1
    current, _state.current = _state.current, None
    if current is not None:
        _state.inherited.append(current)
        current.abandon_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _state.lock.acquire(),
        after_in_parent=lambda: _state.lock.release(),
        after_in_child=_in_child,
    )
