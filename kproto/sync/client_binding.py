"""`ClientBinding`: connects the objects of one client to the thread of the event loop."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from ..client.client import Client
from ..wire.errors import ConfigurationError
from .loop_thread import LoopThread, fork_count, loop_thread, process_lock

__all__ = ["ClientBinding"]

logger = logging.getLogger("kproto.client")


class ClientBinding:
    """An asyncio client, and the event loop's thread in which it is used.

    The first call that needs the event loop binds the client to it, so that a process may create
    clients, producers and consumers before it forks. After a fork, a child process creates the
    client again by `create`, because its connections belong to the parent.
    """

    def __init__(self, create: Callable[[], Client]) -> None:
        self._create = create
        self._client = create()
        self._forks = fork_count()
        self._thread: LoopThread | None = None
        self._inherited: list[object] = []
        self.is_closed = False
        self.is_closing = False

    @property
    def client(self) -> Client:
        """The asyncio client of this process."""
        if self._forks != fork_count():
            self._renew()
        return self._client

    def _renew(self) -> None:
        with process_lock():
            if self._forks != fork_count():
                self.keep(self._client)
                self._client = self._create()
                self._thread = None
                self._forks = fork_count()

    def keep(self, inherited: object) -> None:
        """Keeps an object of the parent process, whose connections the child must not close."""
        self._inherited.append(inherited)

    @property
    def is_bound(self) -> bool:
        """True if the client has used its event loop, and was not closed."""
        return self._thread is not None and self._forks == fork_count() and not self.is_closed

    def thread(self) -> LoopThread:
        """Returns the event loop's thread; binds the client to it at the first call.

        Raises ConfigurationError if the client is closed, and the errors of `loop_thread`.
        """
        if self._forks != fork_count():
            self._renew()
        if self._thread is None:
            with process_lock():
                if self._thread is None:
                    self.check_open()
                    self._thread = loop_thread(self)
        return self._thread

    def check_open(self) -> None:
        """Raises ConfigurationError if the client is closed."""
        if self.is_closed:
            raise ConfigurationError("the client is closed: create another one")

    # Closing

    async def close_and_unbind(self, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Awaits `close()`, then ends the binding; runs in the event loop."""
        self.is_closing = True
        try:
            await close()
        finally:
            self._unbind()

    async def open(self) -> None:
        """Connects to the cluster; unbinds the client if that fails. Runs in the event loop."""
        try:
            await self._client.__aenter__()
        except BaseException:
            self._unbind()
            raise

    def _unbind(self) -> None:
        self.is_closed = True
        if self._thread is not None:
            self._thread.remove(self)

    def after_close(self) -> None:
        """Waits for the end of the event loop's thread, if this was its last client."""
        if self._thread is None:
            self.is_closed = True
        elif self.is_closed and self._forks == fork_count():
            self._thread.join()

    def close_in_background(self) -> None:
        """Closes the client without a wait, because the program has dropped it."""
        thread = self._thread
        if thread is not None and self.is_bound:
            with suppress(RuntimeError):  # the event loop is closed
                thread.loop.call_soon_threadsafe(self._start_close, thread)

    def _start_close(self, thread: LoopThread) -> None:
        thread.start_task(self._close_dropped())

    async def _close_dropped(self) -> None:
        await self.close_at_exit()
        self._unbind()

    async def close_at_exit(self) -> None:
        """Closes the client in the time of `error_flush_ms`; logs errors."""
        for error in await self._client._close(None, after=_UnclosedError()):
            logger.warning("not raised: %s", error)

    @property
    def close_limit_s(self) -> float:
        """The longest time that `close_at_exit` takes, in seconds."""
        return self._client.settings.max_cancelled_close_ms / 1000


class _UnclosedError(Exception):
    """The reason for the close of a client that the program has not closed."""
