"""Tests consumers of a group on real brokers: after a rebalance no record is read twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import kproto
from tests.support.brokers import versions
from tests.support.transactions import Transaction

pytestmark = pytest.mark.parametrize("broker_version", versions())

STRATEGIES = pytest.mark.parametrize("assignors", [["range"], ["cooperative-sticky"]], ids="".join)

RECORDS = 300


async def fill(client: kproto.Client, topic: str) -> None:
    async with client.producer() as producer:
        values = [kproto.ProducerRecord(b"%d" % at, partition=at % 3) for at in range(RECORDS)]
        await producer.send_many(topic, values)


class Readers:
    """The records that the members of a group have read, in order."""

    def __init__(self, client: kproto.Client, topic: str, **options: Any) -> None:
        self.client = client
        self.topic = topic
        self.options = options
        self.seen: list[tuple[int, int]] = []
        self.all_seen = asyncio.Event()

    @asynccontextmanager
    async def member(self, until: int = RECORDS) -> AsyncIterator[None]:
        """Runs a member that leaves when all members together have read `until` records."""

        async def read() -> None:
            async with self.client.consumer(
                self.topic, group=self.topic, heartbeat_interval_ms=100, **self.options
            ) as consumer:
                async for record in consumer:
                    self.seen.append((record.partition, record.offset))
                    await asyncio.sleep(0.002)
                    if len(self.seen) >= RECORDS:
                        self.all_seen.set()
                    if len(self.seen) >= until:
                        break

        task = asyncio.create_task(read())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])
        if not task.cancelled():
            task.result()


@STRATEGIES
async def test_each_record_is_read_once_across_rebalances(
    client: kproto.Client, topic: str, assignors: list[str]
) -> None:
    await fill(client, topic)
    readers = Readers(client, topic, assignors=assignors)
    async with readers.member(until=RECORDS), readers.member(until=100), readers.member(until=200):
        await readers.all_seen.wait()
    for partition in range(3):
        offsets = [offset for its, offset in readers.seen if its == partition]
        assert offsets == list(range(RECORDS // 3))


@STRATEGIES
async def test_partition_is_not_revoked_while_its_record_is_in_flight(
    client: kproto.Client, topic: str, assignors: list[str]
) -> None:
    await fill(client, topic)
    options: dict[str, Any] = {
        "group": topic,
        "assignors": assignors,
        "heartbeat_interval_ms": 100,
    }
    revoked: list[tuple[str, int]] = []
    async with client.consumer(topic, on_revoked=revoked.extend, **options) as first:
        records = aiter(first)
        record = await anext(records)
        async with client.consumer(topic, **options) as second:
            others = asyncio.create_task(anext(aiter(second)))
            while len(first.assignment) == 3:  # noqa: ASYNC110 - a task of the consumer changes it
                await asyncio.sleep(0.01)
            in_flight = (record.topic, record.partition)
            assert in_flight not in revoked
            assert in_flight not in second.assignment
            reading = asyncio.create_task(anext(records))  # this poll acknowledges `record`
            theirs = await others
            assert (
                theirs.topic,
                theirs.partition,
            ) != in_flight or theirs.offset == record.offset + 1
            assert second.assignment.isdisjoint(first.assignment)
            reading.cancel()
            await asyncio.wait([reading])


async def test_failed_member_resumes_at_its_committed_offset(
    client: kproto.Client, topic: str
) -> None:
    await fill(client, topic)
    seen: list[tuple[int, int]] = []
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            await fail_at_the_tenth(client, topic, seen)
    # Each time, only the record in flight is redelivered.
    assert len(seen) == 30
    assert len(set(seen)) == 28


async def fail_at_the_tenth(client: kproto.Client, topic: str, seen: list[tuple[int, int]]) -> None:
    async with client.consumer(topic, group=topic) as consumer:
        count = 0
        async for record in consumer:
            seen.append((record.partition, record.offset))
            count += 1
            if count == 10:
                raise ZeroDivisionError


async def test_position_waits_for_pending_transactional_offsets(
    client: kproto.Client, topic: str
) -> None:
    """The test itself sends a transactional producer's requests, so that offsets stay pending.

    KIP-447: the coordinator lets OffsetFetch wait for offsets of an open transaction.
    """
    await fill(client, topic)

    transaction = Transaction(client, topic)
    await transaction.begin()
    await transaction.commit_offset(topic, topic, 0, 70)
    async with client.consumer([(topic, 0)], group=topic, auto_commit=False) as consumer:
        fetching = asyncio.create_task(consumer.position((topic, 0)))
        await asyncio.wait([fetching], timeout=0.5)
        assert not fetching.done()
        await transaction.end(committed=True)
        assert await fetching == 70
