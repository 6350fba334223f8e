"""Provides topic `orders` on an embedded broker, and a log of the handler's calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import kproto
from kproto import Client, GroupConsumer, NewTopic, ProducerRecord, Record, Stop
from kproto.broker import Broker, BrokerSettings
from kproto.clock import SYSTEM_CLOCK, Clock

__all__ = ["DEAD", "SETTINGS", "TOPIC", "Orders", "orders", "read_all", "until"]

TOPIC = "orders"
DEAD = "orders.dead"

SETTINGS = kproto.ClientSettings(metadata_wait_ms=200, retry_backoff_ms=10)


@dataclass
class Orders:
    """The broker with topic `orders`, a client, and the calls of the handler in `handled`."""

    broker: Broker
    client: Client
    handled: list[tuple[int, int]] = field(default_factory=list)

    def consumer(self, topics: Any = TOPIC, **given: Any) -> GroupConsumer:
        settings: dict[str, Any] = {"group": "billing", "max_wait_ms": 20} | given
        consumer: GroupConsumer = self.client.consumer(topics, **settings)
        return consumer

    async def send(self, records: Iterable[ProducerRecord | bytes], topic: str = TOPIC) -> None:
        async with self.client.producer() as producer:
            await producer.send_many(topic, list(records))

    def note(self, record: Record) -> None:
        self.handled.append((record.partition, record.offset))

    def count(self, partition: int) -> int:
        return sum(1 for at, _ in self.handled if at == partition)

    async def committed(self, *partitions: int, topic: str = TOPIC) -> list[int | None]:
        """Returns the group's committed offset of each partition; None without a commit."""
        tps = [(topic, each) for each in partitions]
        async with self.client.consumer(tps, group="billing") as consumer:
            found = await consumer.committed(*tps)
        return [None if (each := found[tp]) is None else each.offset for tp in tps]


async def read_all(client: Client, topic: str) -> list[Record]:
    """Returns all records of a topic."""
    return [record async for record in client.consumer(topic, stop_at_end=True)]


@asynccontextmanager
async def orders(
    *counts: int,
    topics: Iterable[str] = (DEAD,),
    settings: kproto.ClientSettings = SETTINGS,
    broker_settings: BrokerSettings | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> AsyncIterator[Orders]:
    """Yields a topic with `counts[n]` records in partition `n`.

    The values are the offsets; the keys repeat `k0`, `k1`, `k2`.
    """
    async with (
        Broker(broker_settings) as broker,
        Client(broker.bootstrap, settings, clock=clock) as client,
    ):
        made = [NewTopic(TOPIC, partitions=len(counts)), *(NewTopic(each, 1) for each in topics)]
        await client.create_topics(*made)
        it = Orders(broker, client)
        for partition, count in enumerate(counts):
            await it.send(
                ProducerRecord(b"%d" % at, b"k%d" % (at % 3), partition=partition)
                for at in range(count)
            )
        async with asyncio.timeout(30):
            yield it


def until(it: Orders, count: int) -> Callable[[Record], Awaitable[None]]:
    """Returns a handler that notes each record, and ends `run` after `count` records."""

    async def handle(record: Record) -> None:
        it.note(record)
        if len(it.handled) == count:
            raise Stop(done=True)

    return handle
