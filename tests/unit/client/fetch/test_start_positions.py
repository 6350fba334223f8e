"""Where a reader begins, also where the metadata that it begins with is old."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from kproto import Client, ConfigurationError, ProducerRecord
from kproto.broker import Broker
from kproto.messages import MetadataRequest
from tests.unit.client.scripted_broker import ScriptedBroker, quick
from tests.unit.client.scripted_log import ScriptedLog, batch

QUICK = quick(metadata_wait_ms=500, delivery_timeout_ms=2000)


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker() as broker:
        broker.create_topic("other", partitions=1)
        yield broker


async def write(broker: Broker, topic: str, *values: bytes) -> None:
    async with Client(broker.bootstrap, QUICK) as client, client.producer() as producer:
        await producer.send_many(topic, [ProducerRecord(value, partition=0) for value in values])


async def behind(client: Client, broker: Broker, *, before: int, after: int) -> None:
    """A client that knows topic `t` as it was before it was made anew."""
    broker.create_topic("t", partitions=before)
    await client.topic("t")
    broker.delete_topic("t")
    broker.create_topic("t", partitions=after)


PARTITIONS = [("t", 0)]
WHAT = pytest.mark.parametrize("what", ["t", PARTITIONS], ids=["topic", "by hand"])


@WHAT
@pytest.mark.parametrize("after", [1, 3])
async def test_a_reader_that_knows_the_old_topic_ends_with_the_new_one(
    broker: Broker, what: Any, after: int
) -> None:
    """Nothing of the old one was read, so there is nothing to be told."""
    async with Client(broker.bootstrap, QUICK) as client:
        await behind(client, broker, before=2, after=after)
        await write(broker, "t", b"new", b"newer")
        async with client.consumer(what, stop_at_end=True) as consumer:
            assert [record.value async for record in consumer] == [b"new", b"newer"]
            assert consumer.positions["t", 0] == 2
            assert len(consumer.positions) == (after if what == "t" else 1)


async def test_the_end_is_that_of_the_new_topic(broker: Broker) -> None:
    """The old one's was behind it: who waited for that would never end."""
    broker.create_topic("t", partitions=1)
    await write(broker, "t", *[b"old"] * 5)
    async with (
        Client(broker.bootstrap, QUICK) as client,
        client.consumer(["t", "other"], stop_at_end=True) as consumer,
    ):
        assert consumer.positions == {("t", 0): 0, ("other", 0): 0}
        broker.delete_topic("t")
        broker.create_topic("t", partitions=1)
        await write(broker, "t", b"new")
        await write(broker, "other", b"behind the end")
        assert [record.value async for record in consumer] == [b"new"]


async def test_a_topic_made_anew_before_the_first_record_is_asked_for(broker: Broker) -> None:
    """Metadata shows it in the meantime: the end that was found out is the old one's."""
    broker.create_topic("t", partitions=1)
    await write(broker, "t", *[b"old"] * 5)
    async with (
        Client(broker.bootstrap, QUICK) as client,
        client.consumer("t", stop_at_end=True) as consumer,
    ):
        broker.delete_topic("t")
        broker.create_topic("t", partitions=1)
        await write(broker, "t", b"new")
        await client.refresh(["t"])
        assert [record.value async for record in consumer] == [b"new"]


async def test_a_start_by_hand_holds_for_the_new_topic_too(broker: Broker) -> None:
    async with Client(broker.bootstrap, QUICK) as client:
        await behind(client, broker, before=1, after=1)
        await write(broker, "t", b"0", b"1", b"2")
        async with client.consumer("t", start={("t", 0): 1}) as consumer:
            records = aiter(consumer)
            assert [(await anext(records)).value for _ in range(2)] == [b"1", b"2"]


async def test_the_latest_of_the_new_topic_is_its_end(broker: Broker) -> None:
    async with Client(broker.bootstrap, QUICK) as client:
        await behind(client, broker, before=1, after=1)
        await write(broker, "t", b"0", b"1")
        async with client.consumer("t", start="latest") as consumer:
            await write(broker, "t", b"2")
            assert (await anext(aiter(consumer))).value == b"2"


async def test_what_cannot_be_begun_again_is_told_each_time(broker: Broker) -> None:
    broker.create_topic("t", partitions=1)
    await write(broker, "t", b"old")
    async with (
        Client(broker.bootstrap, QUICK) as client,
        client.consumer("t", start={("t", 0): 0}, stop_at_end=True) as consumer,
    ):
        broker.delete_topic("t")
        broker.create_topic("t", partitions=2)
        for _ in range(2):
            with pytest.raises(ConfigurationError, match="gives no offset for"):
                await anext(aiter(consumer))
        broker.delete_topic("t")
        broker.create_topic("t", partitions=1)
        await write(broker, "t", b"at last")
        await client.refresh(["t"])
        assert [record.value async for record in consumer] == [b"at last"]


async def test_who_reads_up_to_the_end_reads_partitions_that_the_client_has_not_heard_of() -> None:
    async with ScriptedBroker({"t": 1}) as scripted, Client(scripted.bootstrap, QUICK) as client:
        log = ScriptedLog(scripted)
        await client.topic("t")
        scripted.topics["t"] = 2
        log.append(batch(0, [b"in the new one"]), partition=1)
        consumer = client.consumer("t", stop_at_end=True)
        assert [record.value async for record in consumer] == [b"in the new one"]
        assert scripted.count(MetadataRequest) == 3  # the client's first, of the topic, and anew


async def test_metadata_that_came_since_is_new_enough() -> None:
    async with ScriptedBroker({"t": 1}) as scripted, Client(scripted.bootstrap, QUICK) as client:
        ScriptedLog(scripted)
        assert [record async for record in client.consumer("t", stop_at_end=True)] == []
        assert scripted.count(MetadataRequest) == 2
