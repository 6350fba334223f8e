"""What has come, and handing it out: record by record, or list by list.

Knows no broker. A cancelled `anext` takes nothing and ends nothing, so iterations are objects and
not async generators, which would end with it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from operator import length_hint
from typing import Protocol, Self, TypeAlias, TypeVar

from ...records import Record
from ..metadata.cluster import TopicPartition
from .completed_fetch import CompletedFetch, FetchedBatch, FetchedRecords, FetchedValues
from .filtered_batches import PlacedBatch
from .partition_state import PartitionState

__all__ = [
    "FetchBuffer",
    "RawBatchIteration",
    "RecordIteration",
    "RecordListIteration",
    "Source",
    "ValueIteration",
]

T = TypeVar("T")

#: The records to hand out in place of some, of a topic and a partition; there may be none.
RecordInterceptor: TypeAlias = Callable[[str, int, list[Record]], list[Record]]


class FetchBuffer:
    """What waits in `ready`, and the `rest` of the list that is handed out by record.

    `take_records`, `take_values` and `take_batch` return what comes next, None when the buffer is
    drained. The first two raise what `CompletedFetch` raises; `ready[0]` is then the fetch that
    cannot be read.
    """

    __slots__ = ("_change", "_current", "_left", "_opened", "_source", "ready", "rest")

    def __init__(self, change: RecordInterceptor | None = None) -> None:
        self._change = change
        self.ready: deque[CompletedFetch] = deque()
        # What is handed out without asking, and all that is left of the list: the same, mostly.
        self.rest: Iterator[Record] = iter(())
        self._left = self.rest
        # The list that was taken last, where it came from, and the batches it was made of.
        self._current: FetchedRecords | None = None
        self._source: CompletedFetch | None = None
        self._opened: list[PlacedBatch] = []

    def add(self, waiting: CompletedFetch) -> None:
        """Let what has come wait for its turn."""
        self.ready.append(waiting)

    def begin(self, fetched: FetchedRecords) -> Record:
        """Hand out a list by record; the first of them."""
        self._current = fetched
        self.rest = self._left = iter(fetched.records)
        return next(self.rest)

    def take_record(self) -> Record | None:
        """The next record of a list that is handed out by record, or the first of the next list."""
        fetched = self.take_records()
        return None if fetched is None else self.begin(fetched)

    def take_records(self) -> FetchedRecords | None:
        """What is left of a list that is handed out by record, or the next list."""
        fetched = self._take_rest()
        if fetched is not None:
            return fetched
        while (taken := self._first_of(CompletedFetch.take_records)) is not None:
            (fetched, self._opened), self._source = taken
            if self._change is None:
                return fetched
            records = self._change(fetched.topic, fetched.partition, fetched.records)
            if records:
                return fetched._replace(records=records)
        return None

    def take_values(self) -> FetchedValues | None:
        """The values of what is left of a list that is handed out by record, or the next list."""
        left = self._take_rest() if self._change is None else self.take_records()
        if left is not None:
            records = left.records
            return FetchedValues(
                left.topic,
                left.partition,
                [record.value for record in records],
                records[-1].offset + 1,
                left.high_watermark,
            )
        taken = self._first_of(CompletedFetch.take_values)
        return None if taken is None else taken[0]

    def take_batch(self) -> FetchedBatch | None:
        """The next batch; whole again one of which records have been handed out, but not all."""
        self.put_back_rest()
        taken = self._first_of(CompletedFetch.take_batch)
        return None if taken is None else taken[0]

    def _first_of(
        self, take: Callable[[CompletedFetch], T | None]
    ) -> tuple[T, CompletedFetch] | None:
        """What `take` gives first, and of which; what has no more is taken out."""
        while self.ready:
            waiting = self.ready[0]
            found = take(waiting)
            if not waiting:
                self.ready.popleft()
            if found is not None:
                return found, waiting
        return None

    def put_back_rest(self) -> None:
        """Let what is left of a list that is handed out by record wait again."""
        left = self._take_rest()
        if left is not None and self._source is not None:
            if not self._source:
                self.ready.appendleft(self._source)
            self._source.give_back(self._opened, left.records[0].offset)

    def drop_unreadable(self) -> CompletedFetch:
        """Take out what cannot be opened, and all that waits of its partition; returns it."""
        unreadable = self.ready[0]
        left = [waiting for waiting in self.ready if waiting.state is not unreadable.state]
        self.ready.clear()
        self.ready.extend(left)
        return unreadable

    def drop(self, state: PartitionState) -> int:
        """Take out all that waits of a partition; returns the offset behind what was handed out."""
        place = (state.topic, state.partition)
        position = self.positions.get(place, state.position)
        left = [waiting for waiting in self.ready if waiting.state is not state]
        self.ready.clear()
        self.ready.extend(left)
        current = self._current
        if current is not None and (current.topic, current.partition) == place:
            self.rest = self._left = iter(())
            self._current = None
        return position

    def drop_for_another_log(self, state: PartitionState) -> int:
        """As `drop`, where the log has become another one, and reading goes on in it."""
        return self.drop(state)

    def set_back(self, state: PartitionState) -> None:
        """The log of a partition has become another one, and is read from before what was read."""

    def _take_rest(self) -> FetchedRecords | None:
        left = list(self._left)
        if not left or self._current is None:
            return None
        return self._current._replace(records=left)

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The offset of the next record of each partition of which there are some."""
        found = {
            (waiting.state.topic, waiting.state.partition): waiting.position
            for waiting in reversed(self.ready)
        }
        left = length_hint(self._left)
        if left and self._current is not None:
            place = (self._current.topic, self._current.partition)
            found[place] = self._current.records[-left].offset
        return found


class Source(Protocol):
    """Where an iteration gets what it hands out from."""

    async def _next_fetched(self, reader: object, take: Callable[[], T | None]) -> T | None:
        """What `take` gives, once there is something; None at the end. Cancelled, it loses none."""

    async def _stop(self) -> None:
        """Give up what is under way."""

    def _dropped(self, reader: object) -> None:
        """Nobody has the iteration of `reader` any more. Called by any thread."""


class _Iteration(AsyncIterator[T]):
    """One iteration. What is under way ends with it: at its end, by `aclose`, or when dropped."""

    __slots__ = ("_handing_out", "_reader", "_source")

    def __init__(self, source: Source, handing_out: FetchBuffer) -> None:
        self._source = source
        self._handing_out = handing_out
        self._reader = object()

    def __aiter__(self) -> Self:
        return self

    @abstractmethod
    def _take(self) -> T | None:
        """What comes next of what has come; None where all is handed out."""

    async def __anext__(self) -> T:
        """The next one. Cancelled, it takes nothing, and may be asked again."""
        fetched = await self._source._next_fetched(self._reader, self._take)
        if fetched is None:
            raise StopAsyncIteration
        return fetched

    async def aclose(self) -> None:
        """Give up the fetches under way; another iteration goes on where this one was."""
        await self._source._stop()

    def __del__(self) -> None:
        self._source._dropped(self._reader)


class RecordIteration(_Iteration[Record]):
    """One record after the other."""

    __slots__ = ()

    async def __anext__(self) -> Record:
        # Mostly this is all: what a call of its own would cost is much beside it.
        for record in self._handing_out.rest:
            return record
        return await super().__anext__()

    def _take(self) -> Record | None:
        return self._handing_out.take_record()


class RecordListIteration(_Iteration[FetchedRecords]):
    """`FetchedRecords` after `FetchedRecords`; empty ones are left out."""

    __slots__ = ()

    def _take(self) -> FetchedRecords | None:
        return self._handing_out.take_records()


class ValueIteration(_Iteration[FetchedValues]):
    """`FetchedValues` after `FetchedValues`; empty ones are left out."""

    __slots__ = ()

    def _take(self) -> FetchedValues | None:
        return self._handing_out.take_values()


class RawBatchIteration(_Iteration[FetchedBatch]):
    """`FetchedBatch` after `FetchedBatch`."""

    __slots__ = ()

    def _take(self) -> FetchedBatch | None:
        return self._handing_out.take_batch()
