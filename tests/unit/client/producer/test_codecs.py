"""Tests producers with codecs: sends, lists, iterators, transactions, events, faults."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from kproto_cloudevents import CloudEvent

from kproto import (
    Client,
    ConfigurationError,
    Consumer,
    DeliveryError,
    EncodeError,
    FetchedRecords,
    GroupConsumer,
    Hooks,
    Producer,
    ProducerRecord,
    Record,
)
from kproto.broker import Broker
from kproto.client import ClientSettings
from kproto.codecs import EncodeContext, IntCodec, JsonCodec, SchemaIdCodec, StringCodec

QUICK = ClientSettings(metadata_wait_ms=200, retry_backoff_ms=10, delivery_timeout_ms=2_000)


@asynccontextmanager
async def orders(settings: ClientSettings = QUICK) -> AsyncIterator[Client]:
    async with Broker() as broker, Client(broker.bootstrap, settings) as client:
        await client.create_topics("orders")
        async with asyncio.timeout(30):
            yield client


async def stored(client: Client) -> list[tuple[bytes | None, bytes | None]]:
    return [
        (record.key, record.value) async for record in client.consumer("orders", stop_at_end=True)
    ]


async def test_keys_and_values_of_all_sends_are_encoded() -> None:
    async with orders() as client:
        async with client.producer(key=IntCodec(2), value=JsonCodec()) as producer:
            await producer.send("orders", {"n": 1}, key=1)
            await (await producer.enqueue("orders", {"n": 2}, key=2))
            await producer.send_many(
                "orders", [{"n": 3}, ProducerRecord({"n": 4}, 4, [("h", b"x")], 99), None]
            )
            await producer.send("orders", None, key=5)
        read = [record async for record in client.consumer("orders", stop_at_end=True)]
    assert [(each.key, each.value) for each in read] == [
        (b"\x00\x01", b'{"n":1}'),
        (b"\x00\x02", b'{"n":2}'),
        (None, b'{"n":3}'),
        (b"\x00\x04", b'{"n":4}'),
        (None, None),
        (b"\x00\x05", None),
    ]
    assert (read[3].headers, read[3].timestamp) == ([("h", b"x")], 99)


async def test_concurrent_sends_are_encoded() -> None:
    async with orders() as client:
        async with client.producer(key=StringCodec(), value=IntCodec(2)) as producer:
            await asyncio.gather(
                *(producer.send("orders", number, key="k") for number in range(200))
            )
        assert sorted(value or b"" for _, value in await stored(client)) == [
            number.to_bytes(2, "big") for number in range(200)
        ]


async def test_without_a_codec_the_other_field_stays_bytes() -> None:
    async with orders() as client:
        async with client.producer(value=StringCodec()) as producer:
            await producer.send("orders", "text", key=b"\xff")
        assert await stored(client) == [(b"\xff", b"text")]


async def test_codec_adds_headers() -> None:
    async with orders() as client:
        codec = SchemaIdCodec(StringCodec(), 7, in_header=True)
        async with client.producer(key=codec, value=codec) as producer:
            await producer.send("orders", "v", key="k", headers=[("own", b"x")])
        (read,) = [record async for record in client.consumer("orders", stop_at_end=True)]
    seven = b"\x00\x00\x00\x00\x07"
    assert (read.key, read.value) == (b"k", b"v")
    assert read.headers == [
        ("own", b"x"),
        ("__key_schema_id", seven),
        ("__value_schema_id", seven),
    ]


@pytest.mark.parametrize("how", ["send", "enqueue"])
async def test_value_that_cannot_be_encoded_is_not_sent(how: str) -> None:
    async with orders() as client:
        async with client.producer(value=IntCodec()) as producer:
            send: Any = getattr(producer, how)
            with pytest.raises(EncodeError, match=r"a value of type str cannot be encoded by"):
                await send("orders", "no number")
            await send("orders", 1)
        assert len(await stored(client)) == 1


async def test_no_record_of_a_list_is_sent_if_one_cannot_be_encoded() -> None:
    async with orders() as client:
        async with client.producer(value=IntCodec()) as producer:
            values: list[Any] = [1, 2, ProducerRecord("no number"), 4]
            with pytest.raises(EncodeError) as raised:
                await producer.send_many("orders", values)
            assert raised.value.field == "values[2].value"
        assert await stored(client) == []


async def test_iterator_is_sent_up_to_the_record_that_cannot_be_encoded() -> None:
    async with orders() as client:
        rest: Iterator[Any] = iter([1, 2, "no number", 4])
        async with client.producer(value=IntCodec(2)) as producer:
            with pytest.raises(EncodeError, match=r"values\[2\]\.value"):
                await producer.send_many("orders", rest)
        assert [value for _, value in await stored(client)] == [b"\x00\x01", b"\x00\x02"]
    assert list(rest) == [4]


async def test_single_value_is_no_list() -> None:
    async with orders() as client, client.producer(value=StringCodec()) as producer:
        with pytest.raises(TypeError, match="values is a single str"):
            await producer.send_many("orders", "text")


async def test_transaction_sends_encoded_records() -> None:
    async with orders() as client:
        async with client.producer(
            key=StringCodec(), value=JsonCodec(), transactional_id="t"
        ) as producer:
            async with producer.transaction():
                await producer.send_many("orders", [ProducerRecord({"n": 1}, "a")])
            with pytest.raises(EncodeError):
                async with producer.transaction():
                    await producer.send("orders", object(), key="b")
            async with producer.transaction():
                await producer.send("orders", {"n": 2}, key="b")
        read = client.consumer("orders", stop_at_end=True, read_committed=True)
        assert [record.value async for record in read] == [b'{"n":1}', b'{"n":2}']


async def test_events_pass_by_the_codecs() -> None:
    event = CloudEvent(id="1", source="/s", type="t", data=b"data")
    async with orders() as client:
        async with client.producer(key=IntCodec(), value=JsonCodec()) as producer:
            await producer.send_event("orders", event)
            await producer.send_events("orders", [event])
            await producer.send_events("orders", iter([event]))
        assert await stored(client) == [(None, b"data")] * 3


async def test_partitioner_hooks_and_errors_have_the_encoded_record() -> None:
    seen: list[Any] = []

    class Noted(Hooks):
        def on_send(self, topic: str, record: ProducerRecord) -> ProducerRecord:
            seen.append((record.key, record.value))
            return record

    async with (
        orders(ClientSettings(metadata_wait_ms=100, hooks=Noted())) as client,
        client.producer(key=IntCodec(2), value=StringCodec()) as producer,
    ):
        with pytest.raises(DeliveryError) as raised:
            await producer.send("missing", "v", key=1)
    assert seen == [(b"\x00\x01", b"v")]
    assert [(each.key, each.value) for each in raised.value.records] == [(b"\x00\x01", b"v")]


async def test_function_is_an_encoder() -> None:
    def encode(value: float, context: EncodeContext) -> bytes:
        return f"{context.topic} {context.field} {value}".encode()

    async with orders() as client:
        async with client.producer(value=encode) as producer:
            await producer.send("orders", 1.5)
        assert await stored(client) == [(None, b"orders value 1.5")]


async def test_object_that_is_no_encoder_is_refused() -> None:
    async with orders() as client:
        with pytest.raises(ConfigurationError, match=r"value is 5, which is no codec: pass"):
            client.producer(value=5)  # type: ignore[arg-type]


def test_records_of_any_types_have_equal_fields() -> None:
    record: ProducerRecord[int, dict[str, int]] = ProducerRecord({"n": 1}, 5)
    assert record == ({"n": 1}, 5, (), None, None)


def test_generic_classes_accept_any_number_of_types() -> None:
    """`Consumer[str, Order]` leaves the third type at its default."""
    for kind in (Record, ProducerRecord, Producer, Consumer, GroupConsumer, FetchedRecords):
        generic: Any = kind
        assert generic[str].__args__ == (str,)
        assert generic[str, int].__origin__ is kind
