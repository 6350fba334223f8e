"""The functions that the bench measures for confluent-kafka (librdkafka), with idempotence.

All measurements of reading use the lists from `consume`, the client's fastest method.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from .task import (
    BATCH_BYTES,
    CHUNK,
    OTHER_SENDERS,
    ROUNDS,
    SENDS_TO_WARM,
    VALUE,
    Meter,
    ReadMeter,
    Task,
    TimePerRecord,
    Works,
    chunks,
    keys,
    middle_of_rounds,
    middle_of_sends,
    records_of_chunk,
    warm_records,
)


class DeliveryCounter:
    """Counts acknowledged records."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, error: object, message: object) -> None:
        assert error is None, error
        self.count += 1


def producer_of(task: Task, **settings: object) -> Any:
    held = {"bootstrap.servers": task.bootstrap, "acks": "all", "enable.idempotence": True}
    return Producer(held | settings)


def for_throughput(task: Task) -> Any:
    """Returns a producer that has sent one record, and whose queue has capacity for all records."""
    producer = producer_of(
        task,
        **{
            "batch.size": BATCH_BYTES,
            "linger.ms": 5,
            "queue.buffering.max.messages": task.records + 1,
        },
    )
    producer.produce(task.topic, b"warm")
    assert producer.flush() == 0
    return producer


def produce(task: Task) -> TimePerRecord:
    """Calls `produce` and `poll(0)` for each record, and `flush` at the end."""
    records = records_of_chunk(task)
    sizes = chunks(task.records)
    delivered = DeliveryCounter()
    producer = for_throughput(task)
    meter = Meter()
    for size in sizes:
        for key, headers in records if size == CHUNK else records[:size]:
            producer.produce(task.topic, VALUE, key, headers=headers, on_delivery=delivered)
            producer.poll(0)
    producer.flush()
    measured = meter.stop(task.records)
    assert delivered.count == task.records
    return measured


def produce_batch(task: Task) -> TimePerRecord:
    """Calls `produce_batch` with lists of records; the method accepts no headers."""
    made = [
        {"value": VALUE} if key is None else {"value": VALUE, "key": key}
        for key, _ in records_of_chunk(task)
    ]
    lists = [made if size == CHUNK else made[:size] for size in chunks(task.records)]
    delivered = DeliveryCounter()
    producer = for_throughput(task)
    meter = Meter()
    for each in lists:
        assert producer.produce_batch(task.topic, each, on_delivery=delivered) == len(each)
        producer.poll(0)
    producer.flush()
    measured = meter.stop(task.records)
    assert delivered.count == task.records
    return measured


def consumer_of(task: Task, offset: int = 0) -> Any:
    """Returns a consumer of all partitions, which starts at `offset`.

    It looks up the log starts only if `offset` is OFFSET_BEGINNING.
    """
    settings = {
        "bootstrap.servers": task.bootstrap,
        "group.id": "bench",
        # By default, librdkafka stops fetching for a second when 100,000 messages wait. This caller
        # reads them in a tenth of a second.
        "fetch.queue.backoff.ms": 10,
    }
    consumer = Consumer(settings)
    partitions = consumer.list_topics(task.topic).topics[task.topic].partitions
    consumer.assign([TopicPartition(task.topic, partition, offset) for partition in partitions])
    return consumer


def consume(task: Task, read: Callable[[list[Any]], None]) -> TimePerRecord:
    consumer = consumer_of(task)
    reading = ReadMeter(task.records)
    is_done = False
    while not is_done:
        messages = consumer.consume(1000, 1.0)
        read(messages)
        is_done = reading.is_done(len(messages))
    consumer.close()
    return reading.measured


def batches(task: Task) -> TimePerRecord:
    def read(messages: list[Any]) -> None:
        for message in messages:
            assert message.error() is None, message.error()
            message.key()
            message.value()

    return consume(task, read)


def by_record_headers(task: Task) -> TimePerRecord:
    headers = 0

    def read(messages: list[Any]) -> None:
        nonlocal headers
        for message in messages:
            assert message.error() is None, message.error()
            message.key()
            message.value()
            headers += len(message.headers())

    measured = consume(task, read)
    assert headers >= 6 * (task.records - warm_records(task.records))
    return measured


def values(task: Task) -> TimePerRecord:
    def read(messages: list[Any]) -> None:
        for message in messages:
            assert message.error() is None, message.error()
            message.value()

    return consume(task, read)


def send(task: Task) -> TimePerRecord:
    """Sends one record at a time with `produce` and `flush`."""
    producer = producer_of(task, **{"linger.ms": 0})
    delivered = DeliveryCounter()
    for _ in range(SENDS_TO_WARM):
        producer.produce(task.topic, VALUE, on_delivery=delivered)
        producer.flush()
    times = []
    meter = Meter()
    for _ in range(task.records):
        start = time.perf_counter()
        producer.produce(task.topic, VALUE, on_delivery=delivered)
        producer.flush()
        times.append(time.perf_counter() - start)
    measured = middle_of_sends(times, meter.stop(task.records))
    assert delivered.count == SENDS_TO_WARM + task.records
    return measured


def send_beside(task: Task) -> TimePerRecord:
    """Keeps `OTHER_SENDERS` records in flight beside each measured record.

    The delivery callback of a record produces the next record of its sender.
    """
    producer = producer_of(task, **{"linger.ms": 0})
    made = keys(1 + OTHER_SENDERS)
    times: list[float] = []
    start = 0.0

    def send_other(key: bytes) -> None:
        def on_delivery(error: object, message: object) -> None:
            assert error is None, error
            if len(times) < SENDS_TO_WARM + task.records:
                send_other(key)

        producer.produce(task.topic, VALUE, key, on_delivery=on_delivery)

    def send_measured() -> None:
        nonlocal start
        start = time.perf_counter()
        producer.produce(task.topic, VALUE, made[0], on_delivery=on_measured)

    def on_measured(error: object, message: object) -> None:
        assert error is None, error
        times.append(time.perf_counter() - start)
        if len(times) < SENDS_TO_WARM + task.records:
            send_measured()

    for key in made[1:]:
        send_other(key)
    send_measured()
    while len(times) < SENDS_TO_WARM:
        producer.poll(1.0)
    meter = Meter()
    while len(times) < SENDS_TO_WARM + task.records:
        producer.poll(1.0)
    measured = meter.stop((1 + OTHER_SENDERS) * task.records)
    producer.flush()
    return middle_of_sends(times[SENDS_TO_WARM:], measured)


def concurrent(task: Task) -> TimePerRecord:
    """Produces all records of a round, then flushes; a first round, the warm-up, is ignored."""
    made = keys(task.records)
    producer = producer_of(task)
    rounds = []
    for _ in range(1 + ROUNDS):
        delivered = DeliveryCounter()
        meter = Meter()
        for key in made:
            producer.produce(task.topic, VALUE, key, on_delivery=delivered)
        producer.flush()
        rounds.append(meter.stop(task.records))
        assert delivered.count == task.records
    return middle_of_rounds(rounds[1:])


def start_consumer(task: Task, offset: int = 0) -> TimePerRecord:
    meter = Meter()
    consumer = consumer_of(task, offset)
    messages = consumer.consume(1, 30.0)
    measured = meter.stop(1)
    assert [message.error() for message in messages] == [None]
    consumer.close()
    return measured


def start_producer(task: Task) -> TimePerRecord:
    delivered = DeliveryCounter()
    meter = Meter()
    producer = producer_of(task, **{"linger.ms": 0})
    producer.produce(task.topic, VALUE, on_delivery=delivered)
    producer.flush()
    measured = meter.stop(1)
    assert delivered.count == 1
    return measured


WORKS: Final[Works] = {
    "produce": produce,
    "produce_batch": produce_batch,
    "batches": batches,
    "by record": batches,
    "by record, headers": by_record_headers,
    "values": values,
    "send": send,
    "send beside": send_beside,
    "concurrent": concurrent,
    "start, consume": start_consumer,
    "start at the earliest, consume": partial(start_consumer, offset=OFFSET_BEGINNING),
    "start, produce": start_producer,
}
