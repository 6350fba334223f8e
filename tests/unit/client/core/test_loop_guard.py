"""Tests the errors of a client that is used outside its event loop."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Coroutine
from typing import Any

import pytest

import kproto
from kproto.broker import Broker
from tests.support.embedded import threaded_broker

ANOTHER = "in which it was first used, and that "


async def refusals(client: kproto.Client, producer: Any, consumer: Any) -> list[str]:
    """Returns the error message of each call, or "nothing" if the call raises no error.

    Each call has a time limit of one second.
    """
    calls: list[Coroutine[Any, Any, Any]] = [
        client.refresh(),
        client.request(kproto.messages.MetadataRequest()),
        client.topic("other"),
        client.create_topics("new"),
        producer.send("t", b"v"),
        producer.send_many("t", [b"v"]),
        producer.enqueue("t", b"v"),
        producer.flush(),
        producer.close(),
        anext(aiter(consumer)),
        consumer.close(),
    ]
    messages = []
    for call in calls:
        try:
            await asyncio.wait_for(call, 1)
            messages.append("nothing")
        except kproto.ConfigurationError as error:
            messages.append(str(error))
    return messages


async def used(client: kproto.Client) -> tuple[kproto.Producer, kproto.Consumer]:
    producer, consumer = client.producer(), client.consumer("t")
    await producer.send("t", b"v")
    assert (await anext(aiter(consumer))).value == b"v"
    return producer, consumer


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the client was not closed in its loop
def test_client_is_refused_in_a_later_loop() -> None:
    with threaded_broker() as broker:
        broker.call(lambda it: it.create_topic("t"))
        client = kproto.Client(broker.bootstrap)
        producer, consumer = asyncio.run(used(client))
        messages = asyncio.run(refusals(client, producer, consumer))
        asyncio.run(client.close())
        assert broker.call(lambda it: it.end_offset("t", 0)) == 1
        del client, producer, consumer
        gc.collect()
    assert all(ANOTHER + "was closed since" in each for each in messages), messages


async def test_client_is_refused_in_a_concurrent_loop() -> None:
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("t")
        producer, consumer = await used(client)
        messages: list[str] = []

        def elsewhere() -> None:
            messages.extend(asyncio.run(refusals(client, producer, consumer)))
            with pytest.raises(kproto.ConfigurationError):
                asyncio.run(client.close())

        thread = threading.Thread(target=elsewhere)
        thread.start()
        await asyncio.to_thread(thread.join)
        assert all(ANOTHER + "is another one" in each for each in messages), messages
        await producer.send("t", b"w")  # in its own loop the client still works
        assert broker.end_offset("t", 0) == 2
        await producer.close()
        await consumer.close()


@pytest.mark.parametrize("kind", ["client", "producer", "consumer"])
async def test_unreferenced_client_warns_and_closes_its_connections(kind: str) -> None:
    settings = kproto.ClientSettings(api_timeout_ms=50)
    async with Broker() as broker:
        broker.create_topic("t")
        async with kproto.Client(broker.bootstrap) as client, client.producer() as producer:
            await producer.send("t", b"v")

        async def use() -> dict[str, Any]:
            client = kproto.Client(broker.bootstrap, settings)
            await client.refresh()
            if kind == "producer":
                async with client.producer() as producer:
                    await producer.send("t", b"v")
            if kind == "consumer":
                async with client.consumer("t") as consumer:
                    await anext(aiter(consumer))
            return client.metrics()["brokers"]  # type: ignore[no-any-return]

        gc.disable()  # the test itself starts the garbage collection
        try:
            assert (await use())[broker.bootstrap]["open"] == 1
            await asyncio.sleep(0.1)  # the producer's timer holds a reference until then
            not_closed = f"a client of {broker.bootstrap} was not closed"
            with pytest.warns(ResourceWarning, match=not_closed):
                gc.collect()
        finally:
            gc.enable()
        for _ in range(200):
            await asyncio.sleep(0.01)
            if not broker.connections:
                break
        assert broker.connections == 0
