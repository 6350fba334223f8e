"""The transactions that the bench measures for kproto."""

from __future__ import annotations

from typing import Final

from kproto import Client, Producer

from .task import BATCH_BYTES, VALUE, MeasuredTransactions, Task, TransactionMeter, Works


def producer_of(client: Client, task: Task) -> Producer:
    return client.producer(
        transactional_id=task.transactional_id, batch_bytes=BATCH_BYTES, linger_ms=task.linger_ms
    )


async def produce(task: Task) -> MeasuredTransactions:
    """Calls `enqueue` for a single record, or `send_many` with a list of records."""
    values = [VALUE] * task.size
    async with Client(task.bootstrap) as client, producer_of(client, task) as producer:
        meter = TransactionMeter(task)
        for _ in range(task.total):
            async with producer.transaction():
                if task.size == 1:
                    await producer.enqueue(task.topic, VALUE)
                else:
                    await producer.send_many(task.topic, values)
            meter.end_transaction()
        return meter.stop()


async def transform(task: Task) -> MeasuredTransactions:
    """Reads the source, sends each value reversed, and commits the consumer's offsets."""
    async with Client(task.bootstrap) as client:
        consumer = client.consumer(
            task.source, group=task.topic, read_committed=True, auto_commit=False
        )
        async with producer_of(client, task) as producer, consumer:
            await consumer.poll(timeout_ms=30_000, max_records=task.size)
            await consumer.seek_to_committed()
            meter = TransactionMeter(task)
            for _ in range(task.total):
                polled = await consumer.poll(timeout_ms=30_000, max_records=task.size)
                (records,) = polled.values()
                assert len(records) == task.size
                async with producer.transaction() as transaction:
                    await producer.send_many(
                        task.topic, [(record.value or b"")[::-1] for record in records]
                    )
                    await transaction.commit_offsets(consumer)
                meter.end_transaction()
            return meter.stop()


WORKS: Final[Works] = {"produce": produce, "transform": transform}
