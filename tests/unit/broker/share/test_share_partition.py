"""Tests a share partition against a plain reference model, and its table of record states.

The model holds a state, a delivery count, a member and a lock for each offset in a dict. Random
members acquire, acknowledge and release records, locks expire, and the log start offset moves.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kproto import BrokerResponseError
from kproto.broker.api_error import api_error
from kproto.broker.groups import ClockReading
from kproto.broker.share import (
    AcknowledgementBatch,
    AcquireMode,
    AcquireRequest,
    LogBatch,
    RecordState,
    SharePartition,
    SharePartitionConfig,
    ShareState,
    ShareStateWrite,
    acquire,
    combine_batches,
)
from kproto.broker.share.record_state import TERMINAL, TRANSITIONS

LIMIT: Final = 3
LOCK_MS: Final = 1_000
LOCKS: Final = 100
CONFIG: Final = SharePartitionConfig(
    lock_duration_ms=LOCK_MS, delivery_count_limit=LIMIT, max_record_locks=LOCKS
)
MEMBERS: Final = ("a", "b")
#: The record batches of the log: ten batches of one to four records.
SIZES: Final = (1, 4, 2, 3, 1, 1, 4, 2, 3, 4)
STATES: Final = tuple(RecordState)


def at(ms: int) -> ClockReading:
    return ClockReading(ms, ms)


def log_batches() -> list[LogBatch]:
    found, first = [], 0
    for size in SIZES:
        found.append(LogBatch(first, first + size - 1))
        first += size
    return found


@dataclass
class Persister:
    """Stores the writes as the share coordinator does; fails while `fails` is set."""

    state: ShareState = field(default_factory=lambda: ShareState(0, 1, 0, 0))
    fails: bool = False

    def store(self, write: ShareStateWrite, now: ClockReading) -> None:
        if self.fails:
            raise api_error("COORDINATOR_NOT_AVAILABLE", "a fault of the test")
        start = max(self.state.start_offset, write.start_offset)
        batches = combine_batches(self.state.batches, write.batches, start)
        self.state = replace(self.state, start_offset=start, batches=batches)


@dataclass
class Record:
    """One offset of the reference model."""

    state: RecordState = RecordState.AVAILABLE
    count: int = 0
    member: str = ""
    lock_ms: int = 0


class Model:
    """The reference model: a dict of offsets."""

    def __init__(self) -> None:
        self.records: dict[int, Record] = {}
        self.log_start = 0

    def expire(self, now_ms: int) -> None:
        for offset, record in self.records.items():
            if record.state is RecordState.ACQUIRED and record.lock_ms <= now_ms:
                self.end(offset, RecordState.AVAILABLE)

    def end(self, offset: int, state: RecordState) -> None:
        record = self.records[offset]
        if state is RecordState.AVAILABLE and (record.count >= LIMIT or offset < self.log_start):
            state = RecordState.ARCHIVED
        record.state, record.member = state, ""

    def acquire(self, member: str, first: int, last: int, count: int, now_ms: int) -> None:
        for offset in range(first, last + 1):
            record = self.records.setdefault(offset, Record())
            assert record.state is RecordState.AVAILABLE, (offset, record)
            record.state, record.member = RecordState.ACQUIRED, member
            record.count += 1
            record.lock_ms = now_ms + LOCK_MS
            assert record.count == count <= LIMIT

    def may_acknowledge(self, member: str, offsets: range) -> bool:
        return all(
            self.records[it].state is RecordState.ACQUIRED and self.records[it].member == member
            for it in offsets
        )

    @property
    def start_offset(self) -> int:
        """The first offset whose delivery is not complete."""
        offset = self.log_start
        while offset in self.records and self.records[offset].state in TERMINAL:
            offset += 1
        return offset


ACK_STATES: Final = {
    0: RecordState.ARCHIVED,
    1: RecordState.ACKNOWLEDGED,
    2: RecordState.AVAILABLE,
    3: RecordState.ARCHIVED,
}

steps = st.one_of(
    st.tuples(st.just("fetch"), st.sampled_from(MEMBERS), st.integers(1, 12), st.booleans()),
    st.tuples(
        st.just("acknowledge"), st.sampled_from(MEMBERS), st.integers(0, 24), st.integers(0, 3)
    ),
    st.tuples(st.just("release"), st.sampled_from(MEMBERS), st.just(0), st.just(0)),
    st.tuples(st.just("wait"), st.just(""), st.integers(1, 700), st.just(0)),
    st.tuples(st.just("fail"), st.just(""), st.just(0), st.booleans()),
    st.tuples(st.just("delete"), st.just(""), st.integers(0, 24), st.just(0)),
    st.tuples(st.just("move"), st.just(""), st.just(0), st.just(0)),
)


class Player:
    """Applies steps to the share partition and to the model."""

    def __init__(self) -> None:
        self.persister = Persister()
        self.model = Model()
        self.now_ms = 0
        self.batches = log_batches()
        self.end = self.batches[-1].last + 1
        self.partition = self.loaded()

    def loaded(self) -> SharePartition:
        state = self.persister.state
        return SharePartition(state, state.start_offset, 0, lambda: CONFIG, self.persister.store)

    def play(self, kind: str, member: str, number: int, flag: int) -> None:
        getattr(self, kind)(member, number, flag)
        self.partition.advance(at(self.now_ms))
        self.model.expire(self.now_ms)
        self.compare()

    def fetch(self, member: str, most: int, is_limited: int) -> None:
        partition = self.partition
        partition.advance(at(self.now_ms))
        self.model.expire(self.now_ms)
        partition.on_log_start_moved(self.model.log_start)
        offset = partition.next_fetch_offset
        if not partition.can_acquire or offset >= self.end:
            return
        mode = AcquireMode.RECORD_LIMIT if is_limited else AcquireMode.BATCH_OPTIMIZED
        read = [it for it in self.batches if it.last >= offset][:4]
        found = acquire(partition, AcquireRequest(member, mode, 3, most), offset, read, self.now_ms)
        for it in found:
            self.model.acquire(member, it.first, it.last, it.deliveries, self.now_ms)
        if is_limited:
            assert sum(it.size for it in found) <= most
        for record in range(
            self.model.log_start, partition.end_offset + bool(len(partition.batches))
        ):
            self.model.records.setdefault(record, Record())

    def acknowledge(self, member: str, first: int, kind: int) -> None:
        known = [it for it in self.model.records if it >= self.partition.start_offset]
        offsets = range(first, min(first + 3, max(known, default=-1) + 1))
        if not known or first < min(known) or not offsets:
            return
        batch = AcknowledgementBatch(first, offsets[-1], (kind,))
        allowed = self.model.may_acknowledge(member, offsets)
        if not allowed or self.persister.fails:
            with pytest.raises(BrokerResponseError):
                self.partition.acknowledge(member, [batch], at(self.now_ms))
            return
        self.partition.acknowledge(member, [batch], at(self.now_ms))
        for offset in offsets:
            self.model.end(offset, ACK_STATES[kind])

    def release(self, member: str, number: int, flag: int) -> None:
        try:
            self.partition.release(member, at(self.now_ms))
        except BrokerResponseError:
            assert self.persister.fails
            return
        for offset, record in self.model.records.items():
            if record.state is RecordState.ACQUIRED and record.member == member:
                self.model.end(offset, RecordState.AVAILABLE)

    def wait(self, member: str, ms: int, flag: int) -> None:
        self.now_ms += ms

    def fail(self, member: str, number: int, fails: int) -> None:
        self.persister.fails = bool(fails)

    def delete(self, member: str, offset: int, flag: int) -> None:
        if offset > self.model.log_start:
            self.model.log_start = offset
            self.partition.on_log_start_moved(offset)
            for each, record in self.model.records.items():
                if each < offset and record.state is RecordState.AVAILABLE:
                    record.state = RecordState.ARCHIVED

    def move(self, member: str, number: int, flag: int) -> None:
        """Moves the leader: the next one knows only what was written."""
        if self.model.log_start:
            return  # the reference model does not follow truncated logs over a leader's move
        self.partition = self.loaded()
        written = {
            offset: batch
            for batch in self.persister.state.batches
            for offset in range(batch.first, batch.last + 1)
        }
        start = self.persister.state.start_offset
        for offset, record in list(self.model.records.items()):
            if offset >= start:
                batch = written.get(offset)
                if batch is None:
                    del self.model.records[offset]
                else:
                    record.state, record.count = RecordState(batch.state), batch.deliveries
                    record.member = ""

    def compare(self) -> None:
        partition, model = self.partition, self.model
        assert partition.in_flight <= LOCKS
        for batch in partition.batches:
            for first, last, delivery in batch.parts():
                for offset in range(max(first, partition.start_offset), last + 1):
                    record = model.records[offset]
                    found = (delivery.state, delivery.count, delivery.member_id)
                    assert found == (record.state, record.count, record.member), offset
        if not partition.active_gap:
            assert partition.start_offset >= model.log_start
            for offset in range(model.log_start, partition.start_offset):
                assert model.records[offset].state in TERMINAL, offset


@settings(max_examples=300, deadline=None)
@given(st.lists(steps, min_size=5, max_size=60))
def test_random_members_see_the_states_of_the_model(
    played: list[tuple[str, str, int, int]],
) -> None:
    player = Player()
    for step in played:
        player.play(*step)


@pytest.mark.parametrize("state", STATES)
def test_terminal_states_have_no_next_state(state: RecordState) -> None:
    assert (state in TERMINAL) == (not TRANSITIONS[state])


def partition_with(records: int) -> tuple[SharePartition, Persister]:
    persister = Persister()
    partition = SharePartition(persister.state, 0, 0, lambda: CONFIG, persister.store)
    request = AcquireRequest("a", AcquireMode.BATCH_OPTIMIZED, 500, 500)
    acquire(partition, request, 0, [LogBatch(0, records - 1)], 0)
    return partition, persister


def test_record_is_archived_after_its_last_delivery() -> None:
    partition, _ = partition_with(1)
    deliveries = [1]
    for ms in range(LOCK_MS, 10 * LOCK_MS, LOCK_MS):
        partition.advance(at(ms))
        request = AcquireRequest("a", AcquireMode.BATCH_OPTIMIZED, 500, 500)
        if partition.next_fetch_offset == 0:
            found = acquire(partition, request, 0, [LogBatch(0, 0)], ms)
            deliveries += [it.deliveries for it in found]
    assert deliveries == [1, 2, 3]
    assert (partition.start_offset, len(partition.batches)) == (1, 0)


def test_acknowledgement_that_cannot_be_written_changes_nothing() -> None:
    partition, persister = partition_with(4)
    persister.fails = True
    batches = [AcknowledgementBatch(0, 1, (1,)), AcknowledgementBatch(2, 2, (2,))]
    with pytest.raises(BrokerResponseError, match="COORDINATOR_NOT_AVAILABLE"):
        partition.acknowledge("a", batches, at(1))
    persister.fails = False
    partition.acknowledge("a", [AcknowledgementBatch(0, 3, (1,))], at(1))
    assert partition.start_offset == 4


def test_second_invalid_batch_rolls_back_the_first() -> None:
    partition, persister = partition_with(4)
    batches = [AcknowledgementBatch(0, 1, (1,)), AcknowledgementBatch(3, 9, (1,))]
    with pytest.raises(BrokerResponseError, match="INVALID_REQUEST"):
        partition.acknowledge("a", batches, at(1))
    assert not persister.state.batches
    partition.acknowledge("a", [AcknowledgementBatch(0, 3, (1,))], at(1))


def test_renewed_lock_expires_later() -> None:
    partition, _ = partition_with(2)
    partition.acknowledge("a", [AcknowledgementBatch(0, 0, (4,))], at(LOCK_MS - 1))
    partition.advance(at(LOCK_MS))
    assert partition.next_fetch_offset == 1
    partition.advance(at(2 * LOCK_MS - 1))
    assert partition.next_fetch_offset == 0


def test_next_leader_fetches_the_records_of_a_gap_again() -> None:
    partition, persister = partition_with(6)
    partition.acknowledge("a", [AcknowledgementBatch(3, 5, (1,))], at(1))
    successor = SharePartition(persister.state, 0, 1, lambda: CONFIG, persister.store)
    assert successor.next_fetch_offset == 0
    request = AcquireRequest("b", AcquireMode.BATCH_OPTIMIZED, 500, 500)
    found = acquire(successor, request, 0, [LogBatch(0, 5)], 2)
    assert [(it.first, it.last) for it in found] == [(0, 2)]
    successor.acknowledge("b", [AcknowledgementBatch(0, 2, (1,))], at(3))
    assert successor.next_fetch_offset == 6, "acknowledged records are not delivered again"
