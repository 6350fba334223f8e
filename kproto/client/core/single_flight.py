"""Merges requests: callers that arrive while a request is in flight share the next request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from ...tasks import start_task
from ...wire.errors import EncodeError

__all__ = ["SingleFlight"]

K = TypeVar("K")
A = TypeVar("A")


class SingleFlight(Generic[K, A]):
    """Sends one request at a time, for the keys that its callers pass, such as topics.

    While a request is in flight, further callers wait. The next request has the keys of all waiting
    callers.
    """

    def __init__(self, send: Callable[[frozenset[K]], Coroutine[Any, Any, A]]) -> None:
        self._send = send
        self._keys: set[K] = set()  # keys of the next request
        self._current: asyncio.Task[A] | None = None
        self._next: asyncio.Task[A] | None = None

    async def request(self, keys: frozenset[K]) -> A:
        """Returns the response to a request for `keys` and for the keys of other callers.

        This call uses only a request that is sent after the call began, because a request that was
        already in flight may return older data. Cancelling one caller cancels no other caller.
        Raises the errors of `send`.
        """
        self._keys |= keys
        task = self._next
        if task is None:
            task = self._next = start_task(self._run_after(self._current))
            task.add_done_callback(_retrieve_exception)
        try:
            return await asyncio.shield(task)
        except EncodeError:
            return await self._send(keys)  # keys of other callers must not fail this one

    async def _run_after(self, previous: asyncio.Task[A] | None) -> A:
        if previous is not None and not previous.done():
            await asyncio.wait([previous])
        self._current, self._next = self._next, None
        keys, self._keys = frozenset(self._keys), set()
        return await self._send(keys)

    async def wait_until_idle(self) -> None:
        """Waits until the current and the next request have ended.

        If the caller is cancelled, the requests continue.
        """
        tasks = [task for task in (self._current, self._next) if task is not None]
        if tasks:
            await asyncio.wait(tasks)


def _retrieve_exception(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()  # its waiters have raised it; without waiters it is retrieved here
