"""The clients of this process: each is opened once, and kept for whoever asks next.

A task of a stream lasts milliseconds, and the next one reads the same topics from the same brokers:
connections, and what is known of the cluster, outlive it. All of them run on one event loop, in a
thread of its own. A process that is forked begins with none.
"""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine

    from kproto.client import Client

    from .options.client_options import ClientOptions

__all__ = ["LoopTask", "begin", "close_clients", "run_on_loop", "shared_client", "with_client"]

T = TypeVar("T")

#: How long a client without users stays open, in seconds: longer than usual between two batches,
#: shorter than brokers keep an idle connection.
IDLE_TIMEOUT_S: Final = 300.0


class _SharedClient:
    """A client, how many use it now, and whether it has met its cluster."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.users = 0
        self.is_open = False
        self.closing: asyncio.TimerHandle | None = None

    async def open(self, *, retry: bool) -> None:
        """Meet the cluster, once; `retry`: for up to the client's `delivery_timeout_ms`."""
        if self.is_open:
            return
        if retry:
            await self.client.retrying(lambda: self.client.refresh([]))
        else:
            await self.client.refresh([])
        self.is_open = True


class _Thread(threading.local):
    """Whose thread this is."""

    home: _ClientLoop


_at = _Thread()


class _ClientLoop:
    """The event loop of this process, its thread, and the clients on it."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.clients: dict[ClientOptions, _SharedClient] = {}
        self.under_way: set[asyncio.Task[Any]] = set()
        self._thread = threading.Thread(target=self._run, name="kproto-clients", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        _at.home = self
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()

    def forget_later(self, options: ClientOptions) -> None:
        kept = self.clients[options]
        kept.closing = self.loop.call_later(IDLE_TIMEOUT_S, self.forget, options)

    def forget(self, options: ClientOptions) -> None:
        kept = self.clients.pop(options)
        self.run(kept.client.close())

    def run(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """A task that `close` ends; on the loop."""
        task = self.loop.create_task(work)
        self.under_way.add(task)
        task.add_done_callback(self.under_way.discard)
        return task

    async def close(self) -> None:
        """End what is under way, and close every client."""
        for task in self.under_way:
            task.cancel()
        await asyncio.gather(*self.under_way, return_exceptions=True)
        kept, self.clients = list(self.clients.values()), {}
        for each in kept:
            if each.closing is not None:
                each.closing.cancel()
        await asyncio.gather(*(each.client.close() for each in kept), return_exceptions=True)

    def end(self) -> None:
        """Stop the loop, once all that was posted before is done, and wait for the thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()


_home: _ClientLoop | None = None
_making = threading.Lock()


def _forked() -> None:
    """A process that was forked has none of the threads, and the lock may be held by one."""
    global _home, _making
    _home, _making = None, threading.Lock()


os.register_at_fork(after_in_child=_forked)


def _here() -> _ClientLoop:
    """The home of this process; where there may be none yet, `_making` is held."""
    global _home
    if _home is None:
        _home = _ClientLoop()
    return _home


class LoopTask(Generic[T]):
    """What runs on the loop of this process's clients, as seen from any other thread."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self._task: asyncio.Task[T] | None = None
        self._ended = threading.Event()
        try:
            with _making:  # not while the clients are being closed
                self._home = _here()
                self._home.loop.call_soon_threadsafe(self._begin)
        except BaseException:
            work.close()
            raise

    def _begin(self) -> None:
        self._task = self._home.run(self._work)
        self._task.add_done_callback(lambda _: self._ended.set())

    def tell(self, what: Callable[..., object], *arguments: object) -> None:
        """Call something on the loop; nothing where that is closed, and the work has ended."""
        with suppress(RuntimeError):
            self._home.loop.call_soon_threadsafe(what, *arguments)

    def result(self) -> T:
        """What came out. Where this thread is interrupted, the work has ended when that is raised.

        Raises:
            asyncio.CancelledError: it was ended; and whatever it raises.
        """
        try:
            self._ended.wait()
        except BaseException:
            self.end()
            raise
        assert self._task is not None
        return self._task.result()

    def end(self) -> None:
        """Cancel it, and wait until it has ended; what it raised is not told."""
        self.tell(self._cancel)
        self._ended.wait()

    def _cancel(self) -> None:
        assert self._task is not None  # it was begun in an earlier turn
        if not self._task.cancel() and not self._task.cancelled():
            self._task.exception()  # seen


def begin(work: Coroutine[Any, Any, T]) -> LoopTask[T]:
    """Let `work` run on the loop of this process's clients."""
    return LoopTask(work)


def run_on_loop(work: Coroutine[Any, Any, T]) -> T:
    """What `work` returns; it runs on the loop of this process's clients.

    Called from any other thread. Where this thread is interrupted, `work` has ended when that is
    raised.
    """
    return begin(work).result()


@asynccontextmanager
async def shared_client(options: ClientOptions, *, retry: bool) -> AsyncIterator[Client]:
    """A client of these options, shared with all others on the loop that ask for the same.

    To be used in work on that loop.

    One that is new meets its cluster first, `retry` or at once.

    Raises:
        KprotoError: no broker could be reached.
    """
    home = _at.home
    kept = home.clients.get(options)
    if kept is None:
        kept = home.clients[options] = _SharedClient(options.client())
    if kept.closing is not None:
        kept.closing.cancel()
        kept.closing = None
    kept.users += 1
    try:
        await kept.open(retry=retry)
        yield kept.client
    finally:
        kept.users -= 1
        if not kept.users and home.clients.get(options) is kept:
            if kept.is_open:
                home.forget_later(options)
            else:
                home.forget(options)


def with_client(
    options: ClientOptions,
    work: Callable[[Client], Awaitable[T]],
    *,
    retry: bool = False,
) -> T:
    """What `work` returns for a client of these options; called as `run_on_loop` is.

    A client that is new meets its cluster `retry`, or at once.

    Raises:
        KprotoError: no broker could be reached; and what `work` raises.
    """

    async def working() -> T:
        async with shared_client(options, retry=retry) as client:
            return await work(client)

    return run_on_loop(working())


def close_clients() -> None:
    """Close all clients of this process and end their thread; the next use begins anew."""
    global _home
    with _making:
        home, _home = _home, None
        if home is not None:
            asyncio.run_coroutine_threadsafe(home.close(), home.loop).result()
            home.end()
