"""Tests calls for topics that do not exist: how long they wait, and when brokers create topics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from kproto import Client, ClientSettings, ConfigurationError, DeliveryError
from kproto.broker import Broker
from kproto.messages import MetadataRequest
from kproto.testing.clock import ManualClock
from kproto.wire.errors import BrokerResponseError
from tests.unit.client.scripted_broker import ScriptedBroker

UNKNOWN = (BrokerResponseError, DeliveryError)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def broker(clock: ManualClock) -> AsyncIterator[Broker]:
    async with Broker(clock=clock) as broker:
        yield broker


async def send(client: Client, **options: Any) -> None:
    async with client.producer(**options) as producer:
        await producer.send("t", b"v")


async def consume(client: Client, **options: Any) -> None:
    async with client.consumer("t", **options) as consumer:
        assert consumer.positions == {("t", 0): 0}


Call = Callable[..., Coroutine[Any, Any, Any]]
CALLS = pytest.mark.parametrize("call", [send, consume], ids=["producer", "consumer"])


async def run_on(clock: ManualClock, work: Coroutine[Any, Any, Any]) -> None:
    """Runs `work`, and advances the clock while `work` waits. Raises the error of `work`."""
    task = asyncio.create_task(work)
    while not task.done():
        await asyncio.sleep(0.001)
        if clock.next_timer_ms is not None:
            await clock.advance(10)
    await task


@CALLS
async def test_unknown_topic_fails_after_the_short_wait(
    broker: Broker, clock: ManualClock, call: Call
) -> None:
    async with Client(broker.bootstrap, clock=clock) as client:
        match = (
            r"it was requested for 1000 ms \(unknown_topic_wait_ms\); .*allow_auto_create_topics"
        )
        with pytest.raises(UNKNOWN, match=match):
            await run_on(clock, call(client))
    assert "t" not in broker.topics


@CALLS
async def test_topic_that_appears_within_the_short_wait_is_used(
    broker: Broker, clock: ManualClock, call: Call
) -> None:
    async with Client(broker.bootstrap, clock=clock) as client:
        clock.call_later(0.5, lambda: broker.create_topic("t", partitions=1))
        await run_on(clock, call(client))


@CALLS
async def test_topic_that_existed_is_awaited_for_the_long_wait(
    broker: Broker, clock: ManualClock, call: Call
) -> None:
    async with Client(broker.bootstrap, clock=clock) as client:
        broker.create_topic("t", partitions=1)
        await client.topic("t")
        broker.delete_topic("t")
        await client.refresh(["t"])
        with pytest.raises(UNKNOWN, match=r"for 5000 ms \(metadata_wait_ms\)"):
            await run_on(clock, call(client))


async def test_created_topic_is_awaited_for_the_long_wait_until_it_is_deleted(
    broker: Broker, clock: ManualClock
) -> None:
    async with Client(broker.bootstrap, clock=clock) as client:
        await client.create_topics("t")
        broker.delete_topic("t")
        with pytest.raises(UNKNOWN, match="metadata_wait_ms"):
            await run_on(clock, send(client))
        await client.create_topics("t")
        await client.delete_topics("t")
        with pytest.raises(UNKNOWN, match="unknown_topic_wait_ms"):
            await run_on(clock, send(client))


@CALLS
async def test_broker_creates_the_topic_if_both_sides_allow_it(call: Call) -> None:
    async with (
        Broker(auto_create_topics=True) as broker,
        Client(broker.bootstrap) as client,
    ):
        await call(client, allow_auto_create_topics=True)
        assert "t" in broker.topics


@CALLS
async def test_broker_creates_no_topic_if_the_client_does_not_allow_it(call: Call) -> None:
    settings = ClientSettings(unknown_topic_wait_ms=10)
    async with (
        Broker(auto_create_topics=True) as broker,
        Client(broker.bootstrap, settings) as client,
    ):
        with pytest.raises(UNKNOWN):
            await call(client)
        assert "t" not in broker.topics


@CALLS
async def test_error_names_the_setting_of_a_broker_that_creates_no_topic(
    broker: Broker, clock: ManualClock, call: Call
) -> None:
    async with Client(broker.bootstrap, clock=clock) as client:
        with pytest.raises(UNKNOWN, match=r"auto\.create\.topics\.enable"):
            await run_on(clock, call(client, allow_auto_create_topics=True))


async def test_group_consumer_lets_the_broker_create_its_topic() -> None:
    async with (
        Broker(auto_create_topics=True) as broker,
        Client(broker.bootstrap) as client,
        client.consumer("t", group="g", allow_auto_create_topics=True) as consumer,
        client.producer() as producer,
    ):
        async with asyncio.timeout(60):
            while "t" not in broker.topics:  # noqa: ASYNC110 - no event of this loop
                await asyncio.sleep(0.001)
        await producer.send("t", b"v")
        assert (await anext(aiter(consumer))).value == b"v"


async def test_property_allows_consumers_to_create_topics() -> None:
    async with Broker(auto_create_topics=True) as broker:
        properties = {"bootstrap.servers": broker.bootstrap, "allow.auto.create.topics": "true"}
        async with Client.from_properties(properties) as client:
            await consume(client)


async def test_request_creates_only_the_topics_that_are_allowed() -> None:
    async with ScriptedBroker({"t": 1, "u": 1}) as broker, Client(broker.bootstrap) as client:
        client._view.topic_creation.allow(["u"])
        await client.refresh(["t", "u"])
        flags = {
            tuple(topic.name for topic in each.message.topics or ()): (
                each.message.allow_auto_topic_creation
            )
            for each in broker.asked
            if isinstance(each.message, MetadataRequest)
        }
        assert flags == {(): False, ("t",): False, ("u",): True}


@pytest.mark.parametrize("wrong", ["true", 1, None.__class__])
def test_value_that_is_no_bool_is_refused(wrong: Any) -> None:
    client = Client("localhost:1")
    match = "allow_auto_create_topics is .* it is True or False"
    with pytest.raises(ConfigurationError, match=match):
        client.producer(allow_auto_create_topics=wrong)
    with pytest.raises(ConfigurationError, match=match):
        client.consumer("t", allow_auto_create_topics=wrong)
