"""Correct uses of the blocking client, which type checkers must accept; the file is never run."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import assert_type

import kproto
import kproto.sync
from kproto import (
    Ack,
    AcknowledgeResult,
    Acks,
    FetchedRecords,
    FetchedValues,
    ProducerRecord,
    Record,
    RunSummary,
    ShareRecord,
    ShareRunSummary,
    Undecodable,
)
from kproto.codecs import IntCodec, JsonCodec, StringCodec
from kproto.messages import MetadataRequest, MetadataResponse


@dataclass
class Order:
    number: int


ORDER = JsonCodec(to_json=asdict, from_json=lambda data: Order(**data))


def right_requests(client: kproto.sync.Client) -> None:
    assert_type(client.request(MetadataRequest()), MetadataResponse)
    assert_type(client.connection().request(MetadataRequest(), version=12), MetadataResponse)
    assert_type(client.retrying(lambda: client.topic("t").name), str)
    assert_type(client.admin.list_topics().popitem()[0], str)


def right_sends(client: kproto.sync.Client) -> None:
    with client.producer(linger_ms=5, compression_type="zstd") as producer:
        assert_type(producer, kproto.sync.Producer)
        assert_type(producer.send("t", b"v", key=b"k"), Ack)
        assert_type(producer.send_many("t", (b"%d" % n for n in range(3))), Acks)
        delivery = producer.enqueue("t", None)
        assert_type(delivery, kproto.sync.Delivery)
        assert_type(delivery.result(timeout_ms=10), Ack)
        with producer.transaction() as transaction:
            with client.consumer("t", group="g") as consumer:
                transaction.commit_offsets(consumer)
            assert_type(transaction.is_committed, bool | None)


def right_reads(client: kproto.sync.Client) -> None:
    for record in client.consumer("t", stop_at_end=True):
        assert_type(record, Record)
    with client.consumer("t") as plain:
        assert_type(plain, kproto.sync.Consumer)
        for fetched in plain.record_lists():
            assert_type(fetched.records, list[Record])
    with client.consumer("t", group="g", on_assigned=print) as consumer:
        assert_type(consumer, kproto.sync.GroupConsumer)
        assert_type(consumer.poll(10)["t", 0], list[Record])
        consumer.commit(consumer.poll(10))


def handle(record: Record) -> None: ...


def handle_text(text: str) -> int:
    return len(text)


def handle_in_transaction(record: Record, transaction: kproto.sync.HandlerTransaction) -> None:
    transaction.send("t", record.value)


def right_runs(consumer: kproto.sync.GroupConsumer) -> None:
    assert_type(consumer.run(handle, workers=3, order="key"), RunSummary)
    consumer.run(handle_text, decode=lambda record: str(record.value))
    consumer.run(handle_in_transaction, transactional_id="tx")
    consumer.run_batches(lambda records: {0: ValueError()}, batch_size=5)


def handle_shared(record: ShareRecord) -> None: ...


def right_share_groups(client: kproto.sync.Client) -> None:
    with client.share_consumer("t", group="g", acknowledgement="explicit") as consumer:
        assert_type(consumer, kproto.sync.ShareConsumer)
        for record in consumer:
            assert_type(record, ShareRecord)
            consumer.accept(record)
        for records in consumer.record_lists():
            consumer.release(records)
        assert_type(consumer.poll(10)["t", 0], list[ShareRecord])
        assert_type(consumer.commit(), list[AcknowledgeResult])
        assert_type(consumer.run(handle_shared, workers=3), ShareRunSummary)
        consumer.run(handle_text, decode=lambda record: str(record.delivery_count))


def right_share_groups_with_codecs(client: kproto.sync.Client) -> None:
    consumer = client.share_consumer("jobs", group="g", key=StringCodec(), value=ORDER)
    assert_type(consumer, kproto.sync.ShareConsumer[str, Order])
    for record in consumer:
        assert_type(record, ShareRecord[str, Order])
    assert_type(next(consumer.record_lists()), list[ShareRecord[str, Order]])


def right_types() -> None:
    assert_type(kproto.sync.Client.from_properties("client.properties"), kproto.sync.Client)


def right_reads_with_codecs(client: kproto.sync.Client) -> None:
    consumer = client.consumer("orders", key=StringCodec(), value=ORDER)
    assert_type(consumer, kproto.sync.Consumer[str, Order])
    for record in consumer:
        assert_type(record, Record[str, Order])
        assert_type(record.value, Order | None)
    for fetched in consumer.record_lists():
        assert_type(fetched, FetchedRecords[str, Order])
    for values in consumer.values():
        assert_type(values, FetchedValues[Order])
    assert_type(consumer.poll(100), dict[tuple[str, int], list[Record[str, Order]]])
    passed_on(consumer)
    of_group = client.consumer("orders", group="g", value=IntCodec(), undecodable=Undecodable)
    assert_type(of_group, kproto.sync.GroupConsumer[bytes, int, Undecodable])
    for each in of_group:
        assert_type(each, Record[bytes, int] | Undecodable)


def passed_on(
    consumer: kproto.sync.Consumer[str, Order],
) -> kproto.sync.Consumer[str, Order]:
    return consumer


def right_sends_with_codecs(client: kproto.sync.Client) -> None:
    with client.producer(key=StringCodec(), value=ORDER, transactional_id="tx") as producer:
        assert_type(producer, kproto.sync.Producer[str, Order])
        producer.send("orders", Order(1), key="a")
        producer.enqueue("orders", None, key="a").result()
        producer.send_many("orders", (ProducerRecord(Order(n), "a") for n in range(3)))
        with (
            producer.transaction() as transaction,
            client.consumer("orders", group="g", value=ORDER) as consumer,
        ):
            transaction.commit_offsets(consumer)


def handle_order(record: Record[str, Order]) -> None: ...


def handle_orders(records: list[Record[str, Order]]) -> dict[int, Exception]:
    return {}


def handle_order_in_transaction(
    record: Record[str, Order], transaction: kproto.sync.HandlerTransaction
) -> None: ...


def number_of(record: Record[str, Order]) -> str:
    return "" if record.value is None else str(record.value.number)


def right_runs_with_codecs(consumer: kproto.sync.GroupConsumer[str, Order]) -> None:
    consumer.run(handle_order)
    consumer.run(handle_text, decode=number_of)
    consumer.run(handle_order_in_transaction, transactional_id="tx")
    consumer.run_batches(handle_orders)
