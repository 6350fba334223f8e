"""The transactions that the bench measures for confluent-kafka (librdkafka)."""

from __future__ import annotations

from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition

from .task import (
    BATCH_BYTES,
    PEER_BACKOFF_MS,
    VALUE,
    MeasuredTransactions,
    Task,
    TransactionMeter,
    Works,
)

POLL_S: Final = 30.0


def producer_of(task: Task) -> Any:
    producer = Producer(
        {
            "bootstrap.servers": task.bootstrap,
            "transactional.id": task.transactional_id,
            "acks": "all",
            "batch.size": BATCH_BYTES,
            "linger.ms": task.linger_ms,
            "retry.backoff.ms": PEER_BACKOFF_MS,
        }
    )
    producer.init_transactions()
    return producer


def produce(task: Task) -> MeasuredTransactions:
    """Calls `produce` for each record; the commit flushes them."""
    producer = producer_of(task)
    meter = TransactionMeter(task)
    for _ in range(task.total):
        producer.begin_transaction()
        for _ in range(task.size):
            producer.produce(task.topic, VALUE)
        producer.commit_transaction()
        meter.end_transaction()
    return meter.stop()


def transform(task: Task) -> MeasuredTransactions:
    """Reads the source, sends each value reversed, and commits the consumer's offsets."""
    consumer = Consumer(
        {
            "bootstrap.servers": task.bootstrap,
            "group.id": task.topic,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.queue.backoff.ms": 10,
        }
    )
    consumer.subscribe([task.source])
    producer = producer_of(task)
    assert consumer.consume(1, POLL_S)
    consumer.seek(TopicPartition(task.source, 0, 0))
    meter = TransactionMeter(task)
    for _ in range(task.total):
        messages = consumer.consume(task.size, POLL_S)
        assert [message.error() for message in messages] == [None] * task.size
        producer.begin_transaction()
        for message in messages:
            producer.produce(task.topic, message.value()[::-1])
        offsets = [TopicPartition(task.source, 0, messages[-1].offset() + 1)]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata())
        producer.commit_transaction()
        meter.end_transaction()
    measured = meter.stop()
    consumer.close()
    return measured


WORKS: Final[Works] = {"produce": produce, "transform": transform}
