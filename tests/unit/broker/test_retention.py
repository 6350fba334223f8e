"""Tests retention and the storage limit of all logs, as clients see them."""

from __future__ import annotations

import asyncio
import logging
import os

import pytest

from kproto import BrokerResponseError, Client, DeliveryError
from kproto.broker import Broker, BrokerSettings
from kproto.clock import SYSTEM_CLOCK
from kproto.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kproto.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kproto.messages.produce_response import ProduceResponse
from kproto.protocol.error_codes import error_code
from kproto.records import encode_batch
from kproto.testing.clock import ManualClock
from tests.support.patience import until
from tests.unit.broker.raw_requests import watchers
from tests.unit.broker.test_handlers import context, decided, produce_request
from tests.unit.client.scripted_broker import quick

HOUR_MS = 3_600_000


async def starts(client: Client, topic: str) -> tuple[int, int]:
    part = (topic, 0)
    earliest = (await client.list_offsets({part: "earliest"}))[part]
    return earliest, (await client.list_offsets({part: "latest"}))[part]


async def test_records_expire_by_retention_ms() -> None:
    clock = ManualClock()
    async with Broker(clock=clock) as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t", configs={"retention.ms": str(HOUR_MS)})
        async with client.producer() as producer:
            for value in (b"a", b"b"):
                await producer.send("t", value, timestamp=clock.now_ms())
                await clock.advance(HOUR_MS / 2)
            assert await starts(client, "t") == (0, 2)
            await clock.advance(1)
            assert [record.value for record in broker.records("t")] == [b"b"]
            assert await starts(client, "t") == (1, 2)
            with pytest.raises(BrokerResponseError, match="OFFSET_OUT_OF_RANGE"):
                await client.fetch("t", 0, 0)
            fetched = await client.fetch("t", 0, 1)
            assert fetched.log_start_offset == 1
            await clock.advance(HOUR_MS)
            assert broker.topics["t"].partitions[0].log.start_offset == 2
            assert (await client.fetch("t", 0, 2, max_wait_ms=0)).records == b""
            assert (await producer.send("t", b"c", timestamp=clock.now_ms())).offset == 2
            assert broker.end_offset("t") == 3
            assert await starts(client, "t") == (2, 3)


async def test_fetch_applies_retention() -> None:
    clock = ManualClock()
    async with Broker(clock=clock) as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t", configs={"retention.ms": "1000"})
        async with client.producer() as producer:
            await producer.send("t", b"a", timestamp=clock.now_ms())
        await clock.advance(1001)
        with pytest.raises(BrokerResponseError, match="OFFSET_OUT_OF_RANGE"):
            await client.fetch("t", 0, 0)


async def test_delayed_fetch_fails_when_its_records_are_deleted() -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t")
        async with client.producer() as producer:
            await producer.send_many("t", [b"a", b"b", b"c"])
        fetch = client.fetch("t", 0, 0, min_bytes=1_000_000, max_wait_ms=600_000)
        waiting = asyncio.create_task(fetch)
        await until(lambda: watchers(broker) == 1)
        broker.delete_records("t", 0, before=2)
        with pytest.raises(BrokerResponseError, match="OFFSET_OUT_OF_RANGE"):
            await waiting


async def test_retention_bytes_limits_log() -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t", configs={"retention.bytes": "50000"})
        log = broker.topics["t"].partitions[0].log
        async with client.producer() as producer:
            for number in range(50):
                await producer.send("t", bytes(10_000))
                assert log.size_in_bytes < 61_000, number
        assert await starts(client, "t") == (45, 50)
        records = [record async for record in client.consumer("t", stop_at_end=True)]
        assert [record.offset for record in records] == [45, 46, 47, 48, 49]


async def test_compacted_topic_has_no_retention() -> None:
    clock = ManualClock()
    configs = {"cleanup.policy": "compact", "retention.bytes": "1", "retention.ms": "1"}
    async with Broker(clock=clock) as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t", configs=configs)
        async with client.producer() as producer:
            for number in range(3):
                await producer.send("t", b"v", key=b"k%d" % number)
        await clock.advance(HOUR_MS)
        assert await starts(client, "t") == (0, 3)


async def produced(client: Client, topic: str, value: bytes, now_ms: int | None = None) -> str:
    """Sends one Produce request without a retry; returns the name of its error, or NONE."""
    batch = encode_batch([(b"k", value, (), now_ms or SYSTEM_CLOCK.now_ms())])
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(records=batch)])
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data])
    answer = await client.request(request, broker=1, version=9)
    return error_code(answer.responses[0].partition_responses[0].error_code).name


async def test_max_stored_bytes_limits_all_logs(caplog: pytest.LogCaptureFixture) -> None:
    settings = BrokerSettings(max_stored_bytes=100_000)
    async with Broker(settings) as broker, Client(broker.bootstrap) as client:
        broker.create_topic("a")
        broker.create_topic("b", configs={"compression.type": "gzip"})
        for _ in range(9):
            assert await produced(client, "a", bytes(10_000)) == "NONE"
        for topic, value in (("a", bytes(10_000)), ("b", os.urandom(10_000))):
            assert await produced(client, topic, value) == "KAFKA_STORAGE_ERROR"
        assert await produced(client, "b", bytes(50_000)) == "NONE", "what is stored counts"
        (told,) = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
        assert "max_stored_bytes, 100000" in told
        assert (broker.end_offset("a"), broker.end_offset("b")) == (9, 1)


async def test_producer_continues_after_room_is_freed() -> None:
    async with Broker(BrokerSettings(max_stored_bytes=30_000)) as broker:
        broker.create_topic("a")
        broker.create_topic("b")
        async with Client(broker.bootstrap) as client, client.producer() as producer:
            await producer.send("a", bytes(20_000))
            asked = 0
            again = asyncio.Event()

            def count(request: object) -> None:
                nonlocal asked
                asked += 1
                if asked == 2:
                    again.set()

            broker.control(count, request=ProduceRequest)
            sending = asyncio.create_task(producer.send("b", bytes(20_000)))
            await again.wait()
            assert not sending.done()
            broker.delete_topic("a")
            assert (await sending).offset == 0


async def test_failed_producer_reports_storage_error() -> None:
    async with Broker(BrokerSettings(max_stored_bytes=10_000)) as broker:
        broker.create_topic("a")
        short = quick(metadata_wait_ms=5_000, delivery_timeout_ms=300)
        async with Client(broker.bootstrap, short) as client, client.producer() as producer:
            with pytest.raises(DeliveryError, match="KAFKA_STORAGE_ERROR"):
                await producer.send("a", bytes(10_000))


async def test_expired_records_free_room_for_produce() -> None:
    clock = ManualClock()
    settings = BrokerSettings(max_stored_bytes=50_000)
    async with Broker(settings, clock=clock) as broker, Client(broker.bootstrap) as client:
        broker.create_topic("old", configs={"retention.ms": "1000"})
        broker.create_topic("new")
        now_ms = clock.now_ms()
        assert await produced(client, "old", bytes(40_000), now_ms) == "NONE"
        assert await produced(client, "new", bytes(40_000), now_ms) == "KAFKA_STORAGE_ERROR"
        await clock.advance(1001)
        assert await produced(client, "new", bytes(40_000), now_ms) == "NONE"


@pytest.mark.parametrize(
    ("version", "expected"), [(3, "NOT_LEADER_OR_FOLLOWER"), (4, "KAFKA_STORAGE_ERROR")]
)
def test_old_clients_get_known_error_code(version: int, expected: str) -> None:
    """Produce has KAFKA_STORAGE_ERROR since v4; up to v3, Kafka returns NOT_LEADER_OR_FOLLOWER."""
    where = context(settings=BrokerSettings(max_stored_bytes=1))
    answer = decided(where, produce_request(), version)
    assert isinstance(answer, ProduceResponse)
    assert error_code(answer.responses[0].partition_responses[0].error_code).name == expected


async def test_the_largest_time_of_what_is_left() -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t")
        now_ms = SYSTEM_CLOCK.now_ms()
        async with client.producer() as producer:
            for behind in (0, 500, 100):
                await producer.send("t", b"v", timestamp=now_ms - behind)
        for deleted, expected in ((0, 0), (1, 2), (2, 2), (3, -1)):
            broker.delete_records("t", 0, before=deleted)
            wanted = ListOffsetsPartition(partition_index=0, timestamp=-3)
            request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[wanted])])
            answer = await client.request(request, broker=1)
            assert answer.topics[0].partitions[0].offset == expected
