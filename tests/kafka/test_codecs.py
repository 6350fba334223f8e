"""Tests codecs on real brokers: transactions, headers, dead letters, tombstones, events."""

from __future__ import annotations

from typing import Any

import pytest
from kproto_cloudevents import CloudEvent, CloudEvents

import kproto
from kproto.codecs import JsonCodec, SchemaIdCodec, StringCodec
from tests.support.brokers import versions

pytestmark = pytest.mark.parametrize("broker_version", versions())

COUNT = 200
ORDER: SchemaIdCodec[Any] = SchemaIdCodec(JsonCodec(), 7, in_header=True)


async def test_records_of_a_transaction_are_handled_and_others_are_dead_letters(
    bootstrap: str, topic: str
) -> None:
    dead = f"{topic}.dead"
    handled: list[Any] = []

    async def handle(record: kproto.Record[str, Any]) -> None:
        assert record.value is not None
        number = record.value["n"]
        assert record.key == f"k{number % 5}"
        handled.append(number)
        if number == COUNT:
            raise kproto.Stop(done=True)

    async with kproto.Client(bootstrap) as client:
        await client.create_topics(kproto.NewTopic(dead, 1))
        records = [
            kproto.ProducerRecord({"n": at}, f"k{at % 5}", partition=0) for at in range(COUNT)
        ]
        async with (
            client.producer(key=StringCodec(), value=ORDER, transactional_id=topic) as producer,
            producer.transaction(),
        ):
            await producer.send_many(topic, records)
        async with client.producer() as plain:
            await plain.send(topic, b"no id", key=b"k0", partition=0)
        async with client.producer(key=StringCodec(), value=ORDER) as orders:
            await orders.send(topic, {"n": COUNT}, key="k0", partition=0)

        async with client.consumer(
            topic, group=topic, read_committed=True, key=StringCodec(), value=ORDER
        ) as consumer:
            summary = await consumer.run(handle, dead_letter_topic=dead)
        assert handled == list(range(COUNT + 1))
        assert (summary.handled, summary.dead_letters) == (COUNT + 1, 1)
        (letter,) = [record async for record in client.consumer(dead, stop_at_end=True)]
        assert (letter.key, letter.value) == (b"k0", b"no id")


@pytest.mark.parametrize("mode", ["binary", "structured"])
async def test_events_and_tombstones_are_read_back(bootstrap: str, topic: str, mode: Any) -> None:
    async with kproto.Client(bootstrap) as client:
        async with client.producer(key=StringCodec(), value=CloudEvents(mode)) as producer:
            event = CloudEvent(id="1", source="/shop", type="placed", data=b"12")
            await producer.send(topic, event, key="a", partition=0)
            await producer.send(topic, None, key="a", partition=0)
        events = client.consumer(topic, key=StringCodec(), value=CloudEvents(), stop_at_end=True)
        first, second = [record async for record in events]
    assert first.value == event
    assert (second.key, second.value) == ("a", None)
