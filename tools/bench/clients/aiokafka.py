"""The functions that the bench measures for aiokafka, with idempotence."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from .task import (
    BATCH_BYTES,
    CHUNK,
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
    read_headers,
    read_records,
    records_of_chunk,
    times_beside,
)


@asynccontextmanager
async def producer_of(task: Task, **settings: object) -> AsyncIterator[Any]:
    producer = AIOKafkaProducer(
        bootstrap_servers=task.bootstrap, acks="all", enable_idempotence=True, **settings
    )
    await producer.start()
    try:
        yield producer
    finally:
        await producer.stop()


@asynccontextmanager
async def consumer_of(task: Task) -> AsyncIterator[Any]:
    consumer = AIOKafkaConsumer(
        task.topic, bootstrap_servers=task.bootstrap, auto_offset_reset="earliest"
    )
    await consumer.start()
    try:
        yield consumer
    finally:
        await consumer.stop()


async def produce(task: Task) -> TimePerRecord:
    """Calls `send` for each record, and awaits `gather` for each chunk of records."""
    records = records_of_chunk(task)
    sizes = chunks(task.records)
    async with producer_of(task, max_batch_size=BATCH_BYTES, linger_ms=5) as producer:
        await producer.send_and_wait(task.topic, b"warm")
        acknowledged = 0
        meter = Meter()
        for size in sizes:
            futures = [
                await producer.send(task.topic, VALUE, key=key, headers=headers)
                for key, headers in (records if size == CHUNK else records[:size])
            ]
            acknowledged += len(await asyncio.gather(*futures))
        measured = meter.stop(task.records)
        assert acknowledged == task.records
        return measured


async def batches(task: Task) -> TimePerRecord:
    async with consumer_of(task) as consumer:
        reading = ReadMeter(task.records)
        while True:
            came = 0
            for messages in (await consumer.getmany(timeout_ms=1000)).values():
                for message in messages:
                    _ = message.key
                    _ = message.value
                came += len(messages)
            if reading.is_done(came):
                return reading.measured


async def by_record(task: Task) -> TimePerRecord:
    async with consumer_of(task) as consumer:
        return await read_records(aiter(consumer), task.records)


async def by_record_headers(task: Task) -> TimePerRecord:
    async with consumer_of(task) as consumer:
        return await read_headers(aiter(consumer), task.records)


async def send(task: Task) -> TimePerRecord:
    """Sends one record at a time, and waits for each acknowledgement."""
    async with producer_of(task) as producer:
        for _ in range(SENDS_TO_WARM):
            await producer.send_and_wait(task.topic, VALUE)
        times = []
        meter = Meter()
        for _ in range(task.records):
            start = time.perf_counter()
            await producer.send_and_wait(task.topic, VALUE)
            times.append(time.perf_counter() - start)
        return middle_of_sends(times, meter.stop(task.records))


async def send_beside(task: Task) -> TimePerRecord:
    """Sends one record at a time beside `OTHER_SENDERS` coroutines that do the same."""
    async with producer_of(task) as producer:

        async def send(key: bytes) -> None:
            await producer.send_and_wait(task.topic, VALUE, key=key)

        return await times_beside(send, task.records)


async def concurrent(task: Task) -> TimePerRecord:
    """Sends all records of a round with one `gather`; a first round, the warm-up, is ignored."""
    made = keys(task.records)
    rounds = []
    async with producer_of(task) as producer:
        for _ in range(1 + ROUNDS):
            meter = Meter()
            acks = await asyncio.gather(
                *(producer.send_and_wait(task.topic, VALUE, key=key) for key in made)
            )
            rounds.append(meter.stop(task.records))
            assert len(acks) == task.records
    return middle_of_rounds(rounds[1:])


async def start_consumer(task: Task) -> TimePerRecord:
    meter = Meter()
    async with consumer_of(task) as consumer:
        await anext(consumer)
        return meter.stop(1)


async def start_producer(task: Task) -> TimePerRecord:
    meter = Meter()
    async with producer_of(task) as producer:
        await producer.send_and_wait(task.topic, VALUE)
        return meter.stop(1)


WORKS: Final[Works] = {
    "produce": produce,
    "batches": batches,
    "by record": by_record,
    "by record, headers": by_record_headers,
    "send": send,
    "send beside": send_beside,
    "concurrent": concurrent,
    "start, consume": start_consumer,
    "start, produce": start_producer,
}
