"""Tests logs that are truncated (KIP-320) or recreated while `run` processes their records."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kproto import Client, NewTopic, ProducerRecord, Record, Retries, Stop
from kproto.broker import BrokerSettings, Cluster
from tests.unit.client.processing.orders import SETTINGS, TOPIC, orders

SOON = Retries(2, backoff_ms=1)


@asynccontextmanager
async def cluster() -> AsyncIterator[tuple[Cluster, Client]]:
    async with Cluster(brokers=2) as cluster, Client(cluster.bootstrap, SETTINGS) as client:
        cluster.create_topic(TOPIC)
        async with asyncio.timeout(30):
            for at in range(10):  # one batch each: logs are truncated by whole batches
                await send(client, at)
            yield cluster, client


async def send(client: Client, *values: int) -> None:
    async with client.producer() as producer:
        await producer.send_many(
            TOPIC, [ProducerRecord(b"%d" % at, b"k%d" % (at % 3)) for at in values]
        )


@pytest.mark.parametrize("order", ["partition", "key", "none"])
@pytest.mark.parametrize("left", [8, 2])
@pytest.mark.parametrize("max_offset_gap", [1, 4])
async def test_record_in_flight_is_retried_after_a_truncation(
    order: Any, left: int, max_offset_gap: int
) -> None:
    """`run` retries the record even if the truncated log has a different record at its offset."""
    async with cluster() as (its, client), client.consumer(TOPIC, group="billing") as consumer:
        handled: list[bytes | None] = []
        in_flight: set[int] = set()
        begun, may_end = asyncio.Event(), asyncio.Event()

        async def handle(record: Record) -> None:
            if order == "partition":
                assert not in_flight, "two at once"
            in_flight.add(record.offset)
            try:
                if record.offset == 3 and not may_end.is_set():
                    begun.set()
                    await may_end.wait()
                    raise ValueError
                handled.append(record.value)
            finally:
                in_flight.discard(record.offset)
            if record.value == b"99":
                raise Stop(done=True)

        running = asyncio.create_task(
            consumer.run(
                handle, order=order, workers=3, max_offset_gap=max_offset_gap, retries=SOON
            )
        )
        await begun.wait()
        its.truncate(TOPIC, 0, left)
        await send(client, *range(100 - 12, 100))
        while consumer.positions[TOPIC, 0] > left:
            await client.refresh([TOPIC])
            await asyncio.sleep(0.01)
        may_end.set()
        await running
        wanted = [b"%d" % at for at in (*range(left), *range(88, 100))]
        assert set(wanted) <= set(handled)
        if order == "partition":
            ends = [handled.index(each) for each in wanted]
            assert ends == sorted(ends)
        committed = await consumer.committed((TOPIC, 0))
        found = committed[TOPIC, 0]
        assert found is not None
        assert found.offset == left + 12


@pytest.mark.parametrize("order", ["partition", "key", "none"])
async def test_recreated_topic_without_an_id_is_read_from_its_start(order: Any) -> None:
    """Topics before Kafka 2.8 have no id: only OFFSET_OUT_OF_RANGE shows the recreation."""
    brokers = BrokerSettings(release="2.6")
    async with orders(10, broker_settings=brokers) as it, it.consumer() as consumer:
        begun, may_end = asyncio.Event(), asyncio.Event()

        async def handle(record: Record) -> None:
            if record.key is not None:  # records of the deleted topic have keys
                if record.offset == 3:
                    begun.set()
                    await may_end.wait()
            elif record.offset == 3:
                while len(it.handled) < (3 if order == "partition" else 4):  # noqa: ASYNC110
                    await asyncio.sleep(0)
                raise Stop
            else:
                it.note(record)

        running = asyncio.create_task(consumer.run(handle, order=order, workers=4))
        await begun.wait()
        await it.client.delete_topics(TOPIC)
        await it.client.create_topics(NewTopic(TOPIC, 1))
        await it.send([b"%d" % at for at in range(5)])
        assert consumer._processing.pool is not None
        while consumer.positions[TOPIC, 0] > 5 or not (  # noqa: ASYNC110 - no event tells
            consumer._processing.pool.queued_positions or consumer.positions[TOPIC, 0]
        ):
            await asyncio.sleep(0.01)
        may_end.set()
        await running
        assert await it.committed(0) == [3]
