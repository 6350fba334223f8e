"""Tests the record tracker of `run`: the order of records, and the incomplete offsets.

The model of the state machine has only the added records and the outcome of each.
"""

from __future__ import annotations

from random import Random
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from kproto.client.processing.ordered_shard import OrderedShard
from kproto.client.processing.settings import Order
from kproto.client.processing.shard import Shard
from kproto.client.processing.tracker import RecordTracker
from kproto.client.processing.unordered_shard import UnorderedShard
from kproto.records import Record
from tests.support.examples import examples
from tests.support.selection import rest_slow

PARTITIONS = 3
MAX_AHEAD = 8

KEYS = st.sampled_from([None, b"a", b"b", b"c"])
GAPS = st.integers(1, 3)


def _taken_of(shard: Shard) -> Record:
    if isinstance(shard, OrderedShard):
        record = next(shard.remaining)
        shard.is_busy = True
        return record
    assert isinstance(shard, UnorderedShard)
    record = shard.ready.popleft()
    shard.highest_started = max(shard.highest_started, record.offset)
    return record


class State:
    """An assigned partition; each new assignment creates a new state."""

    def __init__(self, place: tuple[str, int], position: int) -> None:
        self.place = place
        self.position = position
        self.taken: list[Record] = []
        self.done: set[int] = set()
        self.is_there = True
        self.is_paused = False

    @property
    def first_undone(self) -> int | None:
        return next((each.offset for each in self.taken if each.offset not in self.done), None)


class Machine(RuleBasedStateMachine):
    """Compares the record tracker with the model, for random sequences of operations."""

    order: ClassVar[Order] = "partition"

    @initialize(seed=st.integers(0, 2**32), is_ended=st.booleans())
    def begin(self, seed: int, is_ended: bool) -> None:
        self.chance = Random(seed) if is_ended else None
        self.tracker = RecordTracker(self.order, MAX_AHEAD)
        self.states = [State(("t", at), 0) for at in range(PARTITIONS)]
        self.in_flight: list[tuple[State, Shard, Record]] = []
        self.retry_later: list[tuple[State, Shard, Record]] = []
        self.going: list[tuple[State, int | None]] = []
        self.now = 0.0

    @invariant()
    def held_bytes_are_those_of_all_shards(self) -> None:
        shards = {*self.tracker._shards.values(), *self.tracker._draining}
        assert self.tracker.held_bytes == sum(shard.held_bytes for shard in shards)

    # Events

    @rule(at=st.integers(0, PARTITIONS - 1), made=st.lists(st.tuples(GAPS, KEYS), min_size=1))
    def records_are_added(self, at: int, made: list[tuple[int, bytes | None]]) -> None:
        state = self.states[at]
        if state.is_paused:
            return
        records = []
        for gap, key in made:
            state.position += gap
            records.append(Record(state.position, key=key, topic="t", partition=at))
        state.taken += records
        self.tracker.add(state, state, state.place, records)

    @rule()
    def record_starts(self) -> None:
        shard = self.tracker.acquire_shard()
        if shard is None:
            assert not self.must_offer_a_record(), "a record could start"
            return
        record = _taken_of(shard)
        state: Any = shard.state
        assert not state.is_paused, "it was paused"
        assert state.is_there, "it was revoked"
        assert record.offset in self.allowed(state), f"{record} is out of order"
        self.retry_later = [each for each in self.retry_later if each[2] is not record]
        self.in_flight.append((state, shard, record))

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data(), failed=st.integers(0, 3))
    def record_ends(self, data: st.DataObject, failed: int) -> None:
        at = data.draw(st.integers(0, len(self.in_flight) - 1))
        state, shard, record = self.in_flight.pop(at)
        if failed:
            shard.complete(record)
            state.done.add(record.offset)
        else:
            shard.count_failure(record)
            shard.retry_later(record)
            self.retry_later.append((state, shard, record))
            self.tracker.schedule(shard, record, self.now + 1)
        self.tracker.release_shard(shard)

    @rule(seconds=st.floats(0.1, 2))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.tracker.move_due(self.now, 0)

    @rule(at=st.integers(0, PARTITIONS - 1), is_paused=st.booleans())
    def partition_is_paused(self, at: int, is_paused: bool) -> None:
        state = self.states[at]
        if state.is_paused != is_paused and self.tracker.shard_of(state) is not None:
            state.is_paused = is_paused
            (self.tracker.pause if is_paused else self.tracker.resume)(state)

    @rule(at=st.integers(0, PARTITIONS - 1))
    def partition_is_revoked(self, at: int) -> None:
        state = self.states[at]
        if self.tracker.shard_of(state) is None:
            return
        state.is_there = state.is_paused = False
        highest = max(state.done | self.offsets_in_flight(state), default=-1)
        dropped = self.tracker.drain(state)
        if dropped is not None:
            assert dropped not in state.done
            assert dropped not in self.offsets_in_flight(state)
            undone = [each.offset for each in state.taken if each.offset not in state.done]
            assert dropped > highest
            assert dropped in undone
            state.taken = [each for each in state.taken if each.offset < dropped]
            assert all(offset < dropped for offset in state.done), "it would be redelivered"
        self.retry_later = [each for each in self.retry_later if each[0] is not state]
        self.going.append((state, dropped))
        self.states[at] = State(state.place, state.position)

    @precondition(lambda self: self.going)
    @rule(data=st.data())
    def partition_is_lost(self, data: st.DataObject) -> None:
        at = data.draw(st.integers(0, len(self.going) - 1))
        state, _ = self.going.pop(at)
        self.tracker.discard(state)
        lost = [each for each in self.in_flight if each[0] is state]
        self.in_flight = [each for each in self.in_flight if each[0] is not state]
        assert self.tracker.is_in_flight([state]) == bool(lost)
        for _, shard, record in lost:
            shard.complete(record)
            self.tracker.release_shard(shard)
        assert not self.tracker.is_in_flight([state])
        assert self.tracker.first_incomplete(state) is None

    def everything_drains(self, chance: Random) -> None:
        """Drains all partitions; the tracker is idle once no record is in flight."""
        self.tracker.drain_all()
        for _ in range(10_000):
            if self.tracker.is_idle and not self.in_flight:
                break
            self.now += 1
            self.tracker.move_due(self.now, 0)
            if chance.random() < 0.5:
                state = chance.choice(self.states)
                self.tracker.pause(state)
            assert self.tracker.acquire_shard() is None, "a record would start after drain_all"
            if self.in_flight and chance.random() < 0.6:
                state, shard, record = self.in_flight.pop(chance.randrange(len(self.in_flight)))
                what = chance.random()
                if what < 0.3:
                    shard.count_failure(record)
                    shard.retry_later(record)
                    self.tracker.schedule(shard, record, self.now + 1)
                elif what < 0.4:
                    shard.abandon(record)
                else:
                    shard.complete(record)
                    state.done.add(record.offset)
                self.tracker.release_shard(shard)
        assert self.tracker.is_idle, "it would wait for drain_timeout_ms"
        for state in self.states:
            first = state.first_undone
            assert self.tracker.first_incomplete(state) == first
        states = [*self.states, *(state for state, _ in self.going)]
        undone = {each: each.first_undone for each in states if each.first_undone is not None}
        assert self.tracker.first_incomplete_offsets() == undone

    # Invariants

    def offsets_in_flight(self, state: State) -> set[int]:
        return {record.offset for its, _, record in self.in_flight if its is state}

    def allowed(self, state: State) -> set[int]:
        """Returns the offsets of the records that may start now."""
        undone = [each for each in state.taken if each.offset not in state.done]
        busy = self.offsets_in_flight(state)
        found = set()
        keys: set[bytes] = set()
        for record in undone:
            is_free = record.offset not in busy
            if self.order == "partition":
                is_free = is_free and record is undone[0]
            elif record.offset >= undone[0].offset + MAX_AHEAD:
                break
            elif self.order == "key" and record.key is not None:
                is_free = is_free and record.key not in keys
                keys.add(record.key)
            if is_free:
                found.add(record.offset)
        return found

    def must_offer_a_record(self) -> bool:
        """Returns True if a record that does not wait for a retry may start now."""
        waiting = {id(record) for _, _, record in self.retry_later}
        return any(
            {each.offset for each in state.taken if id(each) not in waiting} & self.allowed(state)
            for state in self.states
            if not state.is_paused
        )

    @invariant()
    def incomplete_offsets_are_known(self) -> None:
        for state in getattr(self, "states", ()):
            assert self.tracker.first_incomplete(state) == state.first_undone
        for state, dropped in getattr(self, "going", ()):
            first_incomplete = self.tracker.first_incomplete(state)
            assert first_incomplete == state.first_undone, (state.done, dropped)
        states = [*getattr(self, "states", ()), *(each for each, _ in getattr(self, "going", ()))]
        for state in states:
            self.offsets_processed_ahead_are_known(state)

    def offsets_processed_ahead_are_known(self, state: State) -> None:
        first = state.first_undone
        done = set() if first is None else {offset for offset in state.done if offset > first}
        incomplete_offsets = self.tracker.incomplete_offsets(state)
        if incomplete_offsets is None:
            assert not done
            return
        highest_started, undone = incomplete_offsets
        assert undone == sorted(undone)
        assert undone[0] == first
        offsets = [each.offset for each in state.taken]
        assert {
            at for at in offsets if undone[0] < at <= highest_started and at not in undone
        } == done

    def teardown(self) -> None:
        """Drains all partitions, or processes all records without failures.

        If all records are processed, every partition must complete.
        """
        if not hasattr(self, "states"):
            return
        if self.chance is not None:
            self.everything_drains(self.chance)
            return
        for at in range(PARTITIONS):
            self.partition_is_paused(at, False)
        for _ in range(10_000):
            self.now += 1
            self.tracker.move_due(self.now, 0)
            while self.in_flight:
                state, shard, record = self.in_flight.pop()
                shard.complete(record)
                state.done.add(record.offset)
                self.tracker.release_shard(shard)
            if not self.tracker.ready and self.tracker.is_idle:
                break
            self.record_starts()
        assert all(state.first_undone is None for state in self.states)


@pytest.mark.parametrize("order", rest_slow(["key", "partition", "none"], 1))
def test_tracker_keeps_order_and_incomplete_offsets(order: Order) -> None:
    machine = type("Ordered", (Machine,), {"order": order})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples(50), stateful_step_count=40, deadline=None)
    )


def test_record_after_its_key_waits_for_the_end_of_the_pause() -> None:
    tracker = RecordTracker("key", MAX_AHEAD)
    state = State(("t", 0), 0)
    records = [Record(at, key=b"a", topic="t", partition=0) for at in range(2)]
    shard = tracker.add(state, state, state.place, records)
    assert isinstance(shard, UnorderedShard)
    assert tracker.acquire_shard() is shard
    assert shard.ready.popleft() is records[0]
    tracker.pause(state)
    shard.complete(records[0])
    tracker.release_shard(shard)
    assert tracker.acquire_shard() is None
    tracker.resume(state)
    assert tracker.acquire_shard() is shard
    assert shard.ready.popleft() is records[1]


def test_record_is_in_flight_after_records_of_another_key_were_abandoned_and_dropped() -> None:
    tracker = RecordTracker("key", MAX_AHEAD)
    state = State(("t", 0), 0)
    keys = [b"x", b"k", b"k", b"k"]
    records = [Record(at, key=key, topic="t", partition=0) for at, key in enumerate(keys)]
    shard = tracker.add(state, state, state.place, records)
    assert isinstance(shard, UnorderedShard)
    assert tracker.acquire_shard() is shard
    assert [_taken_of(shard), _taken_of(shard)] == records[:2]
    shard.abandon(records[1])
    shard.drain()
    assert shard.has_in_flight(), "the handler of the first record runs"
    shard.complete(records[0])
    assert not shard.has_in_flight()


@pytest.mark.parametrize("order", ["partition", "key", "none"])
@pytest.mark.parametrize(("size", "most"), [(0, 1_000), (100, 1_000), (1 << 20, 7), (1 << 25, 1)])
def test_partition_is_held_back_by_the_total_size_of_its_queue(
    order: Order, size: int, most: int
) -> None:
    tracker = RecordTracker(order, 100_000)
    state = State(("t", 0), 0)
    value = bytes(size)
    shard = tracker.add(state, state, state.place, [Record(0)])
    tracker.pause(state)  # the tracker starts no record of a paused partition
    offset = 0
    while not offset or shard.queued < most:
        assert not offset or not tracker.needs_backpressure(shard)
        offset += 1
        tracker.add(state, state, state.place, [Record(offset, value=value)])
    assert tracker.needs_backpressure(shard)
    shard.has_backpressure = True
    tracker.resume(state)
    while tracker.needs_backpressure(shard):
        assert tracker.acquire_shard() is shard
        shard.complete(_taken_of(shard))
        tracker.release_shard(shard)
    assert shard.queued <= most // 2


@pytest.mark.parametrize("order", ["key", "none"])
def test_large_records_are_prepared_one_ahead_for_another_worker(order: Order) -> None:
    tracker = RecordTracker(order, 100_000)
    state = State(("t", 0), 0)
    for offset in range(9):
        tracker.add(state, state, state.place, [Record(offset, value=bytes(1 << 22))])
    in_flight: list[Record] = []
    for _ in range(9):
        shard = tracker.acquire_shard()
        assert isinstance(shard, UnorderedShard)
        assert len(shard.ready) == min(2, 9 - len(in_flight))
        in_flight.append(_taken_of(shard))
    assert [each.offset for each in in_flight] == [*range(9)]


@pytest.mark.parametrize("order", ["partition", "key", "none"])
def test_retry_topic_delay_is_not_longer_after_the_clock_is_set_back(
    order: Order,
) -> None:
    tracker = RecordTracker(order, MAX_AHEAD)
    state = State(("t", 0), 0)
    hour_ms = 3_600_000
    tracker.add(state, state, state.place, [Record(0)], [hour_ms + 2_000], 2.0)
    tracker.move_due(0.0, hour_ms)
    assert tracker.next_due == 2.0
    tracker.add(state, state, state.place, [Record(1)], [1_500 + 2_000], 3.5)
    tracker.move_due(1.5, 1_500)  # the clock was set back by an hour
    tracker.move_due(1.9, 1_900)
    assert tracker.acquire_shard() is None
    for now, offset, then in ((2.0, 0, 3.5), (3.5, 1, float("inf"))):
        tracker.move_due(now, now * 1000 - 100)
        assert tracker.next_due == then
        shard = tracker.acquire_shard()
        assert shard is not None
        record = _taken_of(shard)
        assert record.offset == offset
        shard.complete(record)
        tracker.release_shard(shard)
        assert tracker.acquire_shard() is None


def test_new_records_of_a_retry_topic_recheck_the_time_of_day() -> None:
    tracker = RecordTracker("none", MAX_AHEAD)
    state = State(("t", 0), 0)
    tracker.add(state, state, state.place, [Record(0)], [60_000], 60.0)
    tracker.move_due(0.0, 0)
    assert tracker.next_due == 60.0
    tracker.add(state, state, state.place, [Record(1)], [60_000 + 70_000], 61.0)
    tracker.move_due(1.0, 70_000)  # the clock was set forward by 69 s
    shard = tracker.acquire_shard()
    assert shard is not None
    assert _taken_of(shard).offset == 0
    assert tracker.next_due == 60.0
    tracker.move_due(60.0, 129_000)
    assert tracker.next_due == 61.0
    assert tracker.acquire_shard() is None
