"""Shares the clients of this process: each is opened once, and stays open for later tasks.

A task of a stream lasts milliseconds, and the next task reads the same topics from the same
brokers, so connections and cluster metadata outlive a task. All clients run on one event loop in
its own thread. A forked process starts without clients.
"""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from kproto.wire.errors import KprotoError

from .options.option_words import name_options

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator

    from kproto.client import Client

    from .options.client_options import ClientOptions

__all__ = [
    "LoopTask",
    "close_clients",
    "run_on_loop",
    "shared_client",
    "start_on_loop",
    "with_client",
]

T = TypeVar("T")

#: How long an unused client stays open, in seconds: longer than most intervals between two
#: micro-batches, shorter than the brokers' `connections.max.idle.ms`.
IDLE_TIMEOUT_S: Final = 300.0


class _SharedClient:
    """A client, the number of its users, and whether it has cluster metadata."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.users = 0
        self.is_open = False
        self.closing: asyncio.TimerHandle | None = None

    async def open(self, *, retry: bool) -> None:
        """Requests metadata once; with `retry`, retries for up to the client's `api_timeout_ms`."""
        if self.is_open:
            return
        if retry:
            await self.client.retrying(lambda: self.client.refresh([]))
        else:
            await self.client.refresh([])
        self.is_open = True


class _ThreadLocal(threading.local):
    """The client loop that runs in this thread; unset in all other threads."""

    client_loop: _ClientLoop


_thread_local = _ThreadLocal()


class _ClientLoop:
    """The event loop of this process, its thread, and the clients on it."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.clients: dict[ClientOptions, _SharedClient] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._thread = threading.Thread(target=self._run, name="kproto-clients", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        _thread_local.client_loop = self
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()

    def close_when_idle(self, options: ClientOptions) -> None:
        """Closes a client after `IDLE_TIMEOUT_S`, if no task uses it before that."""
        shared = self.clients[options]
        shared.closing = self.loop.call_later(IDLE_TIMEOUT_S, self.close_client, options)

    def close_client(self, options: ClientOptions) -> None:
        shared = self.clients.pop(options)
        self.create_task(shared.client.close())

    def create_task(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Starts a task, which `close` cancels. Call this method in the loop's thread."""
        task = self.loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """Cancels all tasks, then closes all clients."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        clients, self.clients = list(self.clients.values()), {}
        for shared in clients:
            if shared.closing is not None:
                shared.closing.cancel()
        await asyncio.gather(*(each.client.close() for each in clients), return_exceptions=True)

    def stop(self) -> None:
        """Runs the queued callbacks of the event loop, then stops the loop and joins its thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()


_client_loop: _ClientLoop | None = None
_lock = threading.Lock()


def _after_fork() -> None:
    """Resets the state in a forked process, which has no threads; `_lock` may be locked there."""
    global _client_loop, _lock
    _client_loop, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def _current_loop() -> _ClientLoop:
    """Returns the client loop of this process; starts it at first use. The caller holds `_lock`."""
    global _client_loop
    if _client_loop is None:
        _client_loop = _ClientLoop()
    return _client_loop


class LoopTask(Generic[T]):
    """Runs a coroutine on the client loop for a caller in another thread."""

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine
        self._task: asyncio.Task[T] | None = None
        self._ended = threading.Event()
        try:
            with _lock:  # not while `close_clients` stops the loop
                self._client_loop = _current_loop()
                self._client_loop.loop.call_soon_threadsafe(self._start)
        except BaseException:
            coroutine.close()
            raise

    def _start(self) -> None:
        self._task = self._client_loop.create_task(self._coroutine)
        self._task.add_done_callback(lambda _: self._ended.set())

    def call_soon(self, callback: Callable[..., object], *arguments: object) -> None:
        """Calls `callback` on the loop; does nothing if the loop is closed."""
        with suppress(RuntimeError):
            self._client_loop.loop.call_soon_threadsafe(callback, *arguments)

    def result(self) -> T:
        """Waits for the result. If the wait is interrupted, first cancels the task.

        Raises:
            asyncio.CancelledError: the task was cancelled.
            Exception: any error of the coroutine.
        """
        try:
            self._ended.wait()
        except BaseException:
            self.cancel()
            raise
        assert self._task is not None
        return self._task.result()

    def cancel(self) -> None:
        """Cancels the task, waits until it has ended, and ignores its error."""
        self.call_soon(self._cancel)
        self._ended.wait()

    def _cancel(self) -> None:
        assert self._task is not None  # the loop ran `_start` before this callback
        if not self._task.cancel() and not self._task.cancelled():
            self._task.exception()  # marks the error as retrieved, so that asyncio does not log it


def start_on_loop(coroutine: Coroutine[Any, Any, T]) -> LoopTask[T]:
    """Starts a coroutine on the event loop of this process's clients; returns its task."""
    return LoopTask(coroutine)


def run_on_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine on the loop of this process's clients, and returns the result.

    Call this function from any thread except the loop's. If the call is interrupted, the coroutine
    is cancelled and has ended before the interrupt is raised.
    """
    return start_on_loop(coroutine).result()


@contextmanager
def _naming_options(options: ClientOptions) -> Iterator[None]:
    """Makes an error of the `with` block name options in place of the client's settings."""
    try:
        yield
    except KprotoError as error:
        name_options(error, [name for name, _ in options.properties])
        raise


@asynccontextmanager
async def shared_client(options: ClientOptions, *, retry: bool) -> AsyncIterator[Client]:
    """Yields a client with these options; all callers with equal options share one client.

    Use the client in a coroutine on the client loop. A new client first requests metadata; with
    `retry`, the client retries for up to its `api_timeout_ms`.

    Raises:
        KprotoError: no broker is reachable. This error, and an error of the `async with` block,
            names options in place of the client's settings.
    """
    client_loop = _thread_local.client_loop
    shared = client_loop.clients.get(options)
    if shared is None:
        with _naming_options(options):
            shared = client_loop.clients[options] = _SharedClient(options.client())
    if shared.closing is not None:
        shared.closing.cancel()
        shared.closing = None
    shared.users += 1
    try:
        with _naming_options(options):
            await shared.open(retry=retry)
            yield shared.client
    finally:
        shared.users -= 1
        if not shared.users and client_loop.clients.get(options) is shared:
            if shared.is_open:
                client_loop.close_when_idle(options)
            else:
                client_loop.close_client(options)


def with_client(
    options: ClientOptions,
    function: Callable[[Client], Awaitable[T]],
    *,
    retry: bool = False,
) -> T:
    """Runs `function` with a shared client of these options, and returns the result.

    Call `with_client` from any thread except the client loop's.

    Raises:
        KprotoError: no broker is reachable; or any error of `function`.
    """

    async def run() -> T:
        async with shared_client(options, retry=retry) as client:
            return await function(client)

    return run_on_loop(run())


def close_clients() -> None:
    """Cancels the tasks of the client loop, closes its clients, and stops the loop and its thread.

    The next call that needs a client starts a new loop.
    """
    global _client_loop
    with _lock:
        client_loop, _client_loop = _client_loop, None
        if client_loop is not None:
            asyncio.run_coroutine_threadsafe(client_loop.close(), client_loop.loop).result()
            client_loop.stop()
