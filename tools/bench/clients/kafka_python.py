"""The functions that the bench measures for kafka-python, with its idempotent default settings."""

from __future__ import annotations

import time
from itertools import islice
from typing import Any, Final

from kafka import KafkaConsumer, KafkaProducer

from .task import (
    BATCH_BYTES,
    CHUNK,
    SENDS_TO_WARM,
    VALUE,
    Meter,
    ReadMeter,
    Task,
    TimePerRecord,
    Works,
    chunks,
    middle_of_sends,
    records_of_chunk,
    warm_records,
)


def producer_of(task: Task, **settings: object) -> Any:
    return KafkaProducer(
        bootstrap_servers=task.bootstrap, acks="all", enable_idempotence=True, **settings
    )


def consumer_of(task: Task) -> Any:
    return KafkaConsumer(
        task.topic, bootstrap_servers=task.bootstrap, auto_offset_reset="earliest", group_id=None
    )


def produce(task: Task) -> TimePerRecord:
    """Calls `send` for each record, and `get` on each future of a chunk of records."""
    records = records_of_chunk(task)
    sizes = chunks(task.records)
    producer = producer_of(task, batch_size=BATCH_BYTES, linger_ms=5)
    producer.send(task.topic, b"warm").get(30)
    meter = Meter()
    for size in sizes:
        futures = [
            producer.send(task.topic, VALUE, key=key, headers=headers or [])
            for key, headers in (records if size == CHUNK else records[:size])
        ]
        for future in futures:
            future.get(60)
    measured = meter.stop(task.records)
    producer.close()
    return measured


def batches(task: Task) -> TimePerRecord:
    """Reads the lists of records that `poll` returns."""
    consumer = consumer_of(task)
    reading = ReadMeter(task.records)
    is_done = False
    while not is_done:
        came = 0
        for messages in consumer.poll(timeout_ms=1000).values():
            for message in messages:
                _ = message.key
                _ = message.value
            came += len(messages)
        is_done = reading.is_done(came)
    consumer.close()
    return reading.measured


def by_record(task: Task) -> TimePerRecord:
    consumer = consumer_of(task)
    warm = warm_records(task.records)
    for _ in islice(consumer, warm):
        pass
    left = task.records - warm
    headers = 0
    meter = Meter()
    for message in islice(consumer, left):
        _ = message.key
        _ = message.value
        if task.headers:
            headers += len(message.headers)
    measured = meter.stop(left)
    assert headers == (6 * left if task.headers else 0)
    consumer.close()
    return measured


def send(task: Task) -> TimePerRecord:
    """Sends one record at a time, and waits for each acknowledgement."""
    producer = producer_of(task)
    for _ in range(SENDS_TO_WARM):
        producer.send(task.topic, VALUE).get(30)
    times = []
    meter = Meter()
    for _ in range(task.records):
        start = time.perf_counter()
        producer.send(task.topic, VALUE).get(30)
        times.append(time.perf_counter() - start)
    measured = middle_of_sends(times, meter.stop(task.records))
    producer.close()
    return measured


def start_consumer(task: Task) -> TimePerRecord:
    meter = Meter()
    consumer = consumer_of(task)
    next(consumer)
    measured = meter.stop(1)
    consumer.close()
    return measured


def start_producer(task: Task) -> TimePerRecord:
    meter = Meter()
    producer = producer_of(task)
    producer.send(task.topic, VALUE).get(30)
    measured = meter.stop(1)
    producer.close()
    return measured


WORKS: Final[Works] = {
    "produce": produce,
    "batches": batches,
    "by record": by_record,
    "by record, headers": by_record,
    "send": send,
    "start, consume": start_consumer,
    "start, produce": start_producer,
}
