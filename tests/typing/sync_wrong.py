"""Mistakes with the blocking client that a type checker must report, each marked `# error`.

Checkers read this file; it is never run. Every other line must be free of errors.
"""

from __future__ import annotations

import kproto.sync
from kproto import ProducerRecord, Record
from kproto.codecs import IntCodec, StringCodec
from kproto.messages import MetadataResponse


async def handle(record: Record) -> None: ...


def handle_text(text: str) -> None: ...


def wrong_calls(client: kproto.sync.Client, producer: kproto.sync.Producer) -> None:
    client.request(MetadataResponse())  # error: a response is no request
    producer.send("t", "text")  # error: a value is bytes
    producer.send_many("t", ["text"])  # error: values are bytes
    producer.enqueue("t", b"x").result(timeout=1.0)  # error: the name is timeout_ms
    client.producer(linger=5)  # error: the name is linger_ms
    client.consumer("t", instance_id="i")  # error: for a group


def wrong_runs(consumer: kproto.sync.GroupConsumer) -> None:
    consumer.run(handle_text)  # error: without `decode` the argument is a record
    consumer.run(handle, worker=3)  # error: the name is workers
    for record in consumer:
        print(record.vale)  # error: no such field


def handle_bytes(record: Record) -> None: ...


def wrong_codecs(client: kproto.sync.Client) -> None:
    producer = client.producer(key=StringCodec(), value=IntCodec())
    producer.send("t", "text")  # error: the value is no int
    producer.send("t", 1, key=b"k")  # error: the key is no str
    producer.enqueue("t", b"1")  # error: the value is no int
    producer.send_many("t", [ProducerRecord("v", 1)])  # error: key and value exchanged
    client.producer(value=5)  # error: no encoder
    client.consumer("t", value="utf-8")  # error: no decoder
    consumer = client.consumer("t", group="g", key=StringCodec(), value=IntCodec())
    consumer.run(handle_bytes)  # error: the handler wants bytes
    consumer.run_batches(lambda records: records[0].value)  # error: no dict of failures
    for record in consumer:
        print(record.value + 1)  # error: a tombstone has None
    of_bytes: kproto.sync.Consumer = client.consumer("t", value=IntCodec())  # error: of int
    print(of_bytes)


def wrong_share_groups(client: kproto.sync.Client, record: Record) -> None:
    consumer = client.share_consumer("t", group="g", acknowledgement="explicit")
    consumer.accept(record)  # error: no record of a share group
    consumer.run(handle_text)  # error: without `decode` the argument is a record
    consumer.run(print, order="key")  # error: a share group has no order
    client.share_consumer("t", acknowledgement="both")  # error: no such mode
