"""Compares appending records by partition with appending record by record."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto import Client, ProducerRecord
from kproto.broker import Broker
from kproto.client.producer import append_by_partition
from kproto.client.producer.append_by_partition import CHUNK_RECORDS, RecordsByPartition
from kproto.client.producer.batch import ProducerBatch
from kproto.client.producer.held_batches import HeldBatches
from kproto.messages import ProduceRequest
from kproto.protocol.connection import ReceivedRequest
from kproto.records import read_batches
from tests.unit.client.producer.test_append_many_pass import NOW_MS, Side

small = st.binary(max_size=60)
headers = st.lists(st.tuples(st.text(max_size=3), st.none() | small), max_size=2)
keyed = st.builds(
    lambda value, key, headers: ProducerRecord(value, key, headers),
    small,
    st.binary(max_size=20),
    headers | headers.map(tuple),
)


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


class OpenedBatches(HeldBatches):
    """Also keeps the batches that were opened."""

    def __init__(self, side: Side) -> None:
        super().__init__(side.accumulator, is_active=True)
        self.opened: list[ProducerBatch] = []

    def add(self, batch: ProducerBatch) -> None:
        self.opened.append(batch)
        super().add(batch)


def read(side: Side, records: list[Any]) -> tuple[RecordsByPartition, OpenedBatches]:
    """Reads the first chunk of `records`."""
    held = OpenedBatches(side)
    found = RecordsByPartition(iter(records), side.accumulator, side.acks, held)
    found.read(side.partitioner)
    return found, held


def take(side: Side, chunk: list[Any]) -> list[ProducerBatch] | None:
    """Appends a chunk; returns the new batches, or None if the chunk was refused."""
    found, held = read(side, chunk)
    found.begin()
    while found.append_next(NOW_MS):
        pass
    assert not found.is_appending
    refused, found.refused = found.refused, None
    assert found.unappended() == []
    assert refused in (None, chunk)
    return None if refused else held.opened


@given(
    st.lists(st.lists(keyed, min_size=1, max_size=40), max_size=4), st.sampled_from([1, 2, 3, 50])
)
def test_same_batches_and_acks_as_record_by_record(
    chunks: list[list[ProducerRecord]], partitions: int
) -> None:
    loop = asyncio.new_event_loop()
    try:
        fast, slow = Side(loop, partitions), Side(loop, partitions)
        for chunk in chunks:
            if take(fast, chunk) is None:
                assert partitions == 1
                assert chunk[0].headers, "only records with headers are left"
                for record in chunk:
                    fast.add(record)
            for record in chunk:
                slow.add(record)
        assert fast.contents() == slow.contents()
        assert fast.accumulator.buffered == slow.accumulator.buffered
        assert len(fast.acks) == len(slow.acks) == sum(map(len, chunks))
        for side in (fast, slow):
            for queue in side.accumulator.queues.values():
                for number, batch in enumerate(queue.pending):
                    batch.base_offset = number * 1_000
        assert list(fast.acks) == list(slow.acks)
    finally:
        loop.close()


@given(st.lists(keyed, min_size=1, max_size=60), st.integers(2, 9), st.data())
def test_failures_have_the_order_of_the_records(
    chunk: list[ProducerRecord], partitions: int, data: st.DataObject
) -> None:
    loop = asyncio.new_event_loop()
    try:
        side = Side(loop, partitions, batch_bytes=200)
        side.add(b"before")
        assert take(side, chunk) is not None
        side.add(b"after")
        batches = side.acks.batches()
        failed = data.draw(st.sets(st.sampled_from(batches)))
        error = KeyError("x")
        for batch in batches:
            batch.future.set_result(error if batch in failed else None)  # type: ignore[arg-type]
        records = [ProducerRecord(b"before"), *chunk, ProducerRecord(b"after")]
        wanted = []
        for index, record in enumerate(records):
            ack = side.acks[index]
            queue = side.accumulator.queues["t", ack.partition]
            if any(
                batch in failed and record.value in [each.value for each in batch.content.records()]
                for batch in queue.pending
            ):
                wanted.append((record.key, record.value))
        found = [(each.key, each.value) for each in side.acks.undelivered()]
        # A value may be in several batches of a partition.
        assert Counter(found) <= Counter(wanted)
        positions = iter(records)
        assert all(
            any((record.key, record.value) == each for record in positions) for each in found
        )
        assert len(found) == sum(batch.count for batch in failed)
    finally:
        loop.close()


def test_opened_batches_are_told(loop: asyncio.AbstractEventLoop) -> None:
    side = Side(loop, 2, batch_bytes=300)
    chunk = [ProducerRecord(bytes(50), b"%d" % at) for at in range(20)]
    opened = take(side, chunk)
    queues = side.accumulator.queues.values()
    assert opened is not None
    assert Counter(map(id, opened)) == Counter(
        id(each) for queue in queues for each in queue.pending
    )
    assert len(opened) > 2


class Octets(bytes):
    """A subclass of bytes."""


class Named(ProducerRecord):
    """A subclass of ProducerRecord."""


PLAIN = ProducerRecord(b"v", b"k")

ODD: list[Any] = [
    b"v",
    None,
    7,
    (b"v", b"k"),
    Named(b"v", b"k"),
    ProducerRecord(b"v"),
    ProducerRecord(None, b"k"),
    ProducerRecord(Octets(b"v"), b"k"),
    ProducerRecord(b"v", Octets(b"k")),
    ProducerRecord("v", b"k"),
    ProducerRecord(b"v", b"k", timestamp=NOW_MS),
    ProducerRecord(b"v", b"k", partition=0),
    ProducerRecord(b"v", b"k", {"h": b"v"}),  # type: ignore[arg-type]
    ProducerRecord(b"v", b"k", iter([("h", b"v")])),  # type: ignore[arg-type]
    ProducerRecord(b"v", b"k", [("h", "text")]),  # type: ignore[list-item]
    ProducerRecord(b"v", b"k", [("h",)]),  # type: ignore[list-item]
    ProducerRecord(b"v", b"k", [("h", b"v", b"w")]),  # type: ignore[list-item]
    ProducerRecord(b"v", b"k", [7]),  # type: ignore[list-item]
    ProducerRecord(b"v", b"k", [(7, b"v")]),  # type: ignore[list-item]
    ProducerRecord(b"v", b"k", [("\ud800", b"v")]),
]


@pytest.mark.parametrize("odd", ODD, ids=map(str, range(len(ODD))))
def test_chunk_with_an_odd_element_is_left(loop: asyncio.AbstractEventLoop, odd: Any) -> None:
    side = Side(loop, 2)
    assert take(side, [PLAIN, odd, PLAIN]) is None
    assert len(side.acks) == 0
    assert not side.accumulator.queues


def test_headers_for_brokers_without_them_are_left(loop: asyncio.AbstractEventLoop) -> None:
    side = Side(loop, 2)
    side.accumulator.supports_headers = False
    assert take(side, [ProducerRecord(b"v", b"k", [("h", b"v")])]) is None
    assert take(side, [PLAIN]) is not None


def test_unappended_records_have_the_order_of_the_call(loop: asyncio.AbstractEventLoop) -> None:
    side = Side(loop, 5, batch_bytes=300)
    records = [
        ProducerRecord(b"%d" % at, b"%d" % at, [("h", b"v")] if at > 20 else ()) for at in range(50)
    ]
    found, _ = read(side, records)
    assert found.unappended() == [
        each._replace(headers=tuple(each.headers)) if not each.headers else each for each in records
    ]
    found.begin()
    for _ in range(4):  # each call fills a batch, or appends the last records of a partition
        assert found.append_next(NOW_MS)
    appended = [
        record.key
        for queue in side.accumulator.queues.values()
        for batch in queue.pending
        for record in batch.content.records()
    ]
    assert 12 < len(appended) < 50
    assert found.unappended() == [each for each in records if each.key not in appended]


@pytest.mark.parametrize("partitions", [2, 12, 1_000])
def test_chunks_are_read_until_each_partition_has_enough_records(
    loop: asyncio.AbstractEventLoop, partitions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunk_records = 256
    monkeypatch.setattr(append_by_partition, "CHUNK_RECORDS", chunk_records)
    monkeypatch.setattr(append_by_partition, "MAX_READ_RECORDS", 8 * chunk_records)
    side = Side(loop, partitions)
    records = [ProducerRecord(b"v", b"%d" % at) for at in range(11 * chunk_records)]
    held = OpenedBatches(side)
    found = RecordsByPartition(iter(records), side.accumulator, side.acks, held)
    chunks = 1
    while not found.read(side.partitioner):
        chunks += 1
    assert chunks == {2: 1, 12: 6, 1_000: 8}[partitions]
    found.begin()
    while found.append_next(NOW_MS):
        pass
    assert not found.is_at_end
    assert len(side.acks) == chunks * chunk_records
    order = [ack.partition for ack in side.acks[:100]]
    assert order == [side.partitioner.partition_of(each.key) for each in records[:100]]


@pytest.mark.parametrize(
    ("records", "size", "is_ready"),
    [(CHUNK_RECORDS + 1, 0, False), (CHUNK_RECORDS, 0, True), (CHUNK_RECORDS + 1, 30, True)],
)
def test_batch_is_sent_at_the_end_of_its_run_if_it_is_large_or_complete(
    loop: asyncio.AbstractEventLoop, records: int, size: int, is_ready: bool
) -> None:
    """A chunk has 32 records for each of 512 partitions; the next chunk has one more record."""
    keys: dict[int, bytes] = {}
    side = Side(loop, 512, batch_bytes=1 << 20)
    at = 0
    while len(keys) < 512:
        keys.setdefault(side.partitioner.partition_of(b"%d" % at), b"%d" % at)
        at += 1
    cycle = [ProducerRecord(bytes(size * 20), keys[at]) for at in range(512)]
    found, _ = read(side, [cycle[at % 512] for at in range(records)])
    found.begin()
    while found.append_next(NOW_MS):
        pass
    (batch,) = side.accumulator.queues["t", 7].pending
    assert batch.count == 32
    assert (batch.ready_at == float("-inf")) is is_ready


# --- `send_many` ---


def produced(broker: Broker) -> list[tuple[int, int]]:
    """Returns a list to which (partition, record count) of each produced batch is added."""
    found: list[tuple[int, int]] = []

    def note(received: ReceivedRequest) -> None:
        assert isinstance(received.message, ProduceRequest)
        for topic in received.message.topic_data:
            for each in topic.partition_data:
                assert each.records is not None
                found.extend(
                    (each.index, batch.record_count) for batch in read_batches(each.records)
                )

    broker.control(note, request=ProduceRequest)
    return found


async def test_send_many_makes_few_batches_of_many_partitions() -> None:
    partitions = 100
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t", partitions)
        records = [ProducerRecord(b"v", b"%d" % at) for at in range(200 * partitions)]
        async with client.producer() as producer:
            await producer.send("t", b"warm")
            found = produced(broker)
            acks = await producer.send_many("t", records)
        assert sum(count for _, count in found) == len(records)
        assert max(Counter(partition for partition, _ in found).values()) <= 2
        assert len({(ack.partition, ack.offset) for ack in acks}) == len(records)
        stored = {
            (partition, each.offset): each.key
            for partition in range(partitions)
            for each in broker.records("t", partition)
        }
        assert [stored[ack.partition, ack.offset] for ack in acks] == [each.key for each in records]


async def test_iterator_is_not_held_back() -> None:
    """An iterator may take long to yield the next element, so its batches are sent at once."""
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t", 2)
        async with client.producer() as producer:
            await producer.send("t", b"warm")

            def values() -> Iterator[bytes]:
                for at in range(300):
                    yield b"%d" % at
                    if at == 100:
                        time.sleep(0.05)

            found = produced(broker)
            await producer.send_many("t", values())
        assert len(found) > 1
