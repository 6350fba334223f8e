"""Tests that `queued_max_bytes` bounds a consumer's memory, whichever partitions have records."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import kproto
from kproto.broker import Broker
from kproto.client.consumer.record_stream import RecordStream

PARTITIONS = 40
RECORDS = 30
VALUE = b"v" * 10_000

#: A thirtieth of all records, and the size of less than one list of each partition.
LIMIT = 400_000

#: The bound may be exceeded by the largest batch that is sent whole, and by a list for each worker.
BATCH = 110_000


@asynccontextmanager
async def filled_topic(compression: Any = "none") -> AsyncIterator[kproto.Client]:
    """Yields a client of a broker that has a topic with records in all partitions."""
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("t", partitions=PARTITIONS)
        async with client.producer(batch_bytes=100_000, compression=compression) as producer:
            await producer.send_many(
                "t",
                [
                    kproto.ProducerRecord(VALUE, key=b"%d" % number, partition=partition)
                    for number in range(RECORDS)
                    for partition in range(PARTITIONS)
                ],
            )
        yield client


class Peak:
    """The most bytes that a consumer has requested, buffered and queued at once."""

    def __init__(self, consumer: RecordStream) -> None:
        self._consumer = consumer
        self.bytes = 0

    def observe(self) -> None:
        now = self._consumer._in_flight.max_bytes + self._consumer._subscriptions.poll.queued_bytes
        self.bytes = max(self.bytes, now)


def check_all_in_order(read: dict[int, list[int]]) -> None:
    assert sorted(read) == list(range(PARTITIONS))
    assert all(offsets == list(range(RECORDS)) for offsets in read.values())


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("order", ["partition", "key", "none"])
async def test_run_queues_no_more_than_the_limit(order: Any, compression: str) -> None:
    """All partitions have a backlog, and the handlers are slower than the fetches."""
    read: dict[int, list[int]] = defaultdict(list)
    async with filled_topic(compression) as client:
        consumer = client.consumer("t", group="g", queued_max_bytes=LIMIT)
        peak = Peak(consumer)

        async def handle(record: kproto.Record) -> None:
            peak.observe()
            await asyncio.sleep(0)
            read[record.partition].append(record.offset)
            if sum(map(len, read.values())) == PARTITIONS * RECORDS:
                raise kproto.Stop

        async with consumer:
            await consumer.run(handle, workers=4, order=order)
    if order != "partition":
        read = {partition: sorted(offsets) for partition, offsets in read.items()}
    check_all_in_order(read)
    assert LIMIT // 4 < peak.bytes <= LIMIT + 2 * BATCH


@pytest.mark.parametrize("has_group", [False, True])
async def test_iteration_fetches_no_more_than_the_limit(has_group: bool) -> None:
    read: dict[int, list[int]] = defaultdict(list)
    async with filled_topic() as client:
        consumer: Any = (
            client.consumer("t", group="g", queued_max_bytes=LIMIT)
            if has_group
            else client.consumer("t", queued_max_bytes=LIMIT)
        )
        peak = Peak(consumer)
        async with consumer:
            async for record in consumer:
                peak.observe()
                read[record.partition].append(record.offset)
                if sum(map(len, read.values())) == PARTITIONS * RECORDS:
                    break
    check_all_in_order(read)
    assert LIMIT // 4 < peak.bytes <= LIMIT + BATCH


async def test_fetches_of_paused_partitions_make_room_for_others() -> None:
    """All partitions except one are paused while their records are buffered; no record is lost."""
    read: dict[int, list[int]] = defaultdict(list)
    async with filled_topic() as client:
        consumer = client.consumer("t", group="g", queued_max_bytes=LIMIT)
        peak = Peak(consumer)
        async with consumer:
            async for record in consumer:
                peak.observe()
                read[record.partition].append(record.offset)
                count = sum(map(len, read.values()))
                if count == 1:
                    first = record.partition
                    consumer.pause(*(("t", n) for n in range(PARTITIONS) if n != first))
                elif count == RECORDS:
                    assert list(read) == [first]
                    consumer.resume(*(("t", n) for n in range(PARTITIONS) if n != first))
                elif count == PARTITIONS * RECORDS:
                    break
    check_all_in_order(read)
    assert peak.bytes <= LIMIT + BATCH


async def test_stuck_handlers_do_not_stop_other_partitions() -> None:
    """Queued records of stuck partitions take only these partitions' share of the limit."""
    stuck = asyncio.Event()
    read: dict[int, list[int]] = defaultdict(list)
    async with filled_topic() as client:
        consumer = client.consumer("t", group="g", queued_max_bytes=LIMIT)

        async def handle(record: kproto.Record) -> None:
            if record.partition < PARTITIONS // 2 and not stuck.is_set():
                await stuck.wait()
            read[record.partition].append(record.offset)
            count = sum(map(len, read.values()))
            if count == PARTITIONS // 2 * RECORDS:
                stuck.set()
            elif count == PARTITIONS * RECORDS:
                raise kproto.Stop

        async with consumer:
            await consumer.run(handle, workers=PARTITIONS // 2 + 1, order="partition")
    check_all_in_order(read)


async def test_records_that_wait_for_a_retry_do_not_stop_other_partitions() -> None:
    """Records that wait for a retry exceed `queued_max_bytes`; idle workers get other records."""
    failing = PARTITIONS - 1
    handled: set[int] = set()
    async with filled_topic() as client:
        consumer = client.consumer("t", group="g", queued_max_bytes=20_000)

        async def handle(record: kproto.Record) -> None:
            if record.partition < failing:
                raise ValueError("not yet")
            handled.add(record.offset)
            if len(handled) == RECORDS:
                raise kproto.Stop

        retries = kproto.Retries(attempts=9, backoff_ms=600_000, backoff_max_ms=600_000)
        async with consumer:
            await consumer.run(handle, workers=2, order="partition", retries=retries)
    assert len(handled) == RECORDS


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("queued_max_bytes", 0),
        ("fetch_max_bytes", 0),
        ("fetch_min_bytes", -1),
        ("fetch_max_bytes", 2**31),
    ],
)
async def test_limit_out_of_range_is_refused(name: str, value: int) -> None:
    client = kproto.Client("localhost:1")
    with pytest.raises(kproto.ConfigurationError, match=name):
        client.consumer("t", **{name: value})  # type: ignore[call-overload]
    with pytest.raises(kproto.ConfigurationError, match=name):
        client.consumer("t", group="g", **{name: value})  # type: ignore[call-overload]
    await client.close()


async def test_fetch_min_bytes_is_sent() -> None:
    """A broker that has fewer than `fetch_min_bytes` bytes delays its response by `max_wait_ms`."""
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("t")
        async with client.producer() as producer:
            await producer.send("t", b"v")
        loop = asyncio.get_running_loop()
        times = {}
        for least in (1, 1_000_000):
            consumer = client.consumer("t", fetch_min_bytes=least, max_wait_ms=300)
            async with consumer:
                began = loop.time()
                assert (await anext(aiter(consumer))).value == b"v"
                times[least] = loop.time() - began
    assert times[1_000_000] >= 0.29
