"""Runs aiokafka's walk: `BOOTSTRAP NAME`; topic and group have this name.

A walk is a scripted scenario that calls most APIs. Prints one line of JSON: how many records
aiokafka read with read_committed, and how many with read_uncommitted.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

bootstrap, name = sys.argv[1:3]
CODECS = (None, "gzip", "snappy", "lz4", "zstd")
HEADERS: list[tuple[str, bytes | None]] = [("h", b"value"), ("h", b""), ("null", None)]
WAIT_S = 30


async def send(producer: AIOKafkaProducer, count: int, partition: int = 0) -> None:
    sent = [
        await producer.send(
            name,
            b"value %d " % n * 20,
            key=b"key" if n % 2 else None,
            partition=partition,
            headers=HEADERS if n % 3 else None,
        )
        for n in range(count)
    ]
    for future in sent:
        await future


async def write(count: int, partition: int = 0, **settings: Any) -> None:
    settings = {"bootstrap_servers": bootstrap, "linger_ms": 100, **settings}
    async with AIOKafkaProducer(**settings) as producer:
        await send(producer, count, partition)


async def transact() -> None:
    settings = {"transactional_id": name, "compression_type": "lz4", "linger_ms": 100}
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, **settings) as producer:
        await producer.begin_transaction()
        await send(producer, 10)
        await producer.send_offsets_to_transaction({TopicPartition(name, 1): 1}, f"{name}-other")
        await producer.commit_transaction()
        await producer.begin_transaction()
        await send(producer, 10, 1)
        await producer.abort_transaction()


async def read(consumer: AIOKafkaConsumer, least: int) -> int:
    """Reads at least `least` records; then reads for 0.6 s to send heartbeats; returns the count.

    Returns a lower count than `least` if the records do not arrive within `WAIT_S` seconds.
    """
    count, until = 0, time.monotonic() + WAIT_S
    while time.monotonic() < until:
        came = sum(map(len, (await consumer.getmany(timeout_ms=200)).values()))
        if count < least <= count + came:
            until = time.monotonic() + 0.6
        count += came
    return count


async def look_at(admin: AIOKafkaAdminClient) -> None:
    resource = ConfigResource(ConfigResourceType.TOPIC, name)
    await admin.describe_configs([resource])
    changed = ConfigResource(ConfigResourceType.TOPIC, name, {"retention.ms": "100000"})
    await admin.alter_configs([changed])
    await admin.create_partitions({name: NewPartitions(3)})
    await admin.describe_cluster()
    await admin.describe_topics([name])
    await admin.list_topics()
    await admin.list_consumer_groups()
    await admin.describe_consumer_groups([name])
    await admin.list_consumer_group_offsets(name)
    await admin.delete_records({TopicPartition(name, 0): RecordsToDelete(2)})


async def main() -> dict[str, int]:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    await admin.create_topics([NewTopic(name, 2, 1)])
    for number, codec in enumerate(CODECS):
        await write(20, number % 2, compression_type=codec)
    await write(5, acks=0)
    await write(20, enable_idempotence=True)
    settings = {
        "bootstrap_servers": bootstrap,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
    }
    group = AIOKafkaConsumer(
        name,
        group_id=name,
        isolation_level="read_committed",
        session_timeout_ms=30_000,
        heartbeat_interval_ms=200,
        **settings,
    )
    await group.start()
    committed = await read(group, 125)
    await group.commit()
    await transact()
    committed += await read(group, 10)
    await group.commit()
    await group.committed(TopicPartition(name, 0))
    await group.stop()
    everything = AIOKafkaConsumer(**settings)
    await everything.start()
    partitions = [TopicPartition(name, n) for n in (0, 1)]
    everything.assign(partitions)
    await everything.beginning_offsets(partitions)
    await everything.end_offsets(partitions)
    await everything.offsets_for_times(dict.fromkeys(partitions, 1))
    every = await read(everything, 145)
    await everything.stop()
    await look_at(admin)
    await admin.delete_topics([name])
    await admin.close()
    return {"committed": committed, "every": every}


print(json.dumps(asyncio.run(main())))
