"""`FetchBuffer`: completed fetches that wait to be polled, and the records that were polled last.

The caller processes the records of a poll until its next poll. Until then these records are in
flight; they are stored as one range of offsets per partition. If the caller iterates by record, one
record is in flight. The range of this record is computed only on demand, from the number of records
that are left in the current list, so that a record costs a group consumer hardly more than a plain
consumer. Plain data: no connection and no event loop.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, islice
from typing import Any, TypeAlias, TypeVar

from ...records import Record
from ...wire.errors import (
    CorruptBatchError,
    MissingCodecError,
    UndecodableRecordError,
    UnreadableRecordError,
)
from ..metadata.cluster import TopicPartition
from .completed_fetch import (
    CompletedFetch,
    FetchedBatch,
    FetchedRecords,
    FetchedValues,
    UnreadBatch,
)
from .fetch_options import DEFAULT_FETCH_OPTIONS
from .in_flight_records import AdaptiveBatchSize, InFlightRange, PollMarker
from .partition_state import TopicPartitionState
from .remaining_records import RemainingRecords

__all__ = ["DecodeList", "FetchBuffer", "RecordInterceptor"]

T = TypeVar("T")

#: Gets topic, partition and records; returns the records to return to the caller, maybe none.
RecordInterceptor: TypeAlias = Callable[[str, int, list[Record]], list[Record]]

#: Decodes records up to the first undecodable one; also returns the error of that record, or None.
DecodeList: TypeAlias = Callable[[list[Record]], tuple[list[Any], UndecodableRecordError | None]]


class FetchBuffer:
    """Buffers completed fetches in `ready`, and the list of records that the caller iterates.

    `remaining` iterates over the rest of that list. With a `batch_size`, `remaining` stops after
    `batch_size.size` records, and `take_record` continues the list. `take_records`, `take_values`
    and `take_batch` return the next list or batch. `take_polled` returns lists of several
    partitions. These four methods return None if no record is ready. All `take` methods except
    `take_batch` raise the errors of `CompletedFetch`. After MissingCodecError, the first fetch of
    `ready` has raised it. After UnreadableRecordError, the unreadable record counts as returned.

    A batch of which some records were returned stays decompressed. All fetches except the first of
    `ready` keep at most `max_decompressed_bytes` of such batches together; a batch beyond this
    limit is decompressed again later. A poll adds no list to lists that have `max_polled_bytes`.
    """

    __slots__ = (
        "_by_record",
        "_current",
        "_in_flight",
        "_interceptor",
        "_last_taken",
        "_left",
        "_opened",
        "_paused",
        "_polls",
        "_ready_of",
        "_source",
        "_source_batches",
        "batch_size",
        "max_decompressed_bytes",
        "max_polled_bytes",
        "ready",
        "remaining",
    )

    def __init__(
        self,
        interceptor: RecordInterceptor | None = None,
        batch_size: AdaptiveBatchSize | None = None,
        max_decompressed_bytes: int = DEFAULT_FETCH_OPTIONS.decompressed_limit,
        max_polled_bytes: int = DEFAULT_FETCH_OPTIONS.processing_limit,
    ) -> None:
        self._interceptor = interceptor
        self.batch_size = batch_size
        self.max_decompressed_bytes = max_decompressed_bytes
        self.max_polled_bytes = max_polled_bytes
        #: An ordered dict, because a fetch is removed anywhere in constant time.
        self.ready: OrderedDict[CompletedFetch, None] = OrderedDict()
        self._ready_of: dict[TopicPartitionState, list[CompletedFetch]] = {}
        self._paused: dict[TopicPartitionState, list[CompletedFetch]] = {}
        # The fetches with a decompressed batch; those that were read last are at the end.
        self._opened: dict[CompletedFetch, None] = {}
        # Iterations read `remaining` directly, without a call. `_left` has all records left of the
        # list; with a `batch_size`, `remaining` has only the first of them.
        self.remaining: Iterator[Record] = iter(())
        self._left = RemainingRecords([])
        # The list that is iterated by record, without its records; fetch and batches of the last
        # list of records.
        self._current: FetchedRecords | None = None
        self._source: CompletedFetch | None = None
        self._source_batches: list[UnreadBatch] = []
        # The partition and the first offset of the last list.
        self._last_taken: tuple[TopicPartitionState, int] | None = None
        self._in_flight: dict[TopicPartitionState, InFlightRange] = {}
        self._by_record: TopicPartitionState | None = None  # its list is iterated by record
        self._polls = 0

    # Memory

    @property
    def size_in_bytes(self) -> int:
        """The bytes of the buffered fetches as the broker sent them, and of decompressed batches.

        All batches of a fetch count until the last of them is taken.
        """
        paused = chain.from_iterable(self._paused.values())
        return sum(each.held_bytes for each in chain(self.ready, paused))

    def drop_paused(self, least: int) -> list[tuple[TopicPartitionState, int]]:
        """Drops buffered fetches of paused partitions, until `least` bytes are dropped.

        Drops all fetches of the partition that was paused first, then all fetches of the partition
        that was paused next, and so on. Ends early if no fetch of a paused partition is left.
        Returns each partition whose fetches were dropped, with the offset at which the first of its
        fetches began.
        """
        dropped: list[tuple[TopicPartitionState, int]] = []
        for state, fetches in self._paused.items():
            if least <= 0:
                break
            if fetches:
                least -= sum(each.held_bytes for each in fetches)
                dropped.append((state, fetches[0].from_offset))
                self._paused[state] = []
                self._forget(fetches)
        return dropped

    def _limit_decompressed(self) -> None:
        """Drops decompressed batches beyond `max_decompressed_bytes`, except of the first fetch.

        The fetches that were read last keep their decompressed batches. The compressed batches stay
        buffered.
        """
        left = self.max_decompressed_bytes
        first = next(iter(self.ready), None)
        for fetch in reversed([*self._opened]):
            if fetch is not first:
                left -= fetch.decompressed_bytes
                if left < 0:
                    fetch.drop_decompressed()
            if not fetch.decompressed_bytes:
                del self._opened[fetch]

    def _forget(self, fetches: Iterable[CompletedFetch]) -> None:
        """Removes fetches that are dropped from those with a decompressed batch."""
        for fetch in fetches:
            self._opened.pop(fetch, None)

    # The records in flight

    def on_poll(self) -> None:
        """Marks the returned records as processed, because the caller polls again."""
        self._in_flight = {}
        self._by_record = None
        self._polls += 1

    @property
    def in_flight(self) -> Mapping[TopicPartitionState, InFlightRange]:
        """The offset range, by partition, of the records that were returned last.

        These records are one record, one batch, or lists of records of several partitions. Empty
        after `on_poll`, until records are returned.
        """
        state = self._by_record
        if state is None:
            return self._in_flight
        offset = self._left.last_offset
        return {state: InFlightRange(state, offset, offset + 1)}

    def _set_in_flight(self, in_flight: Mapping[TopicPartitionState, InFlightRange]) -> None:
        self._in_flight = dict(in_flight)
        self._by_record = None

    @property
    def poll_marker(self) -> PollMarker:
        """A value that differs after each poll and each record."""
        for in_flight in self.in_flight.values():
            return self._polls, in_flight.offset
        return self._polls, -1

    @property
    def last_taken(self) -> TopicPartitionState:
        """The partition of the list or batch that was taken last.

        Use it only after a list or batch was taken.
        """
        return self._taken()[0]

    def _taken(self) -> tuple[TopicPartitionState, int]:
        assert self._last_taken is not None, "a list was taken"
        return self._last_taken

    @property
    def is_empty(self) -> bool:
        """True if no record is left to return, except records of paused partitions."""
        return not self.ready and not self._left

    # Positions

    def processed_offset(self, state: TopicPartitionState) -> int:
        """Returns the offset before which all records are processed.

        `state` must have a position.
        """
        in_flight = self.in_flight.get(state)
        return self.position_of(state) if in_flight is None else in_flight.offset

    def position_of(self, state: TopicPartitionState) -> int:
        """Returns the offset of the next record to be polled; `state` must have a position."""
        source = self._source
        if source is not None and source.state is state:
            next_offset = self._left.next_offset
            if next_offset is not None:
                return next_offset
        for fetch in self._paused.get(state, ()):
            return fetch.position
        for fetch in self._ready_of.get(state, ()):
            return fetch.position
        return state.position

    def has_records_of(self, state: TopicPartitionState) -> bool:
        """Returns True if records of a partition are buffered, in flight or not yet returned."""
        source = self._source
        is_iterated = source is not None and source.state is state
        return (
            state in self._ready_of
            or state in self._paused
            or is_iterated
            or state in self.in_flight
        )

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """For each partition with buffered records, the offset of the next record to be polled."""
        found = {
            state.tp: fetches[0].position for state, fetches in self._paused.items() if fetches
        }
        found |= {fetch.state.tp: fetch.position for fetch in reversed(self.ready)}
        next_offset = self._left.next_offset
        if next_offset is not None and self._current is not None:
            found[self._current.topic, self._current.partition] = next_offset
        return found

    # Adding and taking

    def add(self, fetch: CompletedFetch) -> None:
        """Appends a completed fetch.

        If the partition is paused, keeps the fetch for `resume_buffered` instead.
        """
        paused = self._paused.get(fetch.state)
        if paused is None:
            self._append(fetch)
        else:
            paused.append(fetch)

    def _append(self, fetch: CompletedFetch) -> None:
        self.ready[fetch] = None
        self._ready_of.setdefault(fetch.state, []).append(fetch)

    def _remove_first(self) -> None:
        fetch, _ = self.ready.popitem(last=False)
        its = self._ready_of[fetch.state]
        its.remove(fetch)  # the first of a few
        self._opened.pop(fetch, None)
        if not its:
            del self._ready_of[fetch.state]

    def iterate(self, fetched: FetchedRecords) -> Record:
        """Starts to iterate over `fetched`, the list that `take_records` returned last.

        Returns the first record.
        """
        self._keep(fetched, fetched.records)
        first = next(self._left.iterator)
        self._by_record = self.last_taken
        self._limit_batch()
        return first

    def _keep(self, fetched: FetchedRecords, records: list[Record]) -> None:
        """Stores `records`, the last records of `fetched`, as those that are left."""
        self._current = fetched._replace(records=[])
        self._left = RemainingRecords(records)

    def _limit_batch(self) -> None:
        size, left = self.batch_size, self._left.iterator
        self.remaining = left if size is None else islice(left, size.size - 1)

    def take_record(self) -> Record | None:
        """Returns the next record of the iterated list, or the first record of the next list.

        Returns None if no record is ready.
        """
        source = self._source
        if source is not None and self._current is not None:
            for (
                record
            ) in self._left.iterator:  # the next part of the same list, which is not copied
                self._by_record = source.state
                self._limit_batch()
                return record
        fetched = self.take_records()
        return None if fetched is None else self.iterate(fetched)

    def take_records(self, max_bytes: int | None = None) -> FetchedRecords | None:
        """Returns the remaining records of the list that is iterated, or the next list.

        The next list has about `max_bytes` at most, but at least one record.
        """
        fetched = self._take_list(max_bytes)
        return self._mark_returned(
            fetched, 0 if fetched is None else fetched.records[-1].offset + 1
        )

    def take_decoded(self, decode: DecodeList) -> FetchedRecords[Any, Any, Any] | None:
        """Returns the next list as `take_records` does, with its records decoded by `decode`.

        If a record is undecodable, returns the records before it; the next call raises the error,
        and a later call returns the records after it.
        """
        fetched = self._take_list()
        if fetched is None:
            return None
        records, error = decode(fetched.records)
        count = len(records)
        if error is not None:
            count = max(count, 1)
            self._keep_after(fetched, count)
        self._mark_returned(fetched, fetched.records[count - 1].offset + 1)
        if error is not None and not records:
            raise error
        return fetched._replace(records=records)

    def take_polled(
        self, most: int, decode: DecodeList | None = None
    ) -> dict[TopicPartition, list[Any]] | None:
        """Returns up to `most` buffered records, in lists by partition; None if none is ready.

        Returns fewer records if they have `max_polled_bytes` together. If one of these records
        is unreadable, or undecodable by `decode`, returns the records before it; the next call
        raises the error. If the first record is unreadable or undecodable, raises the error at
        once.
        """
        found: dict[TopicPartition, list[Any]] = {}
        in_flight: dict[TopicPartitionState, InFlightRange] = {}
        size = 0
        while most > 0 and size < self.max_polled_bytes:
            try:
                fetched = self._take_list(put_back_unreadable=bool(found))
            except (CorruptBatchError, MissingCodecError):
                if not found:
                    raise
                break
            if fetched is None:
                break
            records = fetched.records
            if len(records) > most:
                self._keep_after(fetched, most)
                records = records[:most]
            most -= len(records)
            size += 0 if self._source is None else self._source.list_bytes
            state, begins = self._taken()
            first = in_flight.get(state)
            begins = begins if first is None else first.offset
            decoded, error = (records, None) if decode is None else decode(records)
            if error is not None:
                most = 0
                if not found and not decoded:
                    self._keep_after(fetched, 1)
                    next_offset = records[0].offset + 1
                    self._set_in_flight({state: InFlightRange(state, begins, next_offset)})
                    raise error
                self._keep_after(fetched, len(decoded))
                if not decoded:
                    break
                records = records[: len(decoded)]
            in_flight[state] = InFlightRange(state, begins, records[-1].offset + 1)
            found.setdefault(state.tp, []).extend(decoded)
        if not found:
            return None
        self._set_in_flight(in_flight)
        return found

    def _keep_after(self, fetched: FetchedRecords, count: int) -> None:
        """Stores, for the next take, the records of `fetched` after the first `count` records."""
        self._keep(fetched, fetched.records[count:])
        self.remaining = iter(())  # an iteration polls first

    def take_values(self) -> FetchedValues | None:
        """Returns the remaining values of the list that is iterated, or the next list of values."""
        fetched = self._take_values()
        return self._mark_returned(fetched, 0 if fetched is None else fetched.next_offset)

    def take_batch(self) -> FetchedBatch | None:
        """Returns the next batch as a whole, even if some of its records were returned already."""
        self.put_back_remaining()
        taken = self._take_first(CompletedFetch.take_batch)
        fetched = None if taken is None else taken[0]
        return self._mark_returned(fetched, 0 if fetched is None else fetched.batch.next_offset)

    def _take_list(
        self, max_bytes: int | None = None, *, put_back_unreadable: bool = False
    ) -> FetchedRecords | None:
        """Returns the remaining records of the list that is iterated, or the next list.

        If the next record is unreadable, raises UnreadableRecordError; with `put_back_unreadable`
        the next call raises it again.
        """
        fetched = self._take_remaining()
        if fetched is not None:
            return fetched
        take = CompletedFetch.take_records
        if max_bytes is not None:
            take = partial(CompletedFetch.take_records, max_bytes=max_bytes)
        while (taken := self._take_first(take, put_back_unreadable)) is not None:
            (fetched, self._source_batches), self._source = taken
            if self._interceptor is None:
                return fetched
            records = self._interceptor(fetched.topic, fetched.partition, fetched.records)
            if records:
                return fetched._replace(records=records)
        return None

    def _take_values(self) -> FetchedValues | None:
        left = self._take_remaining() if self._interceptor is None else self._take_list()
        if left is not None:
            values: list[Any] = [record.value for record in left.records]
            next_offset = left.records[-1].offset + 1
            return FetchedValues(
                left.topic, left.partition, values, next_offset, left.high_watermark
            )
        taken = self._take_first(CompletedFetch.take_values)
        return None if taken is None else taken[0]

    def _mark_returned(self, fetched: T | None, next_offset: int) -> T | None:
        """Marks `fetched`, which ends before `next_offset`, as being processed by the caller.

        Returns `fetched`. Does nothing if `fetched` is None.
        """
        if fetched is not None:
            state, offset = self._taken()
            self._in_flight = {state: InFlightRange(state, offset, next_offset)}
            self._by_record = None
        return fetched

    def _take_first(
        self, take: Callable[[CompletedFetch], T | None], put_back_unreadable: bool = False
    ) -> tuple[T, CompletedFetch] | None:
        """Returns the first result of `take` that is not None, and its fetch.

        Returns None if `take` returns None for all fetches. Removes empty fetches.
        """
        while self.ready:
            fetch = next(iter(self.ready))
            position = fetch.position
            try:
                found = take(fetch)
            except UnreadableRecordError as error:
                fetch.on_unreadable(error, put_back=put_back_unreadable)
                if put_back_unreadable:
                    raise
                if not fetch:
                    self._remove_first()
                self._last_taken = fetch.state, position
                in_flight = InFlightRange(fetch.state, position, error.next_offset)
                self._set_in_flight({fetch.state: in_flight})
                raise
            if not fetch:
                self._remove_first()
            elif fetch.decompressed_bytes:
                self._opened.pop(fetch, None)
                self._opened[fetch] = None
                self._limit_decompressed()
            if found is not None:
                self._last_taken = fetch.state, position
                return found, fetch
        return None

    def _take_remaining(self) -> FetchedRecords | None:
        left = list(self._left.iterator)
        if not left or self._current is None:
            return None
        if self._source is not None:
            self._last_taken = self._source.state, left[0].offset
        return self._current._replace(records=left)

    def put_back_remaining(self) -> None:
        """Puts back into their completed fetch the records that the iteration has not returned.

        The next list of records of the partition begins with these records.
        """
        in_flight = self.in_flight
        left = self._take_remaining()
        if left is not None and self._source is not None:
            if not self._source:
                self.ready[self._source] = None
                self.ready.move_to_end(self._source, last=False)
                self._ready_of.setdefault(self._source.state, []).insert(0, self._source)
            self._source.put_back(self._source_batches, left.records[0].offset)
        self._set_in_flight(in_flight)

    # Partitions that are dropped or paused

    def drop(self, state: TopicPartitionState) -> int:
        """Drops all records of a partition; returns the offset of the next record to be polled.

        Returns -1 if the partition has no position.
        """
        in_flight = self.in_flight
        position = self.position_of(state)
        self._forget(self._remove(state))
        current = self._current
        if current is not None and (current.topic, current.partition) == state.tp:
            for (
                _
            ) in self._left.iterator:  # another thread may step the iterator, and finds it empty
                pass
            self.remaining = iter(())
            self._current = None
            self._set_in_flight(in_flight)  # the rest of its list is gone
        self._forget(self._paused.pop(state, ()))
        return position

    def drop_broken(self) -> CompletedFetch:
        """Removes and returns the fetch that cannot be decoded.

        Also removes the later fetches of its partition.
        """
        broken = next(iter(self.ready))
        self._forget(self._remove(broken.state))
        return broken

    def _remove(self, state: TopicPartitionState) -> list[CompletedFetch]:
        its = self._ready_of.pop(state, [])
        for fetch in its:
            del self.ready[fetch]
        return its

    def pause_buffered(self, state: TopicPartitionState) -> None:
        """Makes the `take` methods skip a partition until `resume_buffered`.

        The completed fetches of the partition stay buffered.
        """
        if self._source is not None and self._source.state is state:
            self.put_back_remaining()
        self._paused[state] = self._remove(state)
        self._limit_decompressed()

    def resume_buffered(self, state: TopicPartitionState) -> None:
        """Ends the pause of a partition: its records are returned after the other ready records."""
        for fetch in self._paused.pop(state, ()):
            self._append(fetch)
