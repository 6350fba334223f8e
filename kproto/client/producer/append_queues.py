"""Queues the calls that wait to append records, by topic, in the order of the calls.

Who stands where, whose turn it is, and who is sent away when the producer closes. Knows no record,
no metadata and no buffer: what a call waits for is its own.
"""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType

from ...wire.errors import KprotoError

__all__ = ["AppendQueues", "AppendTicket"]


class AppendQueues:
    """The line of every topic that somebody waits for. A topic that nobody waits for has none."""

    def __init__(self) -> None:
        self.by_topic: dict[str, deque[AppendTicket]] = {}
        self.are_closed = False

    def enqueue_call(self, topic: str) -> AppendTicket:
        """The last place of a topic's line."""
        place = AppendTicket(self, topic)
        self.by_topic.setdefault(topic, deque()).append(place)
        return place

    def tickets(self) -> list[AppendTicket]:
        """Everybody who waits now."""
        return [place for line in self.by_topic.values() for place in line]

    def close(self) -> None:
        """Send everybody away, now and from now on."""
        if not self.are_closed:
            self.are_closed = True
            for place in self.tickets():
                place.send_away()


class AppendTicket:
    """Keeps the place of one call, from `AppendQueues.enqueue_call` until its records are appended.

    What it waits for it waits for within `with place`, which raises KprotoError once the lines are
    closed: the wait is cancelled, as `asyncio.timeout` does it.
    """

    __slots__ = ("_cancelling", "_is_sent_away", "_left", "_lines", "_task", "_turn", "topic")

    def __init__(self, lines: AppendQueues, topic: str) -> None:
        self._lines = lines
        self.topic = topic
        self._turn: asyncio.Future[None] | None = None
        self._left: asyncio.Future[None] | None = None
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0  # how often somebody else has cancelled the task
        self._is_sent_away = False

    @property
    def is_first(self) -> bool:
        """True when all calls before this one have given their records."""
        return self._lines.by_topic[self.topic][0] is self

    async def ordinal(self) -> None:
        """Wait until it is the first."""
        if not self.is_first:
            self._turn = asyncio.get_running_loop().create_future()
            await self._turn

    def left(self) -> asyncio.Future[None]:
        """What is done when it has left. To be asked for while it stands there."""
        if self._left is None:
            self._left = asyncio.get_running_loop().create_future()
        return self._left

    def leave(self) -> None:
        """Let the next one go on."""
        line = self._lines.by_topic[self.topic]
        line.remove(self)
        if not line:
            del self._lines.by_topic[self.topic]
        else:
            _set(line[0]._turn)
        _set(self._left)

    def send_away(self) -> None:
        """End what is waited for."""
        if self._task is not None:
            self._is_sent_away = True
            self._task.cancel()

    def __enter__(self) -> None:
        self._raise_if_closed()
        self._task = asyncio.current_task()
        assert self._task is not None
        self._cancelling = self._task.cancelling()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        task, self._task = self._task, None
        assert task is not None
        is_ours = self._is_sent_away and task.uncancel() <= self._cancelling
        if error is None or (is_ours and kind is asyncio.CancelledError):
            self._raise_if_closed()

    def _raise_if_closed(self) -> None:
        if self._lines.are_closed:
            raise KprotoError("the producer was closed before it had taken the record") from None


def _set(future: asyncio.Future[None] | None) -> None:
    if future is not None and not future.done():
        future.set_result(None)
