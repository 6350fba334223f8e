"""Tests events and encoded batches for brokers before 0.11, which cannot store headers."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncIterator, Sequence

import pytest
from kproto_cloudevents import CloudEvent, CloudEventError, Profile, from_kafka, to_kafka

from kproto import Client, ProducerRecord, Record
from kproto.broker import Broker, BrokerSettings
from kproto.client.producer_record import EncodedRecords, EventRecord
from kproto.records import GrowingBatch
from kproto.wire.errors import EncodeError

OLD = ("0.9", "0.10.0", "0.10.2")
EVENT = CloudEvent(id="1", source="/shop", type="order.placed", data={"total": 12})


@pytest.fixture(params=OLD)
async def broker(request: pytest.FixtureRequest) -> AsyncIterator[Broker]:
    async with Broker(BrokerSettings(release=request.param)) as running:
        running.create_topic("t", 1)
        yield running


def client_of(broker: Broker) -> Client:
    release = broker.settings.release
    return Client(broker.bootstrap, broker_version=release if release == "0.9" else None)


async def stored(client: Client) -> list[Record]:
    return [record async for record in client.consumer("t", stop_at_end=True)]


def ids(records: Sequence[Record]) -> list[str]:
    """Returns the ids of the events, of which none may have headers."""
    found = []
    for record in records:
        assert list(record.headers) == []
        event = from_kafka(record.key, record.value, mode="structured")
        assert isinstance(event, CloudEvent)
        assert from_kafka(record.key, record.value, profile=Profile(json_events=True)) == event
        found.append(event.id)
    return found


@pytest.mark.parametrize("mode", [None, "structured"])
async def test_event_is_written_as_structured_json(broker: Broker, mode: str | None) -> None:
    async with client_of(broker) as client, client.producer() as producer:
        assert client.message_format < 2
        await producer.send_event("t", EVENT, mode=mode, key=b"k")  # type: ignore[arg-type]
        await producer.send_events("t", [EVENT.replace(id=str(n)) for n in range(2, 5)])
        records = await stored(client)
    assert records[0].key == b"k"
    assert ids(records) == ["1", "2", "3", "4"]


async def test_event_that_was_read_in_binary_mode_is_written_as_structured_json(
    broker: Broker,
) -> None:
    read = from_kafka(*to_kafka(EVENT, key=b"k"))
    assert isinstance(read, CloudEvent)
    async with client_of(broker) as client, client.producer() as producer:
        await producer.send_event("t", read)
        (record,) = await stored(client)
    assert record.key == b"k"
    assert ids([record]) == ["1"]


async def test_client_that_is_not_connected_yet_keeps_the_order_of_its_events(
    broker: Broker,
) -> None:
    client = client_of(broker)
    try:
        async with client.producer() as producer:
            await asyncio.gather(
                *(producer.send_event("t", EVENT.replace(id=str(n))) for n in range(5)),
                producer.send_events("t", [EVENT.replace(id=str(n)) for n in range(5, 40)]),
                producer.send("t", b'{"specversion":"1.0","id":"40","source":"/","type":"t"}'),
            )
        records = await stored(client)
    finally:
        await client.close()
    assert ids(records) == [str(n) for n in range(41)]


async def test_modes_and_headers_that_need_headers_are_refused(broker: Broker) -> None:
    async with client_of(broker) as client, client.producer() as producer:
        with pytest.raises(CloudEventError, match="write structured mode in JSON"):
            await producer.send_event("t", EVENT, mode="binary")
        with pytest.raises(CloudEventError, match="1 would be lost"):
            await producer.send_event("t", EVENT, headers=[("trace", b"1")])
        await producer.send_event("t", EVENT)
        assert ids(await stored(client)) == ["1"]


async def test_same_modes_are_refused_before_the_first_connection(broker: Broker) -> None:
    client = client_of(broker)
    try:
        async with client.producer() as producer:
            with pytest.raises(CloudEventError, match="write structured mode in JSON"):
                await producer.send_event("t", EVENT, mode="binary")
            await producer.send_event("t", EVENT)
        assert ids(await stored(client)) == ["1"]
    finally:
        await client.close()


async def test_newer_brokers_get_binary_mode_from_the_first_event_on() -> None:
    async with Broker() as broker:
        broker.create_topic("t", 1)
        client = Client(broker.bootstrap)
        try:
            assert client.message_format == 2
            async with client.producer() as producer:
                await producer.send_event("t", EVENT)
                await producer.send_event("t", EVENT)
            for record in await stored(client):
                assert ("ce_id", b"1") in record.headers
        finally:
            await client.close()


def test_record_of_an_event_can_be_pickled() -> None:
    key, value, headers = to_kafka(EVENT)
    record = EventRecord(value, key, headers)
    record.event, record.mode, record.options = EVENT, None, {}
    copy = pickle.loads(pickle.dumps(record))
    assert copy == record
    assert copy.without_headers(1) == ProducerRecord(to_kafka(EVENT, message_format=1).value)


def encoded(headers: Sequence[tuple[str, bytes | None]]) -> EncodedRecords:
    batch = GrowingBatch()
    for number in range(2):
        batch.append(b"k", b"%d" % number, headers, 0, 10_000)
    return EncodedRecords(batch.compact(), 2)


async def test_encoded_batch_is_sent_as_message_set(broker: Broker) -> None:
    async with client_of(broker) as client, client.producer() as producer:
        await (await producer.send_batch("t", 0, encoded(())))
        with pytest.raises(EncodeError, match=r"has headers \('h'\), .*older than Kafka 0\.11"):
            await producer.send_batch("t", 0, encoded([("h", b"1")]))
        assert [(each.key, each.value) for each in await stored(client)] == [
            (b"k", b"0"),
            (b"k", b"1"),
        ]
