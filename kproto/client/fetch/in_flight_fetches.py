"""What a consumer has under way: fetches by broker, and what is looked for, each by its name.

Knows tasks alone: what they are for, and what comes of them, the consumer says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from ...wire.errors import KprotoError
from ..core.tasks import retrieve_exception
from .single_fetch import Fetch

__all__ = ["InFlightFetches"]


class InFlightFetches:
    """`fetches` has the brokers that may hold a fetch."""

    def __init__(self) -> None:
        self.fetches: dict[int, tuple[asyncio.Task[None], Fetch]] = {}
        self._looking: dict[str, asyncio.Task[None]] = {}
        self._timer: asyncio.Task[None] | None = None

    def fetch(self, node: int, fetch: Fetch, fetching: Coroutine[Any, Any, None]) -> None:
        """Let a fetch be under way at a broker that has none."""
        self.fetches[node] = (_started(fetching), fetch)

    def look(self, name: str, finding: Coroutine[Any, Any, None]) -> None:
        """Have something found out, unless that is under way."""
        if name in self._looking:
            finding.close()
        else:
            self._looking[name] = _started(finding)

    def give_up_looking(self, name: str) -> None:
        """End a search, whose answer nobody needs any more."""
        task = self._looking.pop(name, None)
        if task is not None:
            task.cancel()

    async def first(self, timer: Coroutine[Any, Any, None] | None) -> None:
        """Wait until something is done, or until `timer` is. Cancelled, it leaves the others.

        What is done already is not waited for: who is cancelled at his first wait goes on, too.
        """
        waited: list[asyncio.Task[None]] = [task for task, _ in self.fetches.values()]
        waited += self._looking.values()
        if any(task.done() for task in waited):
            if timer is not None:
                timer.close()
            return
        if timer is not None:
            self._timer = asyncio.create_task(timer)
            waited.append(self._timer)
        try:
            if waited:
                await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def found(self) -> Iterator[KprotoError]:
        """Take out what has been found; gives the errors of what could not be."""
        for name in [name for name, task in self._looking.items() if task.done()]:
            try:
                self._looking.pop(name).result()
            except KprotoError as fault:
                yield fault

    def fetched(self, take: Callable[[int, Fetch], None]) -> Iterator[KprotoError]:
        """Let `take` have each fetch that is done; gives the errors that it raises."""
        for node in [node for node, (task, _) in self.fetches.items() if task.done()]:
            task, fetch = self.fetches.pop(node)
            try:
                task.result()
                take(node, fetch)
            except KprotoError as fault:
                yield fault

    def give_up_fetches(self) -> list[Fetch]:
        """End all fetches without an answer; returns them."""
        given_up = list(self.fetches.values())
        self.fetches.clear()
        for task, _ in given_up:
            task.cancel()
        return [fetch for _, fetch in given_up]

    def cancel(self) -> list[asyncio.Task[None]]:
        """Give all of it up; returns the tasks, which end soon."""
        tasks: list[asyncio.Task[None]] = [task for task, _ in self.fetches.values()]
        tasks += self._looking.values()
        if self._timer is not None:
            tasks.append(self._timer)
        self.fetches.clear()
        self._looking.clear()
        for task in tasks:
            task.cancel()
        return tasks


def _started(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    task = asyncio.create_task(work)
    task.add_done_callback(retrieve_exception)
    return task
