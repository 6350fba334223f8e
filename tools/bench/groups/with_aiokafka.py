"""Runs the rounds of `tools.bench.groups.members` with aiokafka.

Each round measures the start of a member, and then a handover of partitions to another member.
The arguments are: BOOTSTRAP TOPIC GROUP HEARTBEAT_MS ROUNDS PROTOCOL.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.range import RangePartitionAssignor

bootstrap, topic, group = sys.argv[1:4]
heartbeat_ms, rounds = map(int, sys.argv[4:6])


def consumer_of(name: str) -> Any:
    return AIOKafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=name,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        heartbeat_interval_ms=heartbeat_ms,
        session_timeout_ms=6_000,
        partition_assignment_strategy=[RangePartitionAssignor],
    )


async def first(name: str) -> float:
    began = time.perf_counter()
    consumer = consumer_of(name)
    await consumer.start()
    await consumer.getone()
    took = time.perf_counter() - began
    await consumer.stop()
    return took


async def until_shared(one: Any, other: Any) -> None:
    """Waits until each consumer has one partition."""
    while True:
        if len(one.assignment()) == len(other.assignment()) == 1:
            return
        await asyncio.sleep(0.01)


async def handover(name: str) -> float:
    staying, going = consumer_of(name), consumer_of(name)
    await asyncio.gather(staying.start(), going.start())
    seen: asyncio.Queue[tuple[float, int]] = asyncio.Queue()

    async def read(consumer: Any, told: asyncio.Queue[tuple[float, int]] | None) -> None:
        async for record in consumer:
            if told is not None:
                told.put_nowait((time.perf_counter(), record.partition))

    tasks = [asyncio.create_task(read(staying, seen)), asyncio.create_task(read(going, None))]
    await until_shared(staying, going)
    await asyncio.sleep(0.5)
    (place,) = going.assignment()
    tasks[1].cancel()
    await asyncio.wait(tasks[1:])
    began = time.perf_counter()
    closing = asyncio.create_task(going.stop())
    while True:
        at, partition = await seen.get()
        if at > began and partition == place.partition:
            break
    await closing
    tasks[0].cancel()
    await asyncio.wait(tasks)
    await staying.stop()
    return at - began


async def main() -> None:
    found: dict[str, list[float]] = {"first": [], "handover": []}
    for number in range(rounds):
        found["first"].append(await first(f"{group}-first-{number}"))
        found["handover"].append(await handover(f"{group}-handover-{number}"))
    print(json.dumps(found))


asyncio.run(main())
