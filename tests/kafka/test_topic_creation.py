"""Tests that a missing topic is created only if the settings of producer or consumer allow it."""

from __future__ import annotations

import asyncio

import pytest

import kproto
from tests.support.brokers import StartKafka

pytestmark = pytest.mark.kafka


async def create_by_use(bootstrap: str) -> None:
    settings = kproto.ClientSettings(metadata_wait_ms=30_000)
    async with kproto.Client(bootstrap, settings) as client:
        async with client.producer() as producer:
            with pytest.raises(kproto.DeliveryError, match="unknown_topic_wait_ms"):
                await producer.send("orders", b"v")
        with pytest.raises(kproto.BrokerResponseError, match="unknown_topic_wait_ms"):
            await anext(aiter(client.consumer("orders")))
        async with client.producer(allow_auto_create_topics=True) as producer:
            assert (await producer.send("orders", b"v")).offset == 0
        read = client.consumer("events", stop_at_end=True, allow_auto_create_topics=True)
        assert [record async for record in read] == []
        async with client.consumer("jobs", group="g", allow_auto_create_topics=True) as member:
            waiting = asyncio.create_task(anext(aiter(member)))
            async with client.producer() as producer:
                async with asyncio.timeout(60):
                    while "jobs" not in client.cluster.topics:  # noqa: ASYNC110 - no event for it
                        await asyncio.sleep(0.05)
                await producer.send("jobs", b"job")
            assert (await waiting).value == b"job"


@pytest.mark.slow
@pytest.mark.exhaustive
def test_topics_are_created_only_if_the_client_allows_it(start_kafka: StartKafka) -> None:
    node = start_kafka("4.4.0", {"auto.create.topics.enable": "true"})
    asyncio.run(create_by_use(node.bootstrap))
