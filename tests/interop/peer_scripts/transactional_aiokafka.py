"""Runs aiokafka's transactional producer: `BOOTSTRAP COMMAND ...`; prints one line of JSON.

The module `transactional_peers` describes the commands, which are the same for all clients.
aiokafka sends the offsets of a group without a member id, so a coordinator cannot refuse offsets of
a member that has left. The output therefore lacks the result "left member".
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

bootstrap, command, *rest = sys.argv[1:]
PARTITIONS = range(4)


def producer_of(transactional_id: str) -> AIOKafkaProducer:
    return AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=transactional_id)


def consumer_of(group: str | None, *topics: str) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        *topics,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
    )


async def send(producer: AIOKafkaProducer, topic: str, value: str) -> None:
    for partition in PARTITIONS:
        await producer.send(topic, value.encode(), partition=partition)
    await producer.flush()


async def scenes(topic: str, source: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    producer = producer_of(topic)
    await producer.start()
    await producer.begin_transaction()
    await send(producer, topic, "committed")
    await producer.commit_transaction()
    await producer.begin_transaction()
    await send(producer, topic, "aborted")
    await producer.abort_transaction()
    consumer = consumer_of(topic, source)
    await consumer.start()
    await consumer.getone()
    partition = TopicPartition(source, 0)
    offsets = []
    for value, offset, is_commit in (("with offsets", 5, True), ("aborted offsets", 9, False)):
        await producer.begin_transaction()
        await send(producer, topic, value)
        await producer.send_offsets_to_transaction({partition: offset}, topic)
        await (producer.commit_transaction() if is_commit else producer.abort_transaction())
        offsets.append(await consumer.committed(partition))
    await producer.begin_transaction()
    await producer.send_offsets_to_transaction({partition: 7}, topic)
    await producer.commit_transaction()
    offsets.append(await consumer.committed(partition))
    await producer.begin_transaction()
    await producer.commit_transaction()
    await consumer.stop()
    await producer.begin_transaction()
    await send(producer, topic, "zombie")
    second = producer_of(topic)
    await second.start()
    await second.begin_transaction()
    await send(second, topic, "second")
    try:
        await producer.commit_transaction()
    except KafkaError as error:
        found["zombie"] = type(error).__name__
    await second.commit_transaction()
    await second.stop()
    await producer.stop()
    return {"offsets": offsets, **found}


async def transform(source: str, target: str, count: int) -> dict[str, int]:
    producer = producer_of(target)
    await producer.start()
    consumer = consumer_of(target, source)
    await consumer.start()
    done = commits = aborts = 0
    while done < count:
        polled = await consumer.getmany(timeout_ms=500, max_records=200)
        if not polled:
            continue
        await producer.begin_transaction()
        for partition, records in polled.items():
            for record in records:
                await producer.send(target, record.value + b"!", partition=partition.partition)
        offsets = {partition: records[-1].offset + 1 for partition, records in polled.items()}
        await producer.send_offsets_to_transaction(offsets, target)
        if (commits + aborts) % 3 == 2:
            await producer.abort_transaction()
            aborts += 1
            for partition in consumer.assignment():
                consumer.seek(partition, await consumer.committed(partition) or 0)
        else:
            await producer.commit_transaction()
            commits += 1
            done += sum(map(len, polled.values()))
    await consumer.stop()
    await producer.stop()
    return {"commits": commits, "aborts": aborts}


async def read(*topics: str) -> dict[str, list[tuple[int, int, str]]]:
    result = {}
    for topic in topics:
        consumer = consumer_of(None, topic)
        await consumer.start()
        partitions = [TopicPartition(topic, it) for it in consumer.partitions_for_topic(topic)]
        await consumer.seek_to_beginning(*partitions)
        ends = await consumer.end_offsets(partitions)
        found = []
        while any([await consumer.position(it) < end for it, end in ends.items()]):
            for records in (await consumer.getmany(timeout_ms=1_000)).values():
                found += [(it.partition, it.offset, it.value.decode()) for it in records]
        await consumer.stop()
        result[topic] = sorted(found)
    return result


async def init() -> str:
    producer = producer_of("init")
    try:
        await producer.start()
    except KafkaError as error:
        return type(error).__name__
    finally:
        await producer.stop()
    return ""


commands: dict[str, Any] = {
    "scenes": lambda: scenes(*rest),
    "transform": lambda: transform(rest[0], rest[1], int(rest[2])),
    "read": lambda: read(*rest),
    "init": init,
}
print(json.dumps(asyncio.run(commands[command]())))
