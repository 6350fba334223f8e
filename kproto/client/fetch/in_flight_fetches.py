"""`InFlightFetches`: the tasks of fetches and look-ups that are in flight.

It starts, tracks and cancels the tasks; the caller creates their coroutines, and processes their
results.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...messages.fetch_response import FetchResponse, PartitionData
from ...tasks import start_task
from ...wire.errors import KprotoError
from ..core.tasks import retrieve_exception
from ..metadata.cluster import TopicPartition
from .fetch_session import FetchSession, SessionFetch
from .partition_state import TopicPartitionState

__all__ = ["InFlightFetch", "InFlightFetches"]


@dataclass(slots=True)
class InFlightFetch:
    """A fetch at one broker, and its times in seconds of the clock.

    `session` has the partitions of the fetch, and `states` has their states when it was started.
    The response is used for a partition only if the partition still has the state that `states` has
    for it. A partition gets another state by a seek, or if its topic is recreated. `sent` has the
    partitions that the request names: without the unchanged partitions of the session (KIP-227).
    The response has at most `max_bytes`, or a single batch that is larger. `unprocessed` iterates
    over the partitions of the response that are not processed yet, after a part of them was
    processed; `faults` has the errors of that part.
    """

    session: FetchSession
    states: Mapping[TopicPartition, TopicPartitionState]
    started_at: float
    ends_at: float
    max_bytes: int
    without_rack: bool
    ended_at: float = float("inf")
    sent: SessionFetch | None = None
    response: FetchResponse | KprotoError | None = None
    unprocessed: Iterator[tuple[TopicPartition, PartitionData]] | None = None
    faults: list[KprotoError] = field(default_factory=list)


class InFlightFetches:
    """Tracks the tasks of fetches and look-ups.

    `fetches` has the task of the fetch in flight at each broker, by node id. Look-ups have names.
    """

    def __init__(self) -> None:
        self.fetches: dict[int, tuple[asyncio.Task[None], InFlightFetch]] = {}
        self._lookups: dict[str, asyncio.Task[None]] = {}
        self._timer: asyncio.Task[None] | None = None

    def fetch(self, node: int, fetch: InFlightFetch, fetching: Coroutine[Any, Any, None]) -> None:
        """Starts a fetch at a broker that has none in flight."""
        self.fetches[node] = (_started(fetching), fetch)

    @property
    def max_bytes(self) -> int:
        """The sum of the maximum response sizes of all fetches in flight, in bytes."""
        return sum(fetch.max_bytes for _, fetch in self.fetches.values())

    def start_lookup(self, name: str, lookup: Coroutine[Any, Any, None]) -> None:
        """Starts the look-up `name`.

        Does nothing if a look-up with this name is running, or has completed and is not removed
        yet.
        """
        if name in self._lookups:
            lookup.close()
        else:
            self._lookups[name] = _started(lookup)

    def cancel_lookup(self, name: str) -> None:
        """Cancels and removes the look-up with this name, if there is one."""
        task = self._lookups.pop(name, None)
        if task is not None:
            task.cancel()

    async def first(self, timer: Coroutine[Any, Any, None] | None) -> None:
        """Waits until a fetch, a look-up or `timer` is done, then cancels `timer`.

        If the wait is cancelled, the tasks continue. If a task is done already, the call returns at
        once. So a caller makes progress even if each of its polls is cancelled at the first wait.
        Also returns at once if there is no task and no `timer`.
        """
        waited: list[asyncio.Task[None]] = [task for task, _ in self.fetches.values()]
        waited += self._lookups.values()
        if any(task.done() for task in waited):
            if timer is not None:
                timer.close()
            return
        if timer is not None:
            self._timer = start_task(timer)
            waited.append(self._timer)
        try:
            if waited:
                await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def lookup_errors(self) -> Iterator[KprotoError]:
        """Removes completed look-ups; yields their KprotoErrors, and raises any other error."""
        for name in [name for name, task in self._lookups.items() if task.done()]:
            try:
                self._lookups.pop(name).result()
            except KprotoError as fault:
                yield fault

    def completed_fetches(self) -> Iterator[tuple[int, InFlightFetch]]:
        """Yields each completed fetch with its node id; `remove` removes it.

        Raises any error other than KprotoError, which is in `InFlightFetch.response`.
        """
        for node in [node for node, (task, _) in self.fetches.items() if task.done()]:
            task, fetch = self.fetches[node]
            if task.cancelled() or task.exception() is not None:
                self.remove(node)
            task.result()
            yield node, fetch

    def remove(self, node: int) -> None:
        """Removes the fetch at a broker, because its response is processed."""
        del self.fetches[node]

    def cancel_fetches(self) -> list[InFlightFetch]:
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
    task = start_task(work)
    task.add_done_callback(retrieve_exception)
    return task
