"""What is in hand and what is done, whatever is asked for in whatever order, beside a model."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kproto.client.fetch.completed_fetch import CompletedFetch, PlacedBatch
from kproto.client.fetch.fetch_buffer import FetchBuffer
from kproto.client.fetch.in_flight_records import AdaptiveBatchSize, InFlightRange
from kproto.client.fetch.partition_state import TopicPartitionState
from kproto.client.fetch.poll_state import PollState, PollTimer
from kproto.client.settings import ClientSettings
from kproto.records import Record, RecordBatch
from tests.unit.client.scripted_log import batch

SETTINGS = ClientSettings()

PARTITIONS = 2


def batches(base: int, sizes: list[int]) -> Iterator[tuple[RecordBatch, list[int]]]:
    """Batches with a gap of one offset behind each, and the offsets of their records."""
    for size in sizes:
        values = [b"%d" % (base + at) for at in range(size)]
        yield RecordBatch(batch(base, values)), list(range(base, base + size))
        base += size + 1


class Model:
    """What was fetched of a partition and not handed out, by batch; and the position behind it."""

    def __init__(self) -> None:
        self.waiting: deque[list[int]] = deque()
        self.position = 0

    @property
    def next(self) -> int:
        return self.waiting[0][0] if self.waiting else self.position


class Played:
    """Both, side by side."""

    def __init__(self) -> None:
        self.buffer = FetchBuffer(batch_size=AdaptiveBatchSize())
        self.poll = PollState(self.buffer)
        self.states = [
            TopicPartitionState(("t", at), SETTINGS, position=0) for at in range(PARTITIONS)
        ]
        self.models = [Model() for _ in range(PARTITIONS)]
        self.held: tuple[int, int, int] | None = None  # partition, first offset in hand, behind it
        self.aside: set[int] = set()
        self.now = 0.0

    def wait(self, seconds: float) -> None:
        """The handler takes its time, so that the next portion is another."""
        self.now += seconds

    def fetch(self, at: int, sizes: list[int]) -> None:
        state, model = self.states[at], self.models[at]
        placed = []
        for made, offsets in batches(state.position, sizes):
            placed.append(PlacedBatch(state.position, made))
            state.position = offsets[-1] + 1
            model.waiting.append(offsets)
        model.position = state.position = state.position + 1  # an offset that nobody sees
        self.buffer.add(
            CompletedFetch(state, placed, high_watermark=99, max_decompressed_bytes=1_000_000)
        )

    def take(self, at: int, offsets: list[int], begins: int) -> None:
        """These are handed out, the first that was not before is `begins`."""
        model = self.models[at]
        assert begins == model.next
        self.held = (at, begins, offsets[-1] + 1)
        while offsets:
            first = model.waiting[0]
            if first[0] in offsets:
                offsets.remove(first.pop(0))
            if not first:
                model.waiting.popleft()
            else:
                assert not offsets or first[0] in offsets

    def record(self) -> None:
        for record in self.buffer.rest:
            self.given(record)
            return
        self.poll.on_poll(self.now)
        self.held = None
        fetched = self.buffer.take_records()
        if fetched is not None:
            self.given(self.buffer.iterate(fetched))
        self.poll.on_records_returned(self.now)

    def given(self, record: Record) -> None:
        self.take(record.partition, [record.offset], record.offset)

    def records(self) -> None:
        self.poll.on_poll(self.now)
        self.held = None
        fetched = self.buffer.take_records()
        if fetched is not None:
            offsets = [record.offset for record in fetched.records]
            self.take(fetched.partition, offsets, offsets[0])

    def values(self) -> None:
        self.poll.on_poll(self.now)
        self.held = None
        fetched = self.buffer.take_values()
        if fetched is not None:
            offsets = [int(value or b"") for value in fetched.values]
            self.take(fetched.partition, offsets, offsets[0])

    def batch(self) -> None:
        self.poll.on_poll(self.now)
        self.held = None
        fetched = self.buffer.take_batch()
        if fetched is not None:
            begins = self.models[fetched.partition].next
            offsets = [record.offset for record in fetched.batch.records(from_offset=begins)]
            self.take(fetched.partition, offsets, begins)

    def drop(self, at: int) -> None:
        """As a partition is given up: its position is where the user is."""
        state, model = self.states[at], self.models[at]
        state.position = self.poll.drop(state)
        assert state.position == model.next
        model.position = model.next
        model.waiting.clear()
        self.aside.discard(at)

    def pause(self, at: int) -> None:
        if at not in self.aside:
            self.buffer.pause_buffered(self.states[at])
            self.aside.add(at)

    def resume(self, at: int) -> None:
        self.buffer.resume_buffered(self.states[at])
        self.aside.discard(at)

    def put_back(self) -> None:
        self.buffer.put_back_rest()

    def check(self) -> None:
        held_is = (
            None if self.held is None else InFlightRange(self.states[self.held[0]], *self.held[1:])
        )
        assert self.poll.in_flight == held_is
        for at, (state, model) in enumerate(zip(self.states, self.models, strict=True)):
            assert self.poll.position_of(state) == model.next
            held = self.held is not None and self.held[0] == at
            done = self.held[1] if self.held is not None and held else model.next
            assert self.poll.processed_offset(state) == done
            assert self.poll.positions.get(("t", at), state.position) == model.next
        if self.aside == set(range(PARTITIONS)):
            assert not self.buffer.ready


partitions = st.integers(0, PARTITIONS - 1)
steps = st.one_of(
    st.tuples(st.just("fetch"), partitions, st.lists(st.integers(1, 4), min_size=1, max_size=3)),
    st.tuples(st.sampled_from(["drop", "pause", "resume"]), partitions),
    st.tuples(st.just("wait"), st.sampled_from([0.0001, 0.02, 1.0])),
    st.tuples(st.sampled_from(["record", "records", "values", "batch", "put_back"])),
)


@given(st.lists(steps, max_size=30))
@example([("fetch", 0, [2]), ("record",), ("drop", 1), ("record",)])
@settings(max_examples=500)
def test_done_is_what_was_handed_out_but_for_what_is_in_hand(
    schedule: list[tuple[str, *tuple[object, ...]]],
) -> None:
    played = Played()
    for name, *arguments in schedule:
        getattr(played, name)(*arguments)
        played.check()


def test_the_last_record_of_a_list_is_in_hand_until_the_next_is_asked_for() -> None:
    played = Played()
    played.fetch(0, [2])
    played.record()
    played.record()
    state = played.states[0]
    assert played.poll.in_flight == InFlightRange(state, 1, 2)
    assert played.poll.processed_offset(state) == 1
    played.poll.on_poll(0.0)
    assert played.poll.processed_offset(state) == 3  # behind the offset that nobody sees


@pytest.mark.parametrize(
    ("each_s", "sizes"),
    [
        ([0.000_000_1] * 5 + [0.000_03] * 4, [4, 16, 64, 256, 512, 128, 32, 13, 13]),
        ([0.000_000_1] * 5 + [0.01] * 3, [4, 16, 64, 256, 512, 1, 1, 1]),
        ([10.0] * 2 + [0.000_08] * 3, [1, 1, 4, 5, 5]),
    ],
)
def test_a_slow_handler_gets_smaller_portions(each_s: list[float], sizes: list[int]) -> None:
    """At once where it holds up the loop, by and by where the system may have been busy."""
    portions = AdaptiveBatchSize()
    found = []
    for each in each_s:
        portions.on_records_returned(0.0)
        portions.on_poll(each * portions.size)
        found.append(portions.size)
    assert found == sizes


def test_progress_is_seen_by_looking() -> None:
    progress = PollTimer(10.0)
    progress.observe((1, 5), 11.0, is_polling=False)
    assert progress.since == 11.0
    progress.observe((1, 5), 14.0, is_polling=False)
    assert progress.since == 11.0  # the same record is in hand
    progress.observe((1, 4), 15.0, is_polling=False)
    assert progress.since == 15.0
    progress.observe((1, 4), 99.0, is_polling=True)
    assert progress.since == 99.0  # who waits for records is not slow
