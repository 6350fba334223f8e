"""One measurement of one Kafka client, in a process of its own; prints {"rate": …} as JSON.

Imports nothing of the others: it runs under our interpreter and under that of the peers. Each
client is used the way its documentation shows for throughput, with acks=all, idempotence off
where that is its default, and every record acknowledged, or counted, before the clock stops.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from typing import Any

VALUE = b"v" * 100
HEADERS = [
    ("ce_specversion", b"1.0"),
    ("ce_id", b"2013-01-01T05:00:00-UA-1545"),
    ("ce_source", b"/flights/ewr"),
    ("ce_type", b"com.example.flight.departed"),
    ("ce_time", b"2013-01-01T10:00:00Z"),
    ("content-type", b"application/json"),
]
#: A batch of about a megabyte: what brokers take by default, and the same for every client.
BATCH_BYTES = 1_000_000


def main() -> None:
    task: dict[str, Any] = json.loads(sys.argv[1])
    client, work = task.pop("client"), task.pop("work")
    function = globals()[f"{client}_{work}"]
    result = function(**task)
    print(json.dumps(asyncio.run(result) if asyncio.iscoroutine(result) else result))


def keys(count: int) -> list[bytes]:
    return [b"%08d" % index for index in range(count)]


# kproto


async def kproto_produce(bootstrap: str, topic: str, count: int, headers: bool) -> dict[str, float]:
    import kproto

    held = HEADERS if headers else []
    made = keys(count)
    async with (
        kproto.Client(bootstrap) as client,
        client.producer(batch_bytes=BATCH_BYTES) as producer,
    ):
        await producer.send(topic, b"warm")
        start = time.perf_counter()
        records = (kproto.ProducerRecord(VALUE, key, held) for key in made)
        acks = await producer.send_many(topic, records)
        assert len(acks) == count
        return {"rate": count / (time.perf_counter() - start)}


async def kproto_consume(bootstrap: str, topic: str, count: int, headers: bool) -> dict[str, float]:
    import kproto

    async with kproto.Client(bootstrap) as client:
        seen = 0
        start = time.perf_counter()
        async for record in client.consumer(topic, start="earliest"):
            seen += len(record.headers) >= 0 if headers else 1
            if seen >= count:
                break
        return {"rate": seen / (time.perf_counter() - start)}


async def kproto_send(bootstrap: str, topic: str, count: int, headers: bool) -> dict[str, float]:
    import kproto

    times = []
    async with kproto.Client(bootstrap) as client, client.producer() as producer:
        for _ in range(count):
            start = time.perf_counter()
            await producer.send(topic, VALUE)
            times.append(time.perf_counter() - start)
    return {"rate": 1 / statistics.median(times)}


# aiokafka


async def aiokafka_produce(
    bootstrap: str, topic: str, count: int, headers: bool
) -> dict[str, float]:
    from aiokafka import AIOKafkaProducer

    held = HEADERS if headers else []
    made = keys(count)
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap, acks="all", max_batch_size=BATCH_BYTES, linger_ms=5
    )
    await producer.start()
    try:
        await producer.send_and_wait(topic, b"warm")
        start = time.perf_counter()
        futures = [await producer.send(topic, VALUE, key=key, headers=held) for key in made]
        await asyncio.gather(*futures)
        return {"rate": count / (time.perf_counter() - start)}
    finally:
        await producer.stop()


async def aiokafka_consume(
    bootstrap: str, topic: str, count: int, headers: bool
) -> dict[str, float]:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topic, 0)])
        await consumer.seek_to_beginning()
        seen = 0
        start = time.perf_counter()
        async for record in consumer:
            seen += len(record.headers) >= 0 if headers else 1
            if seen >= count:
                break
        return {"rate": seen / (time.perf_counter() - start)}
    finally:
        await consumer.stop()


async def aiokafka_send(bootstrap: str, topic: str, count: int, headers: bool) -> dict[str, float]:
    from aiokafka import AIOKafkaProducer

    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all")
    await producer.start()
    times = []
    try:
        for _ in range(count):
            start = time.perf_counter()
            await producer.send_and_wait(topic, VALUE)
            times.append(time.perf_counter() - start)
    finally:
        await producer.stop()
    return {"rate": 1 / statistics.median(times)}


# kafka-python


def kafka_python_produce(bootstrap: str, topic: str, count: int, headers: bool) -> dict[str, float]:
    from kafka import KafkaProducer

    held = HEADERS if headers else []
    made = keys(count)
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, acks="all", batch_size=BATCH_BYTES, linger_ms=5
    )
    producer.send(topic, b"warm").get(30)
    start = time.perf_counter()
    futures = [producer.send(topic, VALUE, key=key, headers=held) for key in made]
    for future in futures:
        future.get(60)
    rate = count / (time.perf_counter() - start)
    producer.close()
    return {"rate": rate}


def kafka_python_consume(bootstrap: str, topic: str, count: int, headers: bool) -> dict[str, float]:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    place = TopicPartition(topic, 0)
    consumer.assign([place])
    consumer.seek_to_beginning(place)
    seen = 0
    start = time.perf_counter()
    for record in consumer:
        seen += len(record.headers) >= 0 if headers else 1
        if seen >= count:
            break
    rate = seen / (time.perf_counter() - start)
    consumer.close()
    return {"rate": rate}


def kafka_python_send(bootstrap: str, topic: str, count: int, headers: bool) -> dict[str, float]:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all")
    times = []
    for _ in range(count):
        start = time.perf_counter()
        producer.send(topic, VALUE).get(30)
        times.append(time.perf_counter() - start)
    producer.close()
    return {"rate": 1 / statistics.median(times)}


# confluent-kafka


def confluent_kafka_produce(
    bootstrap: str, topic: str, count: int, headers: bool
) -> dict[str, float]:
    from confluent_kafka import Producer

    held = HEADERS if headers else None
    made = keys(count)
    acknowledged = 0

    def delivered(error: object, message: object) -> None:
        nonlocal acknowledged
        assert error is None, error
        acknowledged += 1

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "batch.size": BATCH_BYTES,
            "linger.ms": 5,
            "queue.buffering.max.messages": count + 1,
        }
    )
    producer.produce(topic, b"warm", on_delivery=delivered)
    producer.flush()
    acknowledged = 0
    start = time.perf_counter()
    for key in made:
        producer.produce(topic, VALUE, key, headers=held, on_delivery=delivered)
        producer.poll(0)
    producer.flush()
    assert acknowledged == count
    return {"rate": count / (time.perf_counter() - start)}


def confluent_kafka_consume(
    bootstrap: str, topic: str, count: int, headers: bool
) -> dict[str, float]:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    seen = 0
    start = time.perf_counter()
    while seen < count:
        for message in consumer.consume(1000, 1.0):
            assert message.error() is None, message.error()
            message.value()
            if headers:
                message.headers()
            seen += 1
    rate = seen / (time.perf_counter() - start)
    consumer.close()
    return {"rate": rate}


def confluent_kafka_send(bootstrap: str, topic: str, count: int, headers: bool) -> dict[str, float]:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0})
    times = []
    for _ in range(count):
        start = time.perf_counter()
        producer.produce(topic, VALUE)
        producer.flush()
        times.append(time.perf_counter() - start)
    return {"rate": 1 / statistics.median(times)}


if __name__ == "__main__":
    main()
