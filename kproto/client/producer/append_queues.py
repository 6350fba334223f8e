"""Queues the calls that wait to append records, by topic, in the order of the calls.

The queues only order the calls; each call itself waits for its metadata and for memory. Closing the
producer, or the abort of a transaction, evicts the waiting calls: their waits raise KprotoError.
"""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType

from ...wire.errors import KprotoError

__all__ = ["AppendQueues", "AppendTicket"]


class AppendQueues:
    """Holds a queue for each topic to which calls wait to append records."""

    def __init__(self) -> None:
        self.by_topic: dict[str, deque[AppendTicket]] = {}
        self.are_closed = False

    def enqueue_call(self, topic: str) -> AppendTicket:
        """Adds a call to the queue of a topic; returns its ticket."""
        ticket = AppendTicket(self, topic)
        self.by_topic.setdefault(topic, deque()).append(ticket)
        return ticket

    def tickets(self) -> list[AppendTicket]:
        """Returns the tickets of all waiting calls."""
        return [ticket for queue in self.by_topic.values() for ticket in queue]

    def close(self) -> None:
        """Makes all waiting calls, and all later calls that would wait, raise KprotoError."""
        if not self.are_closed:
            self.are_closed = True
            self.evict(KprotoError("the producer was closed before the record was appended"))

    def evict(self, error: KprotoError) -> None:
        """Makes all calls that are waiting now raise `error`. Later calls may wait again."""
        for ticket in self.tickets():
            ticket.evict(error)


class AppendTicket:
    """The entry of one call in its queue, from `enqueue_call` until `remove`.

    The call waits inside `with ticket`. An eviction cancels the wait, as `asyncio.timeout` does,
    and `with ticket` raises the error of the eviction.
    """

    __slots__ = (
        "_became_first",
        "_cancel_count",
        "_eviction",
        "_is_evicted",
        "_queues",
        "_removal",
        "_task",
        "topic",
    )

    def __init__(self, queues: AppendQueues, topic: str) -> None:
        self._queues = queues
        self.topic = topic
        self._became_first: asyncio.Future[None] | None = None
        self._removal: asyncio.Future[None] | None = None
        self._task: asyncio.Task[object] | None = None
        self._cancel_count = 0  # the number of cancellations before the wait
        self._is_evicted = False  # the wait was cancelled
        self._eviction: KprotoError | None = None

    @property
    def is_first(self) -> bool:
        """True if all earlier calls have left the queue."""
        return self._queues.by_topic[self.topic][0] is self

    async def wait_until_first(self) -> None:
        """Waits until all earlier calls have left the queue, with or without an error."""
        if not self.is_first:
            self._became_first = asyncio.get_running_loop().create_future()
            await self._became_first

    def removal(self) -> asyncio.Future[None]:
        """Returns a future that is done when the call leaves its queue.

        The call must still be in the queue.
        """
        if self._removal is None:
            self._removal = asyncio.get_running_loop().create_future()
        return self._removal

    def remove(self) -> None:
        """Removes the call from the queue, and wakes the next call."""
        queue = self._queues.by_topic[self.topic]
        queue.remove(self)
        if not queue:
            del self._queues.by_topic[self.topic]
        else:
            _resolve(queue[0]._became_first)
        _resolve(self._removal)

    def evict(self, error: KprotoError) -> None:
        """Makes this wait of the call, or its next wait, raise `error`."""
        if self._eviction is None:
            self._eviction = error
            if self._task is not None:
                self._is_evicted = True
                self._task.cancel()

    def __enter__(self) -> None:
        self._raise_if_evicted()
        self._task = asyncio.current_task()
        assert self._task is not None
        self._cancel_count = self._task.cancelling()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        task, self._task = self._task, None
        assert task is not None
        was_evicted = self._is_evicted and task.uncancel() <= self._cancel_count
        if error is None or (was_evicted and kind is asyncio.CancelledError):
            self._raise_if_evicted()

    def _raise_if_evicted(self) -> None:
        if self._eviction is not None:
            raise self._eviction from None
        if self._queues.are_closed:
            raise KprotoError("the producer was closed before the record was appended") from None


def _resolve(future: asyncio.Future[None] | None) -> None:
    if future is not None and not future.done():
        future.set_result(None)
