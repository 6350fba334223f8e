"""Correct uses of codecs, and the types that checkers must infer; the file is never run."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, assert_type
from uuid import UUID

from kproto_cloudevents import CloudEvent, CloudEvents

from kproto import (
    Client,
    Consumer,
    FetchedRecords,
    FetchedValues,
    GroupConsumer,
    HandlerTransaction,
    Producer,
    ProducerRecord,
    Record,
    ShareConsumer,
    ShareRecord,
    Undecodable,
)
from kproto.codecs import (
    BytesCodec,
    Codec,
    DecodeContext,
    Decoder,
    EncodeContext,
    Encoder,
    FunctionCodec,
    IntCodec,
    JsonCodec,
    SchemaIdCodec,
    StringCodec,
    UuidCodec,
)


@dataclass
class Order:
    number: int


ORDER = JsonCodec(to_json=asdict, from_json=lambda data: Order(**data))


class Rot13:
    """A codec without a base class."""

    def encode(self, value: str, context: EncodeContext, /) -> bytes:
        return value.encode("rot13")

    def decode(self, data: bytes, context: DecodeContext, /) -> str:
        return data.decode("rot13")


def price(data: bytes, context: DecodeContext) -> float:
    return float(data)


def price_bytes(value: float, context: EncodeContext) -> bytes:
    return str(value).encode()


def codecs_have_types() -> None:
    assert_type(ORDER, JsonCodec[Order])
    assert_type(JsonCodec(), JsonCodec[Any])
    assert_type(SchemaIdCodec(ORDER, 7), SchemaIdCodec[Order])
    assert_type(FunctionCodec(str.encode, bytes.decode), FunctionCodec[str])
    texts: list[Codec[str]] = [StringCodec(), Rot13(), SchemaIdCodec(StringCodec(), 1)]
    encoder: Encoder[UUID] = UuidCodec()
    decoder: Decoder[object] = UuidCodec(binary=True)
    print(texts, encoder, decoder)


async def consumers_have_the_types_of_their_codecs(client: Client) -> None:
    consumer = client.consumer("orders", key=StringCodec(), value=ORDER)
    assert_type(consumer, Consumer[str, Order])
    async for record in consumer:
        assert_type(record, Record[str, Order])
        assert_type(record.key, str | None)
        assert_type(record.value, Order | None)
    async for fetched in consumer.record_lists():
        assert_type(fetched, FetchedRecords[str, Order])
        assert_type(fetched.records, list[Record[str, Order]])
    async for values in consumer.values():
        assert_type(values, FetchedValues[Order])
        assert_type(values.values, list[Order | None])
    assert_type(await consumer.poll(100), dict[tuple[str, int], list[Record[str, Order]]])
    assert_type(client.consumer("orders", value=price), Consumer[bytes, float])
    assert_type(client.consumer("orders", key=Rot13()), Consumer[str])
    assert_type(client.consumer("orders", value=CloudEvents()), Consumer[bytes, CloudEvent])
    passed_on(consumer)


async def consumers_without_codecs_have_bytes(client: Client) -> None:
    consumer = client.consumer("orders")
    assert_type(consumer, Consumer)
    async for record in consumer:
        assert_type(record, Record)
        assert_type(record.value, bytes | None)
    async for fetched in consumer.record_lists():
        assert_type(fetched, FetchedRecords)
    assert_type(client.consumer("orders", group="g"), GroupConsumer)
    assert_type(client.consumer("orders", value=BytesCodec()), Consumer)


async def undecodable_records_are_a_type_of_their_own(client: Client) -> None:
    consumer = client.consumer("orders", group="g", value=IntCodec(), undecodable=Undecodable)
    assert_type(consumer, GroupConsumer[bytes, int, Undecodable])
    async for record in consumer:
        assert_type(record, Record[bytes, int] | Undecodable)
        if isinstance(record, Undecodable):
            assert_type(record.value, bytes | None)
            print(record.error.field)
            continue
        assert_type(record, Record[bytes, int])
        await consumer.commit(record)


async def handlers_get_decoded_records(client: Client) -> None:
    async def handle(record: Record[str, Order]) -> None:
        assert_type(record.value, Order | None)

    async def handle_batch(records: list[Record[str, Order]]) -> dict[int, Exception]:
        return {}

    async def handle_in_transaction(
        record: Record[str, Order], transaction: HandlerTransaction
    ) -> None:
        await transaction.send("out", record.key.encode() if record.key else None)

    async def handle_number(number: int) -> None: ...

    def number_of(record: Record[str, Order]) -> int:
        return 0 if record.value is None else record.value.number

    async with client.consumer("orders", group="g", key=StringCodec(), value=ORDER) as consumer:
        assert_type(consumer, GroupConsumer[str, Order])
        await consumer.run(handle)
        await consumer.run(handle_number, decode=number_of)
        await consumer.run(handle_in_transaction, transactional_id="t")
        await consumer.run_batches(handle_batch)


async def share_consumers_have_the_types_of_their_codecs(client: Client) -> None:
    async def handle(record: ShareRecord[str, Order]) -> None:
        assert_type(record.value, Order | None)

    async def handle_number(number: int) -> None: ...

    consumer = client.share_consumer("jobs", group="g", key=StringCodec(), value=ORDER)
    assert_type(consumer, ShareConsumer[str, Order])
    async for record in consumer:
        assert_type(record, ShareRecord[str, Order])
        assert_type(record.value, Order | None)
        assert_type(record.delivery_count, int)
        await consumer.accept(record)
    async for records in consumer.record_lists():
        assert_type(records, list[ShareRecord[str, Order]])
        await consumer.release(records)
    assert_type(await consumer.poll(100), dict[tuple[str, int], list[ShareRecord[str, Order]]])
    await consumer.run(handle)
    await consumer.run(handle_number, decode=lambda record: record.delivery_count)
    assert_type(client.share_consumer("jobs", group="g"), ShareConsumer)
    events = client.share_consumer("jobs", group="g", value=CloudEvents(), undecodable=Undecodable)
    assert_type(events, ShareConsumer[bytes, CloudEvent, Undecodable])
    async for event in events:
        if isinstance(event, Undecodable):
            print(event.error.field, event.delivery_count)
            await events.reject(event)
            continue
        assert_type(event, ShareRecord[bytes, CloudEvent])
        await events.accept(event)


async def producers_have_the_types_of_their_codecs(client: Client) -> None:
    producer = client.producer(key=StringCodec(), value=ORDER)
    assert_type(producer, Producer[str, Order])
    await producer.send("orders", Order(1), key="a")
    await producer.send("orders", None, key="a")
    await producer.enqueue("orders", Order(1))
    await producer.send_many("orders", [Order(1), ProducerRecord(Order(2), "a"), None])
    assert_type(client.producer(value=price_bytes), Producer[bytes, float])
    assert_type(client.producer(), Producer)
    async with client.producer(value=JsonCodec()) as of_json:
        await of_json.send("orders", {"n": [1]}, key=b"k")
    async with client.producer(value=CloudEvents()) as of_events:
        await of_events.send("orders", CloudEvent(id="1", source="/s", type="t"))


def passed_on(consumer: Consumer[str, Order]) -> Consumer[str, Order]:
    return consumer
