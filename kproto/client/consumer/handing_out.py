"""What has come, and handing it out: record by record, or list by list.

Knows no broker. A cancelled `anext` takes nothing and ends nothing, so iterations are objects and
not async generators, which would end with it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Iterator
from operator import length_hint
from typing import NamedTuple, Protocol, Self, TypeVar

from ...records import Record
from ..cluster.metadata import TopicPartition

__all__ = ["BatchIteration", "FetchedRecords", "HandingOut", "RecordIteration", "Source"]

T = TypeVar("T")


class FetchedRecords(NamedTuple):
    """Records of one partition in order; `high_watermark` is the offset behind its last record."""

    topic: str
    partition: int
    records: list[Record]
    high_watermark: int


class HandingOut:
    """Lists that wait in `ready`, and the `rest` of the one that is handed out by record."""

    __slots__ = ("_current", "ready", "rest")

    def __init__(self) -> None:
        self.ready: deque[FetchedRecords] = deque()
        self.rest: Iterator[Record] = iter(())
        self._current: FetchedRecords | None = None

    def begin(self, fetched: FetchedRecords) -> Record:
        """Hand out a list by record; the first of them."""
        self._current = fetched
        self.rest = iter(fetched.records)
        return next(self.rest)

    def take_rest(self) -> FetchedRecords | None:
        """What is left of the list that is handed out by record, if there is any."""
        left = list(self.rest)
        if not left or self._current is None:
            return None
        return self._current._replace(records=left)

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The offset of the next record of each partition of which there are some."""
        found = {
            (fetched.topic, fetched.partition): fetched.records[0].offset
            for fetched in reversed(self.ready)
        }
        left = length_hint(self.rest)
        if left and self._current is not None:
            place = (self._current.topic, self._current.partition)
            found[place] = self._current.records[-left].offset
        return found


class Source(Protocol):
    """Where an iteration gets its records from."""

    async def _next_records(self, reader: object) -> FetchedRecords | None:
        """The next records; None at the end. Cancelled, it loses none."""

    async def _stop(self) -> None:
        """Give up what is under way."""

    def _dropped(self, reader: object) -> None:
        """Nobody has the iteration of `reader` any more. Called by any thread."""


class _Iteration(AsyncIterator[T]):
    """One iteration. What is under way ends with it: at its end, by `aclose`, or when dropped."""

    __slots__ = ("_handing_out", "_reader", "_source")

    def __init__(self, source: Source, handing_out: HandingOut) -> None:
        self._source = source
        self._handing_out = handing_out
        self._reader = object()

    def __aiter__(self) -> Self:
        return self

    @abstractmethod
    async def __anext__(self) -> T:
        """The next one. Cancelled, it takes nothing, and may be asked again."""

    async def aclose(self) -> None:
        """Give up the fetches under way; another iteration goes on where this one was."""
        await self._source._stop()

    async def _next(self) -> FetchedRecords:
        fetched = await self._source._next_records(self._reader)
        if fetched is None:
            raise StopAsyncIteration
        return fetched

    def __del__(self) -> None:
        self._source._dropped(self._reader)


class RecordIteration(_Iteration[Record]):
    """One record after the other."""

    __slots__ = ()

    async def __anext__(self) -> Record:
        for record in self._handing_out.rest:
            return record
        return self._handing_out.begin(await self._next())


class BatchIteration(_Iteration[FetchedRecords]):
    """`FetchedRecords` after `FetchedRecords`; empty ones are left out."""

    __slots__ = ()

    async def __anext__(self) -> FetchedRecords:
        return await self._next()
