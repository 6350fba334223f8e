"""Merges requests: callers that arrive while a request is in flight share the next request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from ...wire.errors import EncodeError

__all__ = ["SingleFlight"]

K = TypeVar("K")
A = TypeVar("A")


class SingleFlight(Generic[K, A]):
    """Sends one request of a kind at a time, for the keys of all callers."""

    def __init__(self, ask: Callable[[frozenset[K]], Coroutine[Any, Any, A]]) -> None:
        self._ask = ask
        self._wanted: set[K] = set()  # keys of the next request
        self._current: asyncio.Task[A] | None = None
        self._next: asyncio.Task[A] | None = None

    async def answer(self, wanted: frozenset[K]) -> A:
        """Returns the response to a request for `wanted` and for the keys of other callers.

        The request is sent after this call, because the response to a request in flight may be
        older than the knowledge of the caller. Cancelling one caller cancels no other. Raises the
        errors of `ask`.
        """
        self._wanted |= wanted
        task = self._next
        if task is None:
            task = self._next = asyncio.create_task(self._turn(self._current))
            task.add_done_callback(_seen)
        try:
            return await asyncio.shield(task)
        except EncodeError:
            return await self._ask(wanted)  # keys of other callers must not fail this one

    async def _turn(self, before: asyncio.Task[A] | None) -> A:
        if before is not None and not before.done():
            await asyncio.wait([before])
        self._current, self._next = self._next, None
        wanted, self._wanted = frozenset(self._wanted), set()
        return await self._ask(wanted)

    async def ended(self) -> None:
        """Waits until no request is in flight. Cancelling the wait cancels no request."""
        tasks = [task for task in (self._current, self._next) if task is not None]
        if tasks:
            await asyncio.wait(tasks)


def _seen(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()  # its waiters have raised it; without waiters it is retrieved here
