"""Tests consumers with codecs: all iterations and polls, nulls, undecodable records, commits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kproto import (
    Client,
    ClientSettings,
    ConfigurationError,
    Consumer,
    GroupConsumer,
    Hooks,
    NewTopic,
    ProducerRecord,
    Record,
    Undecodable,
    UndecodableRecordError,
)
from kproto.broker import Broker
from kproto.codecs import DecodeContext, IntCodec, SchemaIdCodec, StringCodec

QUICK = ClientSettings(metadata_wait_ms=200, retry_backoff_ms=10)

AnyConsumer = Consumer[Any, Any, Any] | GroupConsumer[Any, Any, Any]


def number(data: bytes, context: DecodeContext) -> int:
    return int(data)


@asynccontextmanager
async def orders(
    *values: bytes | ProducerRecord | None, settings: ClientSettings = QUICK
) -> AsyncIterator[Client]:
    """Yields a client of a topic `orders`, whose two partitions have `values`, by default in 0."""
    async with Broker() as broker, Client(broker.bootstrap, settings) as client:
        await client.create_topics(NewTopic("orders", partitions=2))
        async with client.producer() as producer:
            for value in values:
                record = value if isinstance(value, ProducerRecord) else ProducerRecord(value)
                partition = record.partition or 0
                await producer.send_many("orders", [record._replace(partition=partition)])
        async with asyncio.timeout(30):
            yield client


def consumer_of(client: Client, kind: str, **given: Any) -> AnyConsumer:
    settings: dict[str, Any] = {"value": number, "max_wait_ms": 20, **given}
    if kind == "group":
        settings["group"] = "billing"
    consumer: AnyConsumer = client.consumer("orders", **settings)
    return consumer


async def results(consumer: AnyConsumer, how: str, count: int) -> list[Any]:
    """Returns values and undecodable bytes until `count` of them are read, by one kind of read."""
    found: list[Any] = []
    iterations: dict[str, Any] = {
        "records": aiter(consumer),
        "record_lists": consumer.record_lists(),
        "values": consumer.values(),
    }
    while len(found) < count:
        try:
            if how == "poll":
                polled = await consumer.poll(100)
                for records in polled.values():
                    found += [value_of(each) for each in records]
                continue
            item = await anext(iterations[how])
            if how == "records":
                found.append(value_of(item))
            elif how == "record_lists":
                found += [value_of(each) for each in item.records]
            else:
                found += [
                    each.value if isinstance(each, Undecodable) else each for each in item.values
                ]
        except UndecodableRecordError as error:
            found.append(error.raw)
    return found


def value_of(record: Any) -> Any:
    assert isinstance(record, Record)
    return record.value


KINDS = pytest.mark.parametrize("kind", ["plain", "group"])
READS = pytest.mark.parametrize("how", ["records", "record_lists", "values", "poll"])


@KINDS
@READS
async def test_values_are_decoded(kind: str, how: str) -> None:
    async with orders(b"1", b"2", None, b"3") as client, consumer_of(client, kind) as consumer:
        assert await results(consumer, how, 4) == [1, 2, None, 3]


@KINDS
@READS
@pytest.mark.parametrize("undecodable", [None, Undecodable])
@pytest.mark.parametrize(
    "values",
    [[b"x"], [b"x", b"1"], [b"1", b"x"], [b"1", b"x", b"y", b"2", b"z"], [b"x", b"y", b"z", b"1"]],
)
async def test_reading_continues_after_undecodable_records(
    kind: str, how: str, undecodable: Any, values: list[bytes]
) -> None:
    expected = [int(each) if each.isdigit() else each for each in values]
    async with orders() as client:
        async with client.producer() as producer:  # one batch, so one list
            await producer.send_many("orders", [ProducerRecord(v, partition=0) for v in values])
        async with consumer_of(client, kind, undecodable=undecodable) as consumer:
            assert await results(consumer, how, len(values)) == expected
            assert consumer.positions[("orders", 0)] == len(values)


@READS
async def test_kinds_of_reads_alternate_over_undecodable_records(how: str) -> None:
    values = [b"x" if at % 3 == 1 else b"%d" % at for at in range(12)]
    async with orders() as client:
        async with client.producer() as producer:
            await producer.send_many("orders", [ProducerRecord(v, partition=0) for v in values])
        async with consumer_of(client, "group") as consumer:
            found: list[Any] = []
            for kind in [how, "records", "record_lists", "records", "poll", "values", "records"]:
                found += await results(consumer, kind, 1)
            while len(found) < len(values):
                found += await results(consumer, "records", 1)
    assert found == [int(each) if each.isdigit() else each for each in values]


async def test_error_names_the_record_and_ends_no_consumer() -> None:
    read: list[Any] = []

    async def read_on(consumer: Consumer[bytes, int]) -> None:
        async for record in consumer:
            read.append(record.value)  # noqa: PERF401 - it must be there after an error

    async with (
        orders(b"1", b"x", b"2") as client,
        client.consumer("orders", value=number, stop_at_end=True) as consumer,
    ):
        with pytest.raises(UndecodableRecordError, match=r"^orders\[0\] at offset 1: the value "):
            await read_on(consumer)
        assert read == [1]
        await read_on(consumer)
    assert read == [1, 2]


async def test_undecodable_records_are_records_of_an_iteration() -> None:
    async with orders(ProducerRecord(b"x", b"k", [("h", b"v")]), b"1") as client:
        consumer = client.consumer(
            "orders", key=StringCodec(), value=number, undecodable=Undecodable, stop_at_end=True
        )
        first, second = [record async for record in consumer]
    assert isinstance(first, Undecodable)
    assert (first.topic, first.partition, first.offset) == ("orders", 0, 0)
    assert (first.key, first.value, first.headers) == (b"k", b"x", [("h", b"v")])
    assert isinstance(first.error.__cause__, ValueError)
    assert (type(second), second.value) == (Record, 1)


async def test_poll_returns_the_records_before_an_undecodable_one_of_any_partition() -> None:
    def of(partition: int, *values: bytes) -> list[ProducerRecord]:
        return [ProducerRecord(value, partition=partition) for value in values]

    found: dict[int, list[Any]] = {0: [], 1: []}
    async with (
        orders(*of(0, b"1", b"x", b"2"), *of(1, b"3", b"y", b"4")) as client,
        client.consumer("orders", value=number) as consumer,
    ):
        while sum(map(len, found.values())) < 6:
            try:
                for (_, partition), records in (await consumer.poll(100)).items():
                    found[partition] += [record.value for record in records]
            except UndecodableRecordError as error:
                found[error.partition].append(error.raw)
    assert found == {0: [1, b"x", 2], 1: [3, b"y", 4]}


async def test_keys_are_decoded_and_headers_reach_the_codec() -> None:
    codec = SchemaIdCodec(StringCodec(), 7, in_header=True)
    async with orders() as client:
        async with client.producer(key=IntCodec(), value=codec) as producer:
            await producer.send("orders", "text", key=5, partition=0)
        read = client.consumer("orders", key=IntCodec(), value=codec, stop_at_end=True)
        (record,) = [record async for record in read]
    assert (record.key, record.value) == (5, "text")


async def test_raw_batches_and_consumers_without_codecs_have_bytes() -> None:
    async with orders(b"x") as client:
        async with client.consumer("orders", value=number, stop_at_end=True) as consumer:
            async for fetched in consumer.raw_batches():
                assert [record.value for record in fetched.batch.records()] == [b"x"]
        assert [record.value async for record in client.consumer("orders", stop_at_end=True)] == [
            b"x"
        ]


async def committed(client: Client) -> int | None:
    return {
        tp: each.offset for tp, each in (await client.committed_offsets("billing")).items()
    }.get(("orders", 0))


@READS
async def test_undecodable_record_that_ends_the_block_is_not_committed(how: str) -> None:
    async def read_all(client: Client) -> None:
        async with consumer_of(client, "group") as consumer:
            iterations: dict[str, Any] = {
                "records": aiter(consumer),
                "record_lists": consumer.record_lists(),
                "values": consumer.values(),
            }
            while True:
                await (consumer.poll(100) if how == "poll" else anext(iterations[how]))

    async with orders() as client:
        async with client.producer() as producer:
            values = [ProducerRecord(each, partition=0) for each in (b"1", b"2", b"x", b"3")]
            await producer.send_many("orders", values)
        with pytest.raises(UndecodableRecordError):
            await read_all(client)
        assert await committed(client) == 2


@READS
async def test_caller_that_continues_commits_the_undecodable_record(how: str) -> None:
    async with orders() as client:
        async with client.producer() as producer:
            values = [ProducerRecord(each, partition=0) for each in (b"1", b"2", b"x", b"3", b"4")]
            await producer.send_many("orders", values)
        async with consumer_of(client, "group") as consumer:
            found = await results(consumer, how, 3)
        assert found == [1, 2, b"x"]
        assert await committed(client) == 3


async def test_returned_items_can_be_committed() -> None:
    async with (
        orders(b"1", b"x", b"2", b"3") as client,
        client.consumer(
            "orders", group="billing", value=number, undecodable=Undecodable, auto_commit=False
        ) as consumer,
    ):
        records = aiter(consumer)
        await consumer.commit(await anext(records))
        assert await committed(client) == 1
        undecodable = await anext(records)
        assert isinstance(undecodable, Undecodable)
        await consumer.commit(undecodable)
        assert await committed(client) == 2
        await consumer.commit(await anext(consumer.record_lists()))
        assert (await committed(client) or 0) >= 3


async def test_hooks_see_the_bytes() -> None:
    seen: list[Any] = []

    class Noted(Hooks):
        def on_records(self, topic: str, partition: int, records: list[Record]) -> list[Record]:
            seen.extend(records)
            return records

    settings = ClientSettings(metadata_wait_ms=200, hooks=Noted())
    async with orders(b"1", settings=settings) as client:
        read = client.consumer("orders", value=number, stop_at_end=True)
        assert [record.value async for record in read] == [1]
    assert [record.value for record in seen] == [b"1"]


async def test_cancelled_anext_loses_no_record() -> None:
    async with (
        orders() as client,
        client.consumer("orders", value=number, max_wait_ms=20) as consumer,
    ):
        records = aiter(consumer)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(records), 0.05)
        async with client.producer() as producer:
            await producer.send("orders", b"5")
        assert (await anext(records)).value == 5


async def test_setting_without_a_codec_is_refused() -> None:
    async with orders() as client:
        with pytest.raises(ConfigurationError, match="set key or value"):
            client.consumer("orders", undecodable=Undecodable)
        with pytest.raises(ConfigurationError, match="which is no codec"):
            client.consumer("orders", value="utf-8")  # type: ignore[call-overload]
