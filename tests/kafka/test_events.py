"""Tests CloudEvents on every broker: the client reads the events that it sent.

Also compares the keys, values and headers of the records.
"""

from __future__ import annotations

from contextlib import aclosing

import pytest
from kproto_cloudevents import (
    CloudEvent,
    CloudEventError,
    InvalidEvent,
    KafkaRecord,
    NotAnEvent,
    OpaqueEvent,
    Received,
    events,
    partition_key,
    to_kafka,
)
from kproto_cloudevents.avro_format import AVRO_FORMAT

import kproto

EVENT = CloudEvent(
    id="1",
    source="/shop",
    type="order.placed",
    time="2018-04-05T03:56:24.10Z",
    partitionkey="customer-7",
    n=5,
    data={"total": 12},
)


async def read(client: kproto.Client, topic: str) -> list[Received[kproto.Record]]:
    stream = events(client.consumer(topic, start="earliest", stop_at_end=True))
    return [received async for received in stream]


@pytest.mark.parametrize("mode", ["binary", "structured", None])
async def test_event_is_read_as_it_was_sent(
    client: kproto.Client, topic: str, mode: str | None
) -> None:
    async with client.producer() as producer:
        ack = await producer.send_event(
            topic,
            EVENT,
            mode=mode,  # type: ignore[arg-type]  # a parameter's str is no Literal
            key_mapper=partition_key,
            timestamp=1_600_000_000_000,
        )
    (received,) = await read(client, topic)
    event, record = received
    assert isinstance(event, CloudEvent)
    # Structured mode omits the content type of JSON; binary mode always writes it.
    implied = None if mode == "structured" else "application/json"
    assert event == EVENT.replace(datacontenttype=implied)
    assert record.key == b"customer-7"
    assert (record.topic, record.partition, record.offset) == ack[:3]
    assert record.timestamp == 1_600_000_000_000
    assert to_kafka(event) == (record.key, record.value, tuple(record.headers))


async def test_every_outcome_is_forwarded_unchanged(client: kproto.Client, topic: str) -> None:
    foreign = (("a", b"1"), ("a", None), ("", b""))
    sent = [
        to_kafka(EVENT, key=b"k", headers=foreign),
        to_kafka(EVENT, "structured", headers=foreign, repeat_attributes=True),
        to_kafka(EVENT, "structured", event_format=AVRO_FORMAT),
        KafkaRecord(None, b"", (("ce_specversion", b"9.9"), *foreign)),
        KafkaRecord(b"k", None, foreign),
        KafkaRecord(b"k", None, ()),
    ]
    kinds = [CloudEvent, CloudEvent, OpaqueEvent, OpaqueEvent, NotAnEvent, NotAnEvent]
    async with client.producer() as producer:
        for key, value, headers in sent:
            await producer.send(topic, value, key=key, headers=headers, partition=0)
        first = await read(client, topic)
        assert [type(received.outcome) for received in first] == kinds
        for received in first:
            assert not isinstance(received.outcome, InvalidEvent)
            await producer.send_event(topic, received.outcome, partition=0)
    second = (await read(client, topic))[len(sent) :]
    for record, received in zip(sent, second, strict=True):
        stored = received.record
        assert (stored.key, stored.value, tuple(stored.headers)) == record


async def test_invalid_event_does_not_end_the_stream(client: kproto.Client, topic: str) -> None:
    async with client.producer() as producer:
        await producer.send(topic, b"x", headers=[("ce_specversion", b"1.0")], partition=0)
        await producer.send_event(topic, EVENT, partition=0)
    broken, good = await read(client, topic)
    assert isinstance(broken.outcome, InvalidEvent)
    assert broken.outcome.error.where == "ce_id"
    assert broken.record.value == b"x"
    assert good.outcome == EVENT.replace(datacontenttype="application/json")


async def test_without_headers_only_structured_json_is_written(
    client: kproto.Client, topic: str
) -> None:
    """Topics with message format 0 or 1 have no headers, so binary mode raises an error."""
    async with client.producer() as producer:
        with pytest.raises(CloudEventError, match="message format 1 has no headers"):
            await producer.send_event(topic, EVENT, mode="binary", message_format=1)
        await producer.send_event(topic, EVENT, mode="structured", message_format=1)
    (unseen,) = await read(client, topic)
    assert isinstance(unseen.outcome, NotAnEvent)
    assert unseen.record.headers == []
    consumer = client.consumer(topic, start="earliest", stop_at_end=True)
    (received,) = [each async for each in events(consumer, mode="structured")]
    assert received.outcome == EVENT


async def test_reader_can_stop_at_any_time(client: kproto.Client, topic: str) -> None:
    async with client.producer() as producer:
        await producer.send_event(topic, EVENT)
        await producer.send_event(topic, EVENT)
    async with (
        client.consumer(topic, start="earliest") as consumer,
        aclosing(events(consumer)) as stream,
    ):
        async for received in stream:
            assert received.outcome == EVENT.replace(datacontenttype="application/json")
            break
