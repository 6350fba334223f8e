"""Mistakes with codecs; checkers must report each marked line, and no other line."""

from __future__ import annotations

from kproto import Client, Consumer, ProducerRecord, Record, Undecodable
from kproto.codecs import DecodeContext, IntCodec, JsonCodec, StringCodec


def decode(data: bytes, context: DecodeContext) -> int:
    return int(data)


async def handle(record: Record[str, int]) -> None: ...


async def handle_bytes(record: Record) -> None: ...


async def mistakes(client: Client) -> None:
    producer = client.producer(key=StringCodec(), value=IntCodec())
    await producer.send("orders", "text")  # error: the value is no int
    await producer.send("orders", 1, key=b"k")  # error: the key is no str
    await producer.enqueue("orders", b"1")  # error: the value is no int
    await producer.send_many("orders", [1, "2"])  # error: the second value is no int
    await producer.send_many("orders", [ProducerRecord("v", 1)])  # error: key and value exchanged
    client.producer(value=5)  # error: no encoder
    client.producer(value=StringCodec)  # error: a class
    client.producer(value=decode)  # error: the function decodes
    client.consumer("orders", value="utf-8")  # error: no decoder
    client.consumer("orders", undecodable=True)  # error: no class
    consumer = client.consumer("orders", group="g", key=StringCodec(), value=IntCodec())
    await consumer.run(handle)
    await consumer.run(handle_bytes)  # error: the handler wants bytes
    async for record in consumer:
        print(record.value + 1)  # error: a tombstone has None
        print(record.value.decode())  # error: neither int nor None has it
    yielding = client.consumer("orders", value=decode, undecodable=Undecodable)
    async for each in yielding:
        print(each.error)  # error: only an Undecodable has it
    bytes_consumer: Consumer = client.consumer("orders", value=StringCodec())  # error: of str
    print(bytes_consumer)
    client.share_consumer("jobs", value="utf-8")  # error: no decoder
    sharing = client.share_consumer("jobs", key=StringCodec(), value=IntCodec())
    await sharing.run(handle_bytes)  # error: the handler wants bytes
    async for job in sharing:
        print(job.value + 1)  # error: a tombstone has None
    JsonCodec(to_json=str)  # error: without from_json
    StringCodec(8)  # error: no encoding
    IntCodec(3)  # error: no size
