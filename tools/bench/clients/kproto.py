"""The functions that the bench measures for kproto, with kproto's default settings."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from kproto import Client, Consumer, ProducerRecord

from .task import (
    BATCH_BYTES,
    CHUNK,
    ROUNDS,
    SENDS_TO_WARM,
    VALUE,
    Meter,
    ReadMeter,
    SkippedError,
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


async def produce(task: Task) -> TimePerRecord:
    """Calls `send_many` with lists of `CHUNK` records."""
    values: list[bytes | ProducerRecord | None] = [VALUE] * CHUNK
    if task.keyed or task.headers:
        values = [
            ProducerRecord(VALUE, key, headers or ()) for key, headers in records_of_chunk(task)
        ]
    lists = [values if size == CHUNK else values[:size] for size in chunks(task.records)]
    async with (
        Client(task.bootstrap) as client,
        client.producer(batch_bytes=BATCH_BYTES) as producer,
    ):
        await producer.send(task.topic, b"warm")
        acknowledged = 0
        meter = Meter()
        for each in lists:
            acknowledged += len(await producer.send_many(task.topic, each))
        measured = meter.stop(task.records)
        assert acknowledged == task.records
        return measured


async def batches(task: Task) -> TimePerRecord:
    async with Client(task.bootstrap) as client:
        reading = ReadMeter(task.records)
        async for fetched in client.consumer(task.topic).record_lists():
            for record in fetched.records:
                _ = record.key
                _ = record.value
            if reading.is_done(len(fetched.records)):
                break
        return reading.measured


async def by_record(task: Task) -> TimePerRecord:
    async with Client(task.bootstrap) as client:
        records = aiter(client.consumer(task.topic))
        return await read_records(records, task.records)


async def by_record_headers(task: Task) -> TimePerRecord:
    async with Client(task.bootstrap) as client:
        records = aiter(client.consumer(task.topic))
        return await read_headers(records, task.records)


async def values(task: Task) -> TimePerRecord:
    """Reads lists of values; the consumer creates no `Record` objects."""
    async with Client(task.bootstrap) as client:
        reading = ReadMeter(task.records)
        async for fetched in iteration(client.consumer(task.topic), "values"):
            for value in fetched.values:
                _ = value
            if reading.is_done(len(fetched.values)):
                break
        return reading.measured


async def raw(task: Task) -> TimePerRecord:
    """Reads batches in the brokers' format, without decoding records."""
    async with Client(task.bootstrap) as client:
        reading = ReadMeter(task.records)
        async for fetched in iteration(client.consumer(task.topic), "raw_batches"):
            _ = fetched.batch.raw
            if reading.is_done(fetched.batch.record_count):
                break
        return reading.measured


def iteration(consumer: Consumer, name: str) -> Any:
    """Calls the consumer's method `name`. Raises SkippedError if there is no such method."""
    method = getattr(consumer, name, None)
    if method is None:
        raise SkippedError(f"Consumer has no {name}()")
    return method()


async def send(task: Task) -> TimePerRecord:
    """Sends one record at a time, and waits for each acknowledgement."""
    async with Client(task.bootstrap) as client, client.producer() as producer:
        for _ in range(SENDS_TO_WARM):
            await producer.send(task.topic, VALUE)
        times = []
        meter = Meter()
        for _ in range(task.records):
            start = time.perf_counter()
            await producer.send(task.topic, VALUE)
            times.append(time.perf_counter() - start)
        return middle_of_sends(times, meter.stop(task.records))


async def send_beside(task: Task) -> TimePerRecord:
    """Sends one record at a time beside `OTHER_SENDERS` coroutines that do the same."""
    async with Client(task.bootstrap) as client, client.producer() as producer:

        async def send(key: bytes) -> None:
            await producer.send(task.topic, VALUE, key=key)

        return await times_beside(send, task.records)


async def concurrent(task: Task) -> TimePerRecord:
    """Sends all records of a round with one `gather`; a first round, the warm-up, is ignored."""
    made = keys(task.records)
    rounds = []
    async with Client(task.bootstrap) as client, client.producer() as producer:
        for _ in range(1 + ROUNDS):
            meter = Meter()
            acks = await asyncio.gather(
                *(producer.send(task.topic, VALUE, key=key) for key in made)
            )
            rounds.append(meter.stop(task.records))
            assert len(acks) == task.records
    return middle_of_rounds(rounds[1:])


async def futures(task: Task) -> TimePerRecord:
    """Awaits a future in each of many coroutines: asyncio's part of `concurrent`.

    The program sends the records of a round before each round, and the result has only the rounds
    of futures. In each round a full garbage collection visits all objects of the program, in some
    rounds two: rounds of both kinds must share the second ones, as in a program that does both.
    """
    loop = asyncio.get_running_loop()
    made = keys(task.records)
    rounds = []

    async def wait(waiting: list[asyncio.Future[None]]) -> None:
        future = loop.create_future()
        waiting.append(future)
        await future

    async with Client(task.bootstrap) as client, client.producer() as producer:
        for _ in range(1 + ROUNDS):
            await asyncio.gather(*(producer.send(task.topic, VALUE, key=key) for key in made))
            waiting: list[asyncio.Future[None]] = []
            meter = Meter()
            gathered = asyncio.gather(*(wait(waiting) for _ in range(task.records)))
            await asyncio.sleep(0)
            for future in waiting:
                future.set_result(None)
            await gathered
            rounds.append(meter.stop(task.records))
    return middle_of_rounds(rounds[1:])


async def start_consumer(task: Task) -> TimePerRecord:
    meter = Meter()
    async with Client(task.bootstrap) as client:
        await anext(aiter(client.consumer(task.topic)))
        return meter.stop(1)


async def start_consumer_at_0(task: Task) -> TimePerRecord:
    """Starts like `start_consumer`, but at given offsets: without a look-up of the log starts."""
    meter = Meter()
    async with Client(task.bootstrap) as client:
        partitions = (await client.topic(task.topic)).partitions
        start = dict.fromkeys(((task.topic, partition) for partition in partitions), 0)
        await anext(aiter(client.consumer(task.topic, start=start)))
        return meter.stop(1)


async def start_producer(task: Task) -> TimePerRecord:
    meter = Meter()
    async with Client(task.bootstrap) as client, client.producer() as producer:
        await producer.send(task.topic, VALUE)
        return meter.stop(1)


WORKS: Final[Works] = {
    "produce": produce,
    "batches": batches,
    "by record": by_record,
    "by record, headers": by_record_headers,
    "values": values,
    "raw": raw,
    "send": send,
    "send beside": send_beside,
    "concurrent": concurrent,
    "futures": futures,
    "start, consume": start_consumer,
    "start at offset 0, consume": start_consumer_at_0,
    "start, produce": start_producer,
}
