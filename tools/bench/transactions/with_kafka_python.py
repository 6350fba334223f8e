"""The transactions that the bench measures for kafka-python."""

from __future__ import annotations

from typing import Any, Final

from kafka import KafkaConsumer, KafkaProducer
from kafka.structs import OffsetAndMetadata

from .task import (
    BATCH_BYTES,
    PEER_BACKOFF_MS,
    VALUE,
    MeasuredTransactions,
    Task,
    TransactionMeter,
    Works,
)


def producer_of(task: Task) -> Any:
    producer = KafkaProducer(
        bootstrap_servers=task.bootstrap,
        transactional_id=task.transactional_id,
        acks="all",
        batch_size=BATCH_BYTES,
        linger_ms=task.linger_ms,
        retry_backoff_ms=PEER_BACKOFF_MS,
    )
    producer.init_transactions()
    return producer


def produce(task: Task) -> MeasuredTransactions:
    """Calls `send` for each record; the commit waits for the acknowledgements."""
    producer = producer_of(task)
    meter = TransactionMeter(task)
    for _ in range(task.total):
        producer.begin_transaction()
        for _ in range(task.size):
            producer.send(task.topic, VALUE)
        producer.commit_transaction()
        meter.end_transaction()
    measured = meter.stop()
    producer.close()
    return measured


def transform(task: Task) -> MeasuredTransactions:
    """Reads the source, sends each value reversed, and commits the offset after the last record."""
    consumer = KafkaConsumer(
        task.source,
        bootstrap_servers=task.bootstrap,
        group_id=task.topic,
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    producer = producer_of(task)
    while not consumer.poll(timeout_ms=1000, max_records=task.size):
        pass
    consumer.seek_to_beginning()
    meter = TransactionMeter(task)
    for _ in range(task.total):
        polled: dict[Any, Any] = {}
        while not polled:
            polled = consumer.poll(timeout_ms=1000, max_records=task.size)
        ((tp, records),) = polled.items()
        assert len(records) == task.size
        producer.begin_transaction()
        for record in records:
            producer.send(task.topic, record.value[::-1])
        offsets = {tp: OffsetAndMetadata(records[-1].offset + 1, "", -1)}
        producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
        producer.commit_transaction()
        meter.end_transaction()
    measured = meter.stop()
    producer.close()
    consumer.close()
    return measured


WORKS: Final[Works] = {"produce": produce, "transform": transform}
