"""Asking for many things at once: what is wanted while a request is under way joins the next."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from ...wire.errors import EncodeError

__all__ = ["SingleFlight"]

K = TypeVar("K")
A = TypeVar("A")


class SingleFlight(Generic[K, A]):
    """One request of a kind at a time, for whatever its callers want to know."""

    def __init__(self, ask: Callable[[frozenset[K]], Coroutine[Any, Any, A]]) -> None:
        self._ask = ask
        self._wanted: set[K] = set()  # by the next request
        self._current: asyncio.Task[A] | None = None
        self._next: asyncio.Task[A] | None = None

    async def answer(self, wanted: frozenset[K]) -> A:
        """The answer of a request that asks for `wanted`, and for what others want besides.

        It is sent after this call: the answer to one that is under way may be older than what its
        caller knows already. Who is cancelled takes nobody along. Raises what `ask` raises.
        """
        self._wanted |= wanted
        task = self._next
        if task is None:
            task = self._next = asyncio.create_task(self._turn(self._current))
            task.add_done_callback(_seen)
        try:
            return await asyncio.shield(task)
        except EncodeError:
            return await self._ask(wanted)  # what others want must not spoil it

    async def _turn(self, before: asyncio.Task[A] | None) -> A:
        if before is not None and not before.done():
            await asyncio.wait([before])
        self._current, self._next = self._next, None
        wanted, self._wanted = frozenset(self._wanted), set()
        return await self._ask(wanted)

    async def ended(self) -> None:
        """Wait until nothing is under way. Who is cancelled meanwhile takes nobody along."""
        tasks = [task for task in (self._current, self._next) if task is not None]
        if tasks:
            await asyncio.wait(tasks)


def _seen(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()  # whoever waited has it; when nobody does any more, it is seen here
