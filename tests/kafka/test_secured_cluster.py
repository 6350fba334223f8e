"""Tests a secured cluster of three nodes: the client stays authenticated after a leader dies."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress

import pytest

import kproto
from tests.support.availability import not_available
from tests.support.brokers import CANNOT_START
from tests.support.leaders import leader_of
from tests.support.secured import sasl_of
from tools.kafka import VERSIONS
from tools.kafka.secured import SecuredKafka

QUICK = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "500"}
SETTINGS = kproto.ClientSettings(retry_backoff_ms=20, retry_backoff_max_ms=200)
RECORDS = 300
PARTITIONS = 3

pytestmark = pytest.mark.exhaustive


@pytest.fixture(params=VERSIONS)
def secured_cluster(request: pytest.FixtureRequest) -> Iterator[SecuredKafka]:
    try:
        with SecuredKafka(request.param, nodes=3, racks=("a", "b", "c"), config=QUICK) as kafka:
            yield kafka
    except CANNOT_START as error:
        not_available(f"a secured cluster of Kafka {request.param}", error)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512"])
async def test_each_record_is_stored_once_while_a_leader_dies(
    secured_cluster: SecuredKafka, mechanism: str
) -> None:
    kafka = secured_cluster
    assert len(kafka.bootstrap["SASL_SSL"].split(",")) == 3
    async with kproto.Client(
        kafka.bootstrap["SASL_SSL"],
        SETTINGS,
        tls=kproto.Tls(ca=kafka.authority.pem),
        sasl=sasl_of(kafka, mechanism, "admin"),
        rack="b",
    ) as client:
        assert client.cluster.racks == {1: "a", 2: "b", 3: "c"}
        await client.create_topics(kproto.NewTopic("secured", PARTITIONS, 3))
        seen: dict[int, list[bytes | None]] = {at: [] for at in range(PARTITIONS)}

        all_came = asyncio.Event()

        async def read() -> None:
            async for record in client.consumer("secured"):
                seen[record.partition].append(record.value)
                if sum(map(len, seen.values())) >= RECORDS * PARTITIONS:
                    all_came.set()

        reading = asyncio.create_task(read())
        killed = await leader_of(client, "secured", 0)
        async with client.producer() as producer:
            for at in range(RECORDS):
                value = b"%d" % at
                deliveries = [
                    await producer.enqueue("secured", value, partition=partition)
                    for partition in range(PARTITIONS)
                ]
                if at == RECORDS // 3:
                    await asyncio.to_thread(kafka.cluster.node(killed).kill)
                if at == 2 * RECORDS // 3:
                    await asyncio.to_thread(kafka.cluster.node(killed).start)
                for delivery in deliveries:
                    await delivery
        wanted = [b"%d" % at for at in range(RECORDS)]
        with suppress(TimeoutError):
            await asyncio.wait_for(all_came.wait(), 30)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
    assert seen == dict.fromkeys(range(PARTITIONS), wanted)
