"""The clients of this process: each is opened once, and kept for whoever asks next.

A task of a stream lasts milliseconds, and the next one reads the same topics from the same brokers:
connections, and what is known of the cluster, outlive it. All of them run on one event loop, in a
thread of its own. A process that is forked begins with none.
"""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine

    from kproto.client import Client

    from .options.client_options import ClientOptions

__all__ = ["close_clients", "on_loop", "shared_client", "with_client"]

T = TypeVar("T")

#: How long a client without users stays open, in seconds: longer than usual between two batches,
#: shorter than brokers keep an idle connection.
KEPT_S: Final = 300.0


class _Kept:
    """A client, and how many use it now."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.users = 0
        self.closing: asyncio.TimerHandle | None = None


class _Home:
    """The event loop of this process, its thread, and the clients on it."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.clients: dict[ClientOptions, _Kept] = {}
        self.ends: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, name="kproto-clients", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()

    def forget_later(self, options: ClientOptions) -> None:
        kept = self.clients[options]
        kept.closing = self.loop.call_later(KEPT_S, self._forget, options)

    def _forget(self, options: ClientOptions) -> None:
        kept = self.clients.pop(options)
        end = self.loop.create_task(kept.client.close())
        self.ends.add(end)
        end.add_done_callback(self.ends.discard)

    async def close(self) -> None:
        """Close every client, also of those that use one still."""
        kept, self.clients = list(self.clients.values()), {}
        for each in kept:
            if each.closing is not None:
                each.closing.cancel()
            await each.client.close()
        await asyncio.gather(*self.ends)

    def end(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()


_home: _Home | None = None
_making = threading.Lock()


def _here() -> _Home:
    global _home, _making
    if _home is None or _home.process != os.getpid():
        if _home is not None:
            _making = threading.Lock()  # a thread that was not forked may hold the old one
        with _making:
            if _home is None or _home.process != os.getpid():
                _home = _Home()
    return _home


def on_loop(work: Coroutine[Any, Any, T]) -> T:
    """What `work` returns; it runs on the loop of this process's clients.

    Called from any other thread. Where this thread is interrupted, `work` is cancelled, and has
    ended when that is raised.
    """
    future = asyncio.run_coroutine_threadsafe(work, _here().loop)
    try:
        return future.result()
    except BaseException:
        if not future.done():
            ended = threading.Event()
            future.add_done_callback(lambda _: ended.set())
            future.cancel()
            ended.wait()
        raise


@asynccontextmanager
async def shared_client(options: ClientOptions) -> AsyncIterator[Client]:
    """A client of these options, shared with all others on the loop that ask for the same."""
    home = _here()
    kept = home.clients.get(options)
    if kept is None:
        kept = home.clients[options] = _Kept(options.client())
    if kept.closing is not None:
        kept.closing.cancel()
        kept.closing = None
    kept.users += 1
    try:
        yield kept.client
    finally:
        kept.users -= 1
        if not kept.users and home.clients.get(options) is kept:
            home.forget_later(options)


def with_client(options: ClientOptions, work: Callable[[Client], Awaitable[T]]) -> T:
    """What `work` returns for a client of these options; called as `on_loop` is.

    Raises:
        KprotoError: no broker could be reached within the client's `delivery_timeout_ms`; and what
            `work` raises.
    """

    async def working() -> T:
        async with shared_client(options) as client:
            # Not `async with client`, which fails at once when no broker can be reached.
            await client.retrying(lambda: client.refresh([]))
            return await work(client)

    return on_loop(working())


def close_clients() -> None:
    """Close all clients of this process and end their thread; the next use begins anew."""
    global _home
    home, _home = _home, None
    if home is not None and home.process == os.getpid():
        asyncio.run_coroutine_threadsafe(home.close(), home.loop).result()
        home.end()
