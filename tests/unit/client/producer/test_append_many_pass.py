"""Compares the fast path for many records with appending one by one; tests the path's limits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.client import ClientSettings
from kproto.client.metadata.cluster import PartitionInfo, TopicInfo
from kproto.client.producer.accumulator import RecordAccumulator
from kproto.client.producer.acks import Acks
from kproto.client.producer.append_many_pass import (
    AppendEndReason,
    AppendPassClock,
    append_to_open_batches,
    pass_over,
)
from kproto.client.producer.failed_deliveries import FailedDeliveries
from kproto.client.producer.partitioner import make_partitioner
from kproto.client.producer_record import ProducerRecord
from kproto.wire.uuid import ZERO_UUID

NOW_MS = 1_767_225_600_000


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


class Side:
    """An accumulator with a topic appender, and the acknowledgements of one call."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, partitions: int = 1, batch_bytes: int = 500
    ) -> None:
        self.accumulator = RecordAccumulator(
            ClientSettings(),
            batch_bytes=batch_bytes,
            linger_ms=0,
            max_in_flight=5,
            idempotent=True,
            failed_deliveries=FailedDeliveries(1 << 25),
            monotonic=lambda: self.now,
            new_future=loop.create_future,
        )
        self.now = 0.0
        self.clock_reads = 0
        parts = {at: PartitionInfo(at, 0, 0, (0,), (0,)) for at in range(partitions)}
        info = TopicInfo("t", ZERO_UUID, parts)
        self.partitioner = make_partitioner(info, self.accumulator.sticky_moves)
        self.acks = Acks()

    def monotonic(self) -> float:
        self.clock_reads += 1
        return self.now

    def take(
        self, values: Any, *, ends_at: float = 1.0, every: int = 1, buffer_bytes: int = 1 << 20
    ) -> Any:
        timing = AppendPassClock(
            lambda: NOW_MS + round(self.now * 1000), self.monotonic, ends_at, every
        )
        return append_to_open_batches(
            iter(values), self.partitioner, self.accumulator, buffer_bytes, timing, self.acks
        )

    def add(self, record_or_value: bytes | ProducerRecord | None) -> None:
        """Appends one record by the slow path, without the slow path's checks."""
        record = (
            record_or_value
            if isinstance(record_or_value, ProducerRecord)
            else ProducerRecord(record_or_value)
        )
        value, key, headers, timestamp, partition = record
        at = self.partitioner.partition_of(key) if partition is None else partition
        stamp = NOW_MS if timestamp is None else timestamp
        self.acks.add(*self.accumulator.add("t", at, key, value, headers, stamp))

    def send_many(self, values: list[Any]) -> None:
        """Appends all values; the slow path appends records that the fast path returns."""
        remaining = pass_over(values)
        while (returned := self.take(remaining, every=3)) is not AppendEndReason.ALL_APPENDED:
            self.add(returned)

    def contents(self) -> dict[int, list[tuple[int, bytes]]]:
        """Returns the record count and bytes of each batch, by partition."""
        return {
            partition: [(batch.count, batch.content.build()) for batch in queue.pending]
            for (_, partition), queue in self.accumulator.queues.items()
        }


small = st.binary(max_size=60)
headers = st.lists(st.tuples(st.text(max_size=3), st.none() | small), max_size=2)
records = st.builds(
    ProducerRecord,
    st.none() | small,
    st.none() | small,
    headers | headers.map(tuple),
    st.none() | st.integers(NOW_MS - 5, NOW_MS + 5),
    st.none() | st.integers(0, 2),
)


@given(st.lists(st.none() | small | records, max_size=60), st.sampled_from([1, 3]))
def test_fast_path_builds_the_same_batches_as_the_slow_path(
    values: list[Any], partitions: int
) -> None:
    if partitions == 1:
        values = [
            each._replace(partition=None) if isinstance(each, ProducerRecord) else each
            for each in values
        ]
    loop = asyncio.new_event_loop()
    try:
        fast, slow = Side(loop, partitions), Side(loop, partitions)
        fast.send_many(values)
        for each in values:
            slow.add(each)
        assert fast.contents() == slow.contents()
        assert fast.accumulator.buffered == slow.accumulator.buffered
        assert fast.accumulator.sticky_moves == slow.accumulator.sticky_moves
        for side in (fast, slow):
            for queue in side.accumulator.queues.values():
                for number, batch in enumerate(queue.pending):
                    batch.base_offset = number * 100
        assert list(fast.acks) == list(slow.acks)
        assert [batch.record_at(at) for batch, at in positions(fast)] == [
            batch.record_at(at) for batch, at in positions(slow)
        ]
    finally:
        loop.close()


@given(
    st.lists(small | st.binary(min_size=100, max_size=300), max_size=30),
    st.integers(1, 40),
    st.sampled_from([1, 3]),
    st.sampled_from([200, 500, 10_000, 1 << 20]),
)
def test_values_without_keys_build_the_same_batches_as_the_slow_path(
    values: list[bytes], repeated: int, partitions: int, batch_bytes: int
) -> None:
    values *= repeated
    loop = asyncio.new_event_loop()
    try:
        fast = Side(loop, partitions, batch_bytes)
        slow = Side(loop, partitions, batch_bytes)
        fast.send_many(values)
        for each in values:
            slow.add(each)
        assert fast.contents() == slow.contents()
        assert fast.accumulator.buffered == slow.accumulator.buffered
        assert fast.accumulator.sticky_moves == slow.accumulator.sticky_moves
        assert len(fast.acks) == len(values)
        for side in (fast, slow):
            for queue in side.accumulator.queues.values():
                for number, batch in enumerate(queue.pending):
                    batch.base_offset = number * 10_000
        assert list(fast.acks) == list(slow.acks)
    finally:
        loop.close()


@pytest.mark.parametrize("room", [0, 100, 380, 5_000])
def test_values_stop_when_the_buffer_is_full(loop: asyncio.AbstractEventLoop, room: int) -> None:
    side = Side(loop, batch_bytes=100_000)
    side.add(b"first")
    values = [b"%0100d" % at for at in range(200)]
    remaining = pass_over(values)
    assert side.take(remaining, buffer_bytes=room) is AppendEndReason.BUFFER_FULL
    assert room < side.accumulator.buffered <= max(room, 70) + 120
    assert list(remaining) == values[len(side.acks) - 1 :]


def test_values_stop_at_the_time_limit(loop: asyncio.AbstractEventLoop) -> None:
    side = Side(loop, batch_bytes=1 << 20)
    side.add(b"first")
    side.now = 2.0
    values = [b"v"] * 5_000
    remaining = pass_over(values)
    turns = 0
    while side.take(remaining, ends_at=1.0) is AppendEndReason.TIME_OVER:
        turns += 1
        side.now += 0.001
    assert turns == 5  # of at most 1,024 values
    assert [ack.timestamp - NOW_MS for ack in side.acks[::1024]] == [0, 2000, 2001, 2002, 2003]
    (batch,) = side.accumulator.queues["t", 0].pending
    assert batch.count == 5_001


def positions(side: Side) -> list[tuple[Any, int]]:
    """Returns for each acknowledgement the record's batch and its position in the batch."""
    found = []
    for ack in side.acks:
        queue = side.accumulator.queues["t", ack.partition]
        found.append((queue.pending[ack.offset // 100], ack.offset % 100))
    return found


class Octets(bytes):
    """A subclass of bytes."""


class Named(ProducerRecord):
    """A subclass of ProducerRecord."""


UNUSUAL: list[Any] = [
    7,
    "text",
    bytearray(b"v"),
    Octets(b"v"),
    Named(b"v"),
    (b"v", b"k"),
    ProducerRecord(bytearray(b"v")),
    ProducerRecord(b"v", Octets(b"k")),
    ProducerRecord("v"),
    ProducerRecord(b"v", 3),
    ProducerRecord(b"v", None, iter([("h", b"v")])),  # type: ignore[arg-type]
    ProducerRecord(b"v", None, [("h", "text")]),  # type: ignore[list-item]
    ProducerRecord(b"v", None, (), -1),
    ProducerRecord(b"v", None, (), 1 << 63),
    ProducerRecord(b"v", None, (), True),
    ProducerRecord(b"v", None, (), None, 9),
    ProducerRecord(b"v", None, (), None, True),
    ProducerRecord(b"v", None, (), None, "0"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("unusual", UNUSUAL, ids=map(str, range(len(UNUSUAL))))
def test_unusual_record_is_returned(loop: asyncio.AbstractEventLoop, unusual: Any) -> None:
    side = Side(loop)
    side.add(b"first")
    remaining = iter([b"1", b"2", unusual, b"3"])
    assert side.take(remaining) is unusual
    assert len(side.acks) == 3
    assert side.take(remaining) is AppendEndReason.ALL_APPENDED
    (batch,) = side.accumulator.queues["t", 0].pending
    assert [record.value for record in batch.content.records()] == [b"first", b"1", b"2", b"3"]
    assert side.accumulator.buffered == batch.content.size_in_bytes


def test_record_without_an_open_batch_is_returned(loop: asyncio.AbstractEventLoop) -> None:
    side = Side(loop, partitions=2)
    assert side.take([b"first"]) == b"first"
    side.add(b"first")
    elsewhere = ProducerRecord(b"v", None, (), None, 1)
    assert side.take([b"second", elsewhere]) == elsewhere
    assert len(side.acks) == 2


def test_record_that_does_not_fit_is_returned(loop: asyncio.AbstractEventLoop) -> None:
    side = Side(loop, batch_bytes=200)
    side.add(b"first")
    large = b"v" * 150
    assert side.take([b"second", large]) == large
    assert len(side.acks) == 2


def test_sent_batch_accepts_no_records(loop: asyncio.AbstractEventLoop) -> None:
    side = Side(loop)
    side.add(b"first")
    batch = side.accumulator.queues["t", 0].pending[0]
    batch.send_index = 0  # the first batch was sent and failed
    assert side.take([b"second"]) == b"second"


def test_error_of_an_iterator_is_raised_and_earlier_records_stay(
    loop: asyncio.AbstractEventLoop,
) -> None:
    def broken() -> Iterator[bytes]:
        yield b"1"
        yield b"2"
        raise OSError("gone")

    side = Side(loop)
    side.add(b"first")
    with pytest.raises(OSError, match="gone"):
        side.take(broken(), every=32)
    (batch,) = side.accumulator.queues["t", 0].pending
    assert [record.value for record in batch.content.records()] == [b"first", b"1", b"2"]
    assert len(side.acks) == 3
    assert side.accumulator.buffered == batch.content.size_in_bytes


def test_appender_stops_when_the_buffer_is_full(loop: asyncio.AbstractEventLoop) -> None:
    side = Side(loop, batch_bytes=10_000)
    side.add(b"first")
    remaining = iter([b"v" * 100] * 10)
    assert side.take(remaining, buffer_bytes=380) is AppendEndReason.BUFFER_FULL
    assert side.accumulator.buffered > 380
    assert len(side.acks) == 4
    assert side.take(remaining) is AppendEndReason.ALL_APPENDED
    assert len(side.acks) == 11


def test_appender_stops_at_the_time_limit_after_the_current_record(
    loop: asyncio.AbstractEventLoop,
) -> None:
    side = Side(loop, batch_bytes=10_000)
    side.add(b"first")

    def delayed() -> Iterator[bytes]:
        for at in range(5):
            side.now += 0.3
            yield b"%d" % at

    remaining = delayed()
    assert side.take(remaining, ends_at=1.0) is AppendEndReason.TIME_OVER
    assert len(side.acks) == 5
    assert side.take(remaining, ends_at=9.0) is AppendEndReason.ALL_APPENDED
    assert len(side.acks) == 6
    assert [ack.timestamp - NOW_MS for ack in side.acks] == [0, 300, 600, 900, 1200, 1500]


def test_clock_is_read_once_for_many_records(loop: asyncio.AbstractEventLoop) -> None:
    side = Side(loop, batch_bytes=100_000)
    side.add(b"first")
    assert side.take([b"v"] * 100, every=32) is AppendEndReason.ALL_APPENDED
    assert side.clock_reads == 4


def test_iterator_may_append_records_itself(loop: asyncio.AbstractEventLoop) -> None:
    """The caller's iterator appends records while the fast path consumes it.

    This happens if the iterator starts an eager task that sends.
    """
    side = Side(loop, batch_bytes=10_000)
    side.add(b"first")
    accumulator = side.accumulator

    def appending() -> Iterator[bytes]:
        for at in range(6):
            if at % 2:
                accumulator.add("t", 0, None, b"of another", (), NOW_MS)
            if at == 3:
                accumulator.queues["t", 0].pending[-1].send_index = 0  # as after a send
            yield b"%d" % at

    remaining = appending()
    while (returned := side.take(remaining)) is not AppendEndReason.ALL_APPENDED:
        side.add(returned)
    batches = list(accumulator.queues["t", 0].pending)
    values = [record.value for batch in batches for record in batch.content.records()]
    for number, batch in enumerate(batches):
        batch.base_offset = sum(each.count for each in batches[:number])
    mine = [values[ack.offset] for ack in side.acks]
    assert mine == [b"first", *(b"%d" % at for at in range(6))]
    assert len(values) == 10
    assert accumulator.buffered == sum(batch.content.size_in_bytes for batch in batches)
