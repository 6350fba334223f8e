"""`InFlightFetches`: the tasks of fetches and look-ups that are in flight.

It only tracks the tasks; the caller creates their coroutines, and processes their results.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any

from ...messages.fetch_response import FetchResponse
from ...wire.errors import KprotoError
from ..core.tasks import retrieve_exception
from ..metadata.cluster import TopicInfo, TopicPartition
from .fetch_session import FetchSession, RequestedPartition, SessionFetch
from .partition_state import TopicPartitionState

__all__ = ["Fetch", "InFlightFetches"]


@dataclass(slots=True)
class Fetch:
    """A fetch at one broker: its partitions and offsets, and its times in seconds of the clock.

    The response applies to `states` only: a partition that was moved or recreated meanwhile has
    another state. `sent` is the part of `requested` that the fetch session sends.
    """

    requested: dict[TopicPartition, RequestedPartition]
    states: dict[TopicPartition, TopicPartitionState]
    topics: dict[str, TopicInfo]
    session: FetchSession
    started_at: float
    ends_at: float
    ended_at: float = float("inf")
    sent: SessionFetch | None = None
    response: FetchResponse | KprotoError | None = None


class InFlightFetches:
    """Tracks the tasks: `fetches` by node id, look-ups by name."""

    def __init__(self) -> None:
        self.fetches: dict[int, tuple[asyncio.Task[None], Fetch]] = {}
        self._lookups: dict[str, asyncio.Task[None]] = {}
        self._timer: asyncio.Task[None] | None = None

    def fetch(self, node: int, fetch: Fetch, fetching: Coroutine[Any, Any, None]) -> None:
        """Starts a fetch at a broker that has none in flight."""
        self.fetches[node] = (_started(fetching), fetch)

    def start_lookup(self, name: str, lookup: Coroutine[Any, Any, None]) -> None:
        """Starts a look-up, unless another one of that name is running."""
        if name in self._lookups:
            lookup.close()
        else:
            self._lookups[name] = _started(lookup)

    def cancel_lookup(self, name: str) -> None:
        """Cancels a look-up."""
        task = self._lookups.pop(name, None)
        if task is not None:
            task.cancel()

    async def first(self, timer: Coroutine[Any, Any, None] | None) -> None:
        """Waits until a task or `timer` is done; if it is cancelled, the tasks continue.

        If a task is done already, it returns at once: so a caller whose every poll is cancelled at
        the first wait makes progress, too.
        """
        waited: list[asyncio.Task[None]] = [task for task, _ in self.fetches.values()]
        waited += self._lookups.values()
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

    def lookup_errors(self) -> Iterator[KprotoError]:
        """Removes completed look-ups; yields their errors."""
        for name in [name for name, task in self._lookups.items() if task.done()]:
            try:
                self._lookups.pop(name).result()
            except KprotoError as fault:
                yield fault

    def complete_fetches(self, take: Callable[[int, Fetch], None]) -> Iterator[KprotoError]:
        """Removes each completed fetch, and calls `take` with it; yields the errors."""
        for node in [node for node, (task, _) in self.fetches.items() if task.done()]:
            task, fetch = self.fetches.pop(node)
            try:
                task.result()
                take(node, fetch)
            except KprotoError as fault:
                yield fault

    def cancel_fetches(self) -> list[Fetch]:
        """Cancels all fetches; returns them."""
        cancelled = list(self.fetches.values())
        self.fetches.clear()
        for task, _ in cancelled:
            task.cancel()
        return [fetch for _, fetch in cancelled]

    def cancel(self) -> list[asyncio.Task[None]]:
        """Cancels all tasks; returns them."""
        tasks: list[asyncio.Task[None]] = [task for task, _ in self.fetches.values()]
        tasks += self._lookups.values()
        if self._timer is not None:
            tasks.append(self._timer)
        self.fetches.clear()
        self._lookups.clear()
        for task in tasks:
            task.cancel()
        return tasks


def _started(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    task = asyncio.create_task(work)
    task.add_done_callback(retrieve_exception)
    return task
