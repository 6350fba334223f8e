"""Compares in-flight and processed records with a model, for random sequences of polls."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import chain
from typing import cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kproto.client.fetch.completed_fetch import CompletedFetch, UnreadBatch
from kproto.client.fetch.fetch_buffer import FetchBuffer
from kproto.client.fetch.in_flight_records import AdaptiveBatchSize, InFlightRange
from kproto.client.fetch.partition_state import TopicPartitionState
from kproto.client.fetch.poll_state import PollState, PollTimer, RecordProcessor
from kproto.client.settings import ClientSettings
from kproto.records import Record, RecordBatch
from tests.support.examples import examples
from tests.unit.client.scripted_log import batch

SETTINGS = ClientSettings()

PARTITIONS = 2


def batches(
    base: int, sizes: list[int], compression: str
) -> Iterator[tuple[RecordBatch, list[int]]]:
    """Yields batches and the offsets of their records; one offset after each batch is missing."""
    for size in sizes:
        values = [b"%d" % (base + at) for at in range(size)]
        data = batch(base, values, compression=compression)
        yield RecordBatch(data), list(range(base, base + size))
        base += size + 1


class Model:
    """The fetched but not yet returned records of a partition, and its fetch position."""

    def __init__(self) -> None:
        self.waiting: deque[list[int]] = deque()
        self.position = 0

    @property
    def next(self) -> int:
        return self.waiting[0][0] if self.waiting else self.position


class Comparison:
    """A fetch buffer and its model, which receive the same calls."""

    def __init__(self) -> None:
        # The small batches of a paused partition stay decompressed, the larger ones do not.
        self.buffer = FetchBuffer(batch_size=AdaptiveBatchSize(), max_decompressed_bytes=30)
        self.poll = PollState(self.buffer)
        self.states = [
            TopicPartitionState(("t", at), SETTINGS, position=0) for at in range(PARTITIONS)
        ]
        self.models = [Model() for _ in range(PARTITIONS)]
        self.in_flight: dict[int, tuple[int, int]] = {}  # first and next offset by partition
        self.paused: set[int] = set()
        self.now = 0.0

    def wait(self, seconds: float) -> None:
        """Advances the time by `seconds` of processing, so later lists may get another size."""
        self.now += seconds

    def fetch(self, at: int, sizes: list[int], compression: str = "none") -> None:
        state, model = self.states[at], self.models[at]
        placed = []
        for made, offsets in batches(state.position, sizes, compression):
            placed.append(UnreadBatch(state.position, made))
            state.position = offsets[-1] + 1
            model.waiting.append(offsets)
        model.position = state.position = state.position + 1  # skips an offset without a record
        self.buffer.add(
            CompletedFetch(
                state, placed, size_in_bytes=0, high_watermark=99, max_decompressed_bytes=1_000_000
            )
        )

    def take(self, at: int, offsets: list[int], begins: int) -> None:
        """Removes the returned offsets from the model; the range in flight starts at `begins`."""
        self.in_flight = {}
        self.take_more(at, offsets, begins)

    def take_more(self, at: int, offsets: list[int], begins: int) -> None:
        """Does the same as `take`, but keeps the in-flight ranges of the other partitions."""
        model = self.models[at]
        assert begins == model.next
        self.in_flight[at] = (begins, offsets[-1] + 1)
        while offsets:
            first = model.waiting[0]
            if first[0] in offsets:
                offsets.remove(first.pop(0))
            if not first:
                model.waiting.popleft()
            else:
                assert not offsets or first[0] in offsets

    def record(self) -> None:
        for record in self.buffer.remaining:
            self.returned(record)
            return
        self.poll.on_poll(self.now)
        self.in_flight = {}
        fetched = self.buffer.take_records()
        if fetched is not None:
            self.returned(self.buffer.iterate(fetched))
        self.poll.on_records_returned(self.now)

    def returned(self, record: Record) -> None:
        self.take(record.partition, [record.offset], record.offset)

    def records(self, max_bytes: int | None = None) -> None:
        self.poll.on_poll(self.now)
        self.in_flight = {}
        fetched = self.buffer.take_records(max_bytes)
        if fetched is not None:
            offsets = [record.offset for record in fetched.records]
            self.take(fetched.partition, offsets, offsets[0])

    def values(self) -> None:
        self.poll.on_poll(self.now)
        self.in_flight = {}
        fetched = self.buffer.take_values()
        if fetched is not None:
            offsets = [int(value or b"") for value in fetched.values]
            self.take(fetched.partition, offsets, offsets[0])

    def polled(self, most: int) -> None:
        self.poll.on_poll(self.now)
        self.in_flight = {}
        found = self.buffer.take_polled(most) or {}
        assert sum(map(len, found.values())) <= most
        for (_, partition), records in found.items():
            offsets = [record.offset for record in records]
            self.take_more(partition, offsets, offsets[0])
        if sum(map(len, found.values())) < most:
            assert self.buffer.is_empty

    def batch(self) -> None:
        self.poll.on_poll(self.now)
        self.in_flight = {}
        fetched = self.buffer.take_batch()
        if fetched is not None:
            begins = self.models[fetched.partition].next
            offsets = [record.offset for record in fetched.batch.records(from_offset=begins)]
            self.take(fetched.partition, offsets, begins)

    def drop(self, at: int) -> None:
        """Revokes the partition; its position becomes the offset of the next unreturned record."""
        state, model = self.states[at], self.models[at]
        state.position = self.poll.drop(state)
        assert state.position == model.next
        model.position = model.next
        model.waiting.clear()
        self.paused.discard(at)

    def pause(self, at: int) -> None:
        if at not in self.paused:
            self.buffer.pause_buffered(self.states[at])
            self.paused.add(at)

    def resume(self, at: int) -> None:
        self.buffer.resume_buffered(self.states[at])
        self.paused.discard(at)

    def put_back(self) -> None:
        self.buffer.put_back_remaining()

    def check(self) -> None:
        expected = [
            InFlightRange(self.states[at], *offsets) for at, offsets in self.in_flight.items()
        ]
        assert self.poll.in_flight == expected
        for at, (state, model) in enumerate(zip(self.states, self.models, strict=True)):
            assert self.poll.position_of(state) == model.next
            done = self.in_flight[at][0] if at in self.in_flight else model.next
            assert self.poll.processed_offset(state) == done
            assert self.poll.positions.get(("t", at), state.position) == model.next
        if self.paused == set(range(PARTITIONS)):
            assert not self.buffer.ready
        first = next(iter(self.buffer.ready), None)
        opened = [each.decompressed_bytes for each in self.fetches if each is not first]
        assert sum(opened) <= self.buffer.max_decompressed_bytes
        assert all(each in self.fetches for each in self.buffer._opened)

    @property
    def fetches(self) -> list[CompletedFetch]:
        """The buffered fetches."""
        return [*self.buffer.ready, *chain(*self.buffer._paused.values())]


partitions = st.integers(0, PARTITIONS - 1)
steps = st.one_of(
    st.tuples(
        st.just("fetch"),
        partitions,
        st.lists(st.integers(1, 4), min_size=1, max_size=3),
        st.sampled_from(["none", "gzip"]),
    ),
    st.tuples(st.just("records"), st.sampled_from([1, 30, 60])),
    st.tuples(st.sampled_from(["drop", "pause", "resume"]), partitions),
    st.tuples(st.just("wait"), st.sampled_from([0.0001, 0.02, 1.0])),
    st.tuples(st.sampled_from(["record", "records", "values", "batch", "put_back"])),
    st.tuples(st.just("polled"), st.integers(1, 9)),
)


@given(st.lists(steps, max_size=30))
@example([("fetch", 0, [2]), ("record",), ("drop", 1), ("record",)])
@example([("fetch", 0, [4], "gzip"), ("records", 1), ("pause", 0), ("resume", 0), ("records",)])
@example([("fetch", 0, [2], "gzip"), ("records", 1), ("pause", 0), ("drop", 0)])
@example([("fetch", 0, [3], "gzip"), ("records", 1), ("batch",), ("put_back",)])
@settings(max_examples=examples(500))
@pytest.mark.slow
def test_returned_records_are_processed_unless_in_flight(
    schedule: list[tuple[str, *tuple[object, ...]]],
) -> None:
    comparison = Comparison()
    for name, *arguments in schedule:
        getattr(comparison, name)(*arguments)
        comparison.check()


def test_last_record_of_a_list_is_in_flight_until_the_next_poll() -> None:
    comparison = Comparison()
    comparison.fetch(0, [2])
    comparison.record()
    comparison.record()
    state = comparison.states[0]
    assert comparison.poll.in_flight == [InFlightRange(state, 1, 2)]
    assert comparison.poll.processed_offset(state) == 1
    comparison.poll.on_poll(0.0)
    assert comparison.poll.processed_offset(state) == 3  # after the offset without a record


def test_dropped_partition_leaves_no_record_to_a_thread_that_steps_the_iterator() -> None:
    comparison = Comparison()
    comparison.buffer.batch_size = None
    comparison.fetch(0, [4])
    comparison.record()
    remaining = comparison.buffer.remaining
    comparison.buffer.drop(comparison.states[0])
    assert next(remaining, None) is None
    assert comparison.poll.in_flight == [InFlightRange(comparison.states[0], 0, 1)]


@pytest.mark.parametrize(
    ("durations_s", "sizes"),
    [
        ([0.000_000_1] * 5 + [0.000_03] * 4, [4, 16, 64, 256, 512, 128, 32, 13, 13]),
        ([0.000_000_1] * 5 + [0.01] * 3, [4, 16, 64, 256, 512, 1, 1, 1]),
        ([10.0] * 2 + [0.000_08] * 3, [1, 1, 4, 5, 5]),
    ],
)
def test_slow_handler_gets_smaller_lists(durations_s: list[float], sizes: list[int]) -> None:
    """The list size grows while the handler is fast.

    The list size shrinks at once if the handler blocks the event loop, and gradually if another
    process may have delayed the handler.
    """
    batch_size = AdaptiveBatchSize()
    found = []
    for each in durations_s:
        batch_size.on_records_returned(0.0)
        batch_size.on_poll(each * batch_size.size)
        found.append(batch_size.size)
    assert found == sizes


def test_poll_timer_restarts_when_the_record_changes() -> None:
    progress = PollTimer(10.0)
    progress.observe((1, 5), 11.0, is_polling=False)
    assert progress.since == 11.0
    progress.observe((1, 5), 14.0, is_polling=False)
    assert progress.since == 11.0  # the same record is in flight
    progress.observe((1, 4), 15.0, is_polling=False)
    assert progress.since == 15.0
    progress.observe((1, 4), 99.0, is_polling=True)
    assert progress.since == 99.0  # a consumer that waits for records is not late


class _Started:
    """Replaces a record processor; the handlers have started records up to offset `highest`.

    The offsets in `incomplete` are not processed yet.
    """

    def __init__(self, highest: int, incomplete: list[int]) -> None:
        self._found = (highest, incomplete)

    def incomplete_offsets(self, state: object) -> tuple[int, list[int]]:
        return self._found


@pytest.mark.parametrize(("highest", "last"), [(8, 8), (9, 9), (10, 9), (2**31 + 5, 9)])
def test_offsets_after_the_fetched_batches_never_count_as_processed(
    highest: int, last: int
) -> None:
    """A record whose offset is too high must not mark later records of the log as processed."""
    poll = PollState(FetchBuffer())
    poll.processor = cast("RecordProcessor", _Started(highest, [5, 7, *([10] * (highest > 9))]))
    bitmap = poll.bitmap_here(TopicPartitionState(("t", 0), SETTINGS, position=10))
    assert bitmap is not None
    processed = [offset for offset in range(5, bitmap.end) if bitmap.is_processed(offset)]
    assert processed == [offset for offset in (6, 8, 9) if offset <= last]
