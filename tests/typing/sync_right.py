"""Correct uses of the blocking client, which type checkers must accept; the file is never run."""

from __future__ import annotations

from typing import assert_type

import kproto
import kproto.sync
from kproto import Ack, Acks, Record, RunSummary
from kproto.messages import MetadataRequest, MetadataResponse


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


def right_types() -> None:
    assert_type(kproto.sync.Client.from_properties("client.properties"), kproto.sync.Client)
