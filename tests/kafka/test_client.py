"""Tests the client on real brokers (newest and last 3.x release) and on the embedded broker."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

import kproto
from kproto.messages import ApiVersionsRequest, ListOffsetsRequest, MetadataRequest
from kproto.messages.metadata_response import MetadataResponse


async def first_of(consumer: kproto.Consumer) -> kproto.Record:
    async with contextlib.aclosing(aiter(consumer)) as records:
        return await anext(records)


async def read_all(client: kproto.Client, topic: str) -> list[kproto.Record]:
    return [record async for record in client.consumer(topic, stop_at_end=True)]


async def test_versions_are_negotiated(client: kproto.Client) -> None:
    connection = await client.connection()
    assert connection.ranges[ApiVersionsRequest.API_KEY].lowest == 0
    assert connection.version_of(MetadataRequest) >= 12
    assert client.cluster.cluster_id


async def test_an_answer_has_its_type_in_every_version(client: kproto.Client, topic: str) -> None:
    connection = await client.connection()
    lowest, highest = connection.ranges[MetadataRequest.API_KEY]
    for version in range(max(lowest, 1), min(highest, MetadataRequest.LATEST_STABLE) + 1):
        answer = await client.request(MetadataRequest(topics=None), version=version)
        assert isinstance(answer, MetadataResponse)
        assert topic in {found.name for found in answer.topics}


async def test_every_record_comes_back_as_it_was_sent(client: kproto.Client, topic: str) -> None:
    records = [
        kproto.ProducerRecord(b"value", b"key", [("name", b"held"), ("name", None)], 1000, 1),
        kproto.ProducerRecord(b"", b"", [("", b"")], 2000, 1),
        kproto.ProducerRecord(None, b"tombstone", (), 3000, 1),
        kproto.ProducerRecord(b"no key", None, (), 4000, 1),
        kproto.ProducerRecord(None, None, (), 5000, 1),
    ]
    async with client.producer() as producer:
        acks = await producer.send_many(topic, records)
    assert [(ack.partition, ack.offset, ack.timestamp) for ack in acks] == [
        (1, offset, 1000 * (offset + 1)) for offset in range(5)
    ]
    read = await read_all(client, topic)
    assert [(r.value, r.key, r.headers, r.timestamp, r.partition) for r in read] == [
        (r.value, r.key, list(r.headers), r.timestamp, r.partition) for r in records
    ]
    assert {record.topic for record in read} == {topic}


async def test_many_records_keep_their_order_in_small_batches(
    client: kproto.Client, topic: str
) -> None:
    values = [b"%06d" % index for index in range(5_000)]
    async with client.producer(batch_bytes=4_000) as producer:
        acks = await producer.send_many(
            topic, (kproto.ProducerRecord(value, partition=0) for value in values)
        )
    assert [ack.offset for ack in acks] == list(range(5_000))
    assert [record.value for record in await read_all(client, topic)] == values


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_compressed_batches(client: kproto.Client, topic: str, codec: str) -> None:
    values = [b"value %d" % index for index in range(1_000)]
    async with client.producer(compression=codec) as producer:  # type: ignore[arg-type]  # a parameter is a plain str
        await producer.send_many(topic, (kproto.ProducerRecord(v, partition=2) for v in values))
    assert [record.value for record in await read_all(client, topic)] == values


@pytest.mark.parametrize("codec", ["none", "gzip"])
async def test_values_and_raw_batches_are_those_of_the_records(
    client: kproto.Client, topic: str, codec: str
) -> None:
    values = [b"value %d" % index if index % 7 else None for index in range(3_000)]
    async with client.producer(compression=codec, batch_bytes=20_000) as producer:  # type: ignore[arg-type]  # a parameter is a plain str
        await producer.send_many(topic, (kproto.ProducerRecord(v, partition=2) for v in values))
    async with client.consumer([(topic, 2)], start={(topic, 2): 100}, stop_at_end=True) as consumer:
        lists = [fetched async for fetched in consumer.values()]
        assert [value for fetched in lists for value in fetched.values] == values[100:]
        assert lists[-1].next_offset == consumer.positions[topic, 2] == 3_000
    async with client.consumer([(topic, 2)], start={(topic, 2): 100}, stop_at_end=True) as consumer:
        found = []
        async for fetched in consumer.raw_batches():
            fetched.batch.check()
            assert fetched.batch.compression == codec
            found += fetched.batch.records(from_offset=100)
            assert consumer.positions[topic, 2] == fetched.batch.next_offset
    assert [record.value for record in found] == values[100:]
    assert [record.offset for record in found] == list(range(100, 3_000))


async def test_sends_at_the_same_time(client: kproto.Client, topic: str) -> None:
    async with client.producer() as producer:
        acks = await asyncio.gather(
            *(producer.send(topic, b"%d" % index, key=b"%d" % (index % 7)) for index in range(500))
        )
    assert len({(ack.partition, ack.offset) for ack in acks}) == 500
    read = {(record.partition, record.offset): record for record in await read_all(client, topic)}
    for index, ack in enumerate(acks):
        assert read[ack.partition, ack.offset].value == b"%d" % index
    by_key = {record.key: record.partition for record in read.values()}
    assert all(by_key[record.key] == record.partition for record in read.values())


async def test_batches_carry_a_producer_id_and_sequence_numbers(
    client: kproto.Client, topic: str
) -> None:
    from kproto.records import read_batches

    async with client.producer() as producer:
        for index in range(3):
            await producer.send(topic, b"%d" % index, partition=0)
    fetched = await client.fetch(topic, 0, 0)
    batches = list(read_batches(fetched.records))
    assert len({batch.producer_id for batch in batches}) == 1
    assert batches[0].producer_id >= 0
    assert [batch.base_sequence for batch in batches] == [0, 1, 2]
    assert fetched.high_watermark == 3


async def test_offsets_and_a_fetch_from_inside_a_batch(client: kproto.Client, topic: str) -> None:
    records = [kproto.ProducerRecord(b"%d" % i, timestamp=i * 1000, partition=0) for i in range(10)]
    async with client.producer() as producer:
        await producer.send_many(topic, records)
    place = (topic, 0)
    assert await client.list_offsets({place: "earliest"}) == {place: 0}
    assert await client.list_offsets({place: "latest"}) == {place: 10}
    assert await client.list_offsets({place: 3500}) == {place: 4}
    assert await client.list_offsets({place: 99_000}) == {place: -1}
    consumer = client.consumer([place], start={place: 7}, stop_at_end=True)
    assert [record.offset async for record in consumer] == [7, 8, 9]


async def test_a_consumer_of_the_end_sees_what_comes_after(
    client: kproto.Client, topic: str
) -> None:
    async with client.producer() as producer:
        await producer.send(topic, b"before", partition=0)
        async with client.consumer([(topic, 0)], start="latest") as consumer:
            waiting = asyncio.create_task(first_of(consumer))
            async with asyncio.timeout(20):
                while not consumer.positions:  # noqa: ASYNC110 - positions have no event
                    await asyncio.sleep(0.01)
                await producer.send(topic, b"after", partition=0)
                assert (await waiting).value == b"after"


async def test_an_unknown_topic_is_one_clear_error(bootstrap: str) -> None:
    settings = kproto.ClientSettings(metadata_wait_ms=300)
    async with kproto.Client(bootstrap, settings) as client, client.producer() as producer:
        with pytest.raises(kproto.DeliveryError, match="'no-such-topic'") as caught:
            await producer.send("no-such-topic", b"lost?")
        assert isinstance(caught.value.cause, kproto.BrokerResponseError)
        assert caught.value.cause.name == "UNKNOWN_TOPIC_OR_PARTITION"
        assert caught.value.records[0].value == b"lost?"


async def test_a_record_that_is_too_large_is_not_lost(client: kproto.Client, topic: str) -> None:
    async with client.producer(batch_bytes=10_000_000) as producer:
        with pytest.raises(kproto.DeliveryError, match="MESSAGE_TOO_LARGE") as caught:
            await producer.send(topic, bytes(2_000_000), partition=0)
        assert [len(record.value or b"") for record in caught.value.records] == [2_000_000]
        ack = await producer.send(topic, b"the next one goes", partition=0)
    assert ack.offset == 0


async def test_a_request_that_a_version_cannot_express(client: kproto.Client) -> None:
    request = ListOffsetsRequest(replica_id=-1, isolation_level=1)
    with pytest.raises(kproto.EncodeError, match="isolation_level"):
        await client.request(request, version=1)
