"""Tests that a fault of one partition is reported and does not affect other partitions.

Also tests recreated topics, invalid arguments and a close during an iteration.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kproto import (
    BrokerResponseError,
    Client,
    ConfigurationError,
    CorruptBatchError,
    Record,
)
from kproto.messages import ApiVersionsRequest, FetchRequest, MetadataRequest
from kproto.wire.uuid import Uuid
from tests.unit.client.consumer.reading import read
from tests.unit.client.scripted_broker import ScriptedBroker, api_versions, quick
from tests.unit.client.scripted_log import ScriptedLog, batch

QUICK = quick(metadata_wait_ms=100, delivery_timeout_ms=500)


@asynccontextmanager
async def cluster(**topics: int) -> AsyncIterator[tuple[ScriptedLog, Client]]:
    async with ScriptedBroker(topics) as broker, Client(broker.bootstrap, QUICK) as client:
        yield ScriptedLog(broker), client


async def drain(
    records: AsyncIterator[Record], value: bytes | None = None, into: list[Any] | None = None
) -> None:
    """Reads until the iterator ends or raises; adds the values to `into`, if given.

    If `value` is given, each record must have this value.
    """
    async for record in records:
        assert value is None or record.value == value
        if into is not None:
            into.append(record.value)


def damaged(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1])


@pytest.mark.parametrize("broken_at", [0, 2])
async def test_corrupt_partition_does_not_starve_others(broken_at: int) -> None:
    async with cluster(t=3) as (log, client):
        for at in range(4):
            content = batch(at, [b"0-%d" % at])
            log.append(damaged(content) if at == broken_at else content)
            for partition in (1, 2):
                log.append(batch(at, [b"%d-%d" % (partition, at)]), partition=partition)
        consumer = client.consumer("t")
        seen: list[bytes | None] = []
        texts: list[str] = []
        for _ in range(10):
            with pytest.raises(CorruptBatchError) as error:
                await drain(aiter(consumer), into=seen)
            texts.append(str(error.value))
        assert all(text.startswith(f"t[0] at offset {broken_at}: ") for text in texts)
        expected = [b"0-%d" % at for at in range(broken_at)]
        expected += [b"%d-%d" % (partition, at) for partition in (1, 2) for at in range(4)]
        assert sorted(value or b"" for value in seen) == expected
        await consumer.close()


async def test_denied_partition_does_not_starve_others() -> None:
    async with cluster(t=2) as (log, client):
        log.append(batch(0, [b"denied"]))
        log.append(batch(0, [b"a"]), partition=1)

        async def deny(request: Any) -> Any:
            response = await log.fetch(request)
            for topic in response.responses:
                for part in topic.partitions:
                    if part.partition_index == 0:
                        part.error_code, part.records = 29, None
            return response

        log.broker.answers[FetchRequest] = deny
        consumer = client.consumer("t")
        seen: list[bytes | None] = []
        for at in range(3):
            with pytest.raises(BrokerResponseError, match="TOPIC_AUTHORIZATION_FAILED"):
                await drain(aiter(consumer), into=seen)
            log.append(batch(at + 1, [b"b"]), partition=1)
        assert seen == [b"a", b"b", b"b"]
        await consumer.close()


async def test_decreasing_offsets_raise() -> None:
    """A batch with a wrong base offset has a valid checksum, which covers only later fields."""
    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"a", b"b"]))
        log.append(batch(2, [b"c", b"d"]))
        log.batches["t", 0] = [
            log.batches["t", 0][0] + (1).to_bytes(8, "big") + log.batches["t", 0][1][8:]
        ]
        log.following["t", 0] = [4]
        with pytest.raises(CorruptBatchError, match="offsets do not rise"):
            await read(client)


class RecreatedTopic:
    """A broker whose topic has an id and can be recreated."""

    def __init__(self, log: ScriptedLog) -> None:
        self.log = log
        self.number = 1
        log.broker.answers[ApiVersionsRequest] = self.by_name
        log.broker.answers[MetadataRequest] = self.metadata

    def by_name(self, request: Any) -> Any:
        found = api_versions()
        for key in found.api_keys.find_all(api_key=FetchRequest.API_KEY):
            key.max_version = 12  # Fetch v13 has topic ids; the scripted log has none
        return found

    def metadata(self, request: Any) -> Any:
        response = self.log.broker.metadata(request)
        for topic in response.topics:
            topic.topic_id = Uuid(bytes(15) + bytes([self.number]))
        return response

    async def now(self, client: Client) -> None:
        """Recreates the topic with five records, and refreshes the client's metadata."""
        self.number += 1
        self.log.batches["t", 0] = [batch(0, [b"new"] * 5)]
        self.log.following["t", 0] = [5]
        await client.refresh(["t"])


async def test_manually_assigned_recreated_topic_is_read_from_its_start() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        made = RecreatedTopic(log)
        log.append(batch(0, [b"old"] * 3))
        async with client.consumer([("t", 0)]) as consumer:
            records = aiter(consumer)
            assert [(await anext(records)).value for _ in range(3)] == [b"old"] * 3
            await made.now(client)
            found = [(await anext(records)) for _ in range(5)]
            assert [(record.offset, record.value) for record in found] == [
                (at, b"new") for at in range(5)
            ]


@pytest.mark.parametrize("what", ["t", [("t", 0)]], ids=["topic", "by hand"])
async def test_stop_at_end_raises_for_a_recreated_topic(what: Any) -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        made = RecreatedTopic(log)
        for at in range(3):
            log.append(batch(at, [b"old"]))
        async with client.consumer(what, stop_at_end=True, max_partition_fetch_bytes=1) as consumer:
            records = aiter(consumer)
            await anext(records)
            await made.now(client)
            for _ in range(2):  # the next poll raises it again
                with pytest.raises(BrokerResponseError, match="was deleted and recreated"):
                    await drain(aiter(consumer), b"old")


@pytest.mark.parametrize("kind", ["records", "record_lists", "values", "raw_batches"])
async def test_close_inside_the_loop_ends_it(kind: str) -> None:
    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"%d" % at for at in range(20)]))
        log.append(batch(20, [b"more"]))
        consumer = client.consumer("t", max_partition_fetch_bytes=1)
        iteration: Any = consumer if kind == "records" else getattr(consumer, kind)()
        count = 0
        async for _ in iteration:
            count += 1
            await consumer.close()
        assert count == 1
        assert consumer.positions == {("t", 0): 1 if kind == "records" else 20}
        with pytest.raises(ConfigurationError, match="closed"):
            await anext(aiter(consumer))


@pytest.mark.parametrize("offset", [None, "5", 5.0, True, -1, 1 << 63])
async def test_invalid_start_offset_is_refused(offset: Any) -> None:
    async with cluster(t=1) as (_, client):
        with pytest.raises(ConfigurationError, match="start"):
            client.consumer("t", start={("t", 0): offset})


@pytest.mark.parametrize(
    "wrong", [{"max_partition_fetch_bytes": 1 << 31}, {"max_wait_ms": 1 << 31}]
)
async def test_bounds_beyond_int32_are_refused(wrong: dict[str, Any]) -> None:
    async with cluster(t=1) as (_, client):
        with pytest.raises(ConfigurationError, match=next(iter(wrong))):
            client.consumer("t", **wrong)


async def test_failed_read_leaves_no_task() -> None:
    before = asyncio.all_tasks()
    async with cluster(t=1) as (log, client):
        log.append(damaged(batch(0, [b"a"])))
        with pytest.raises(CorruptBatchError):
            await read(client)
    assert asyncio.all_tasks() == before
