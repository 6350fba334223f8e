"""The producer and the consumer of kproto for `tools.bench.clients.memory`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import kproto
import kproto.client.client
from tools.bench.clients.memory import ROUNDS, SETTLE_S, VALUE, MemoryTask, rss_mb

__all__ = ["WORKS"]


async def _produce(task: MemoryTask) -> float:
    tps = task.tps()
    async with kproto.Client(task.bootstrap) as client, client.producer() as producer:
        for _ in range(ROUNDS):
            for topic, partition in tps:
                await producer.enqueue(topic, VALUE, partition=partition)
            await producer.flush()
        await asyncio.sleep(SETTLE_S)
        return rss_mb()


async def _consume(task: MemoryTask) -> float:
    tps = task.tps()
    async with kproto.Client(task.bootstrap) as client, client.consumer(tps) as consumer:
        left = set(tps)
        records = aiter(consumer)
        while left:
            record = await anext(records)
            left.discard((record.topic, record.partition))

        async def read() -> None:
            async for _ in records:
                pass

        reading = asyncio.create_task(read())
        await asyncio.sleep(SETTLE_S)
        steady = rss_mb()
        reading.cancel()
        await asyncio.wait([reading])
        return steady


WORKS: Final[dict[str, Callable[[MemoryTask], float]]] = {
    "produce": lambda task: asyncio.run(_produce(task)),
    "consume": lambda task: asyncio.run(_consume(task)),
}
