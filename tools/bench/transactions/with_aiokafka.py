"""The transactions that the bench measures for aiokafka."""

from __future__ import annotations

from typing import Any, Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

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
    return AIOKafkaProducer(
        bootstrap_servers=task.bootstrap,
        transactional_id=task.transactional_id,
        acks="all",
        max_batch_size=BATCH_BYTES,
        linger_ms=task.linger_ms,
        retry_backoff_ms=PEER_BACKOFF_MS,
    )


async def produce(task: Task) -> MeasuredTransactions:
    """Calls `send` for each record; the commit waits for the acknowledgements."""
    async with producer_of(task) as producer:
        meter = TransactionMeter(task)
        for _ in range(task.total):
            async with producer.transaction():
                for _ in range(task.size):
                    await producer.send(task.topic, VALUE)
            meter.end_transaction()
        return meter.stop()


async def transform(task: Task) -> MeasuredTransactions:
    """Reads the source, sends each value reversed, and commits the offset after the last record."""
    consumer = AIOKafkaConsumer(
        task.source,
        bootstrap_servers=task.bootstrap,
        group_id=task.topic,
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    async with producer_of(task) as producer, consumer:
        while not await consumer.getmany(timeout_ms=1000, max_records=task.size):
            pass
        await consumer.seek_to_beginning()
        meter = TransactionMeter(task)
        for _ in range(task.total):
            polled: dict[Any, Any] = {}
            while not polled:
                polled = await consumer.getmany(timeout_ms=1000, max_records=task.size)
            ((tp, records),) = polled.items()
            assert len(records) == task.size
            async with producer.transaction():
                for record in records:
                    await producer.send(task.topic, record.value[::-1])
                offsets = {tp: records[-1].offset + 1}
                await producer.send_offsets_to_transaction(offsets, task.topic)
            meter.end_transaction()
        return meter.stop()


WORKS: Final[Works] = {"produce": produce, "transform": transform}
