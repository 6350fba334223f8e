"""Runs the test on a real cluster: a producer and two readers, while nodes are killed.

Before the next kill, the test restarts the killed node and waits until all replicas are in sync,
because a record may be lost if two of three nodes are down at once.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import kproto
from tools.kafka import KafkaCluster

from .account import AcknowledgedOffsets, Sightings, record_value

__all__ = ["QUICK_SESSIONS", "Plan", "Result", "in_sync", "kill_test"]

TOPIC = "kept"

#: Broker settings: a dead broker is detected after three seconds instead of nine.
QUICK_SESSIONS = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}

LARGEST_CHUNK = 400
SENDING_S = 8.0
"""The seconds of sending per kill, about as long as a node is down."""

IN_SYNC_S = 120.0
READING_S = 120.0
"""The longest time, in seconds, that a reader may take after the last acknowledgement."""


@dataclass(frozen=True)
class Plan:
    """The plan of a run.

    The seed chooses batch sizes, pauses, and the partition whose leader each kill hits.
    """

    records: int = 1_000_000
    kills: int = 50
    partitions: int = 6
    seed: int = 1
    version: str = "4.4.0"


@dataclass
class Result:
    """The result of a run.

    `during` has the records that the concurrent reader saw; `after` has the records that the reader
    at the end saw.
    """

    plan: Plan
    account: AcknowledgedOffsets
    during: Sightings
    after: Sightings
    killed: list[int] = field(default_factory=list)
    longest_silence_s: float = 0.0
    took_s: float = 0.0
    notes: list[str] = field(default_factory=list)

    @property
    def lost(self) -> int:
        """Returns the number of acknowledged records that the reader after the test did not see."""
        return len(self.after.lost(self.account))

    @property
    def missed(self) -> int:
        """Returns the number of acknowledged records that the concurrent reader did not see."""
        return len(self.during.lost(self.account))

    @property
    def is_right(self) -> bool:
        """Returns True if all records are acknowledged, and each reader saw each once, in order.

        Each record must have the acknowledged offset, and the test must have no notes.
        """
        faults = [self.account.failed, self.lost, self.missed, len(self.notes)]
        for seen in (self.during, self.after):
            faults += [seen.doubled, seen.disordered, seen.misplaced]
        return not any(faults) and self.account.total == self.plan.records


Progress = Callable[[int, int], None]
"""Called with the number of acknowledged records, and the number of kills so far."""


async def kill_test(plan: Plan, cluster: KafkaCluster, progress: Progress) -> Result:
    """Runs the plan on a running cluster of three nodes."""
    account = AcknowledgedOffsets(plan.partitions)
    result = Result(plan, account, Sightings(plan.partitions), Sightings(plan.partitions))
    begun = time.monotonic()
    # Separate clients, so that each must find a new leader by itself.
    async with (
        kproto.Client(cluster.bootstrap) as client,
        kproto.Client(cluster.bootstrap) as watching,
        kproto.Client(cluster.bootstrap) as reader,
    ):
        await watching.create_topics(
            kproto.NewTopic(TOPIC, plan.partitions, 3, {"min.insync.replicas": "2"})
        )
        await in_sync(watching, TOPIC, plan.partitions)
        run = _Run(plan, cluster, client, watching, result, progress)
        reading = asyncio.create_task(run.read_meanwhile(reader))
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(run.send())
                tasks.create_task(run.kill())
            try:
                await asyncio.wait_for(reading, READING_S)
            except TimeoutError:
                result.notes.append(f"the reader had not seen all {READING_S:g} s after the end")
        finally:
            reading.cancel()
        await run.read_all(reader)
    result.took_s = time.monotonic() - begun
    return result


class _Run:
    """The producer, the kills and the reader of one kill test."""

    def __init__(
        self,
        plan: Plan,
        cluster: KafkaCluster,
        client: kproto.Client,
        watching: kproto.Client,
        result: Result,
        progress: Progress,
    ) -> None:
        self._plan = plan
        self._cluster = cluster
        self._client = client
        self._watching = watching
        self._result = result
        self._account = result.account
        self._progress = progress
        self._kills_begun = asyncio.Condition()
        self._last_ack = time.monotonic()
        self._is_sent = False

    # Sending

    async def send(self) -> None:
        """Sends all records: equal shares before the first kill, between kills, after the last."""
        share, rest = divmod(self._plan.records, self._plan.partitions)
        async with self._client.producer() as producer, asyncio.TaskGroup() as tasks:
            for partition in range(self._plan.partitions):
                tasks.create_task(self._send_to(producer, partition, share + (partition < rest)))
        self._is_sent = True

    async def _send_to(self, producer: kproto.Producer, partition: int, count: int) -> None:
        chance = random.Random(f"{self._plan.seed} sends to {partition}")
        windows = self._plan.kills + 1
        sequence = 0
        async with asyncio.TaskGroup() as acks:
            for window in range(1, windows + 1):
                await self._until_kill(window - 1)
                last = count * window // windows
                chunks = max(1, 2 * (last - sequence) // LARGEST_CHUNK)
                while sequence < last:
                    size = min(chance.randint(1, LARGEST_CHUNK), last - sequence)
                    deliveries = [
                        await producer.enqueue(
                            TOPIC,
                            record_value(partition, sequence + at, chance.randrange(100)),
                            partition=partition,
                        )
                        for at in range(size)
                    ]
                    acks.create_task(self._acknowledge(partition, sequence, deliveries))
                    sequence += size
                    await asyncio.sleep(chance.random() * 2 * SENDING_S / chunks)

    async def _acknowledge(
        self, partition: int, first: int, deliveries: list[kproto.Delivery]
    ) -> None:
        for sequence, delivery in enumerate(deliveries, first):
            try:
                ack = await delivery
            except kproto.KprotoError as error:
                self._account.failed += 1
                if len(self._result.notes) < 10:
                    self._result.notes.append(
                        f"{partition}:{sequence} was not acknowledged: {error}"
                    )
                continue
            self._account.acknowledged(partition, sequence, ack.offset)
        now = time.monotonic()
        silence, self._last_ack = now - self._last_ack, now
        self._result.longest_silence_s = max(self._result.longest_silence_s, silence)
        self._progress(self._account.total, len(self._result.killed))

    async def _until_kill(self, number: int) -> None:
        async with self._kills_begun:
            await self._kills_begun.wait_for(lambda: len(self._result.killed) >= number)

    # Killing

    async def kill(self) -> None:
        """Kills the leaders of random partitions, one after the other.

        After each kill, restarts the node, and waits until all replicas are in sync.
        """
        chance = random.Random(f"{self._plan.seed} kills")
        for _ in range(self._plan.kills):
            await asyncio.sleep(0.5 + chance.random())
            partition = chance.randrange(self._plan.partitions)
            number = (await self._watching.topic(TOPIC)).partitions[partition].leader
            node = self._cluster.node(number)
            await asyncio.to_thread(node.kill)
            async with self._kills_begun:
                self._result.killed.append(number)
                self._kills_begun.notify_all()
            await asyncio.sleep(chance.random() * 4)
            await asyncio.to_thread(node.start)
            await in_sync(self._watching, TOPIC, self._plan.partitions)

    # Reading

    async def read_meanwhile(self, client: kproto.Client) -> None:
        """Reads record by record until every acknowledged record has been seen."""
        seen = self._result.during
        async for record in client.consumer(TOPIC, max_wait_ms=200):
            seen.saw(record.partition, record.offset, record.value)
            if seen.seen == self._plan.records - self._account.failed and self._is_sent:
                break
            if seen.seen == self._plan.records:
                break

    async def read_all(self, client: kproto.Client) -> None:
        """Reads the topic to its end, like a consumer that starts late."""
        seen, account = self._result.after, self._account
        async for fetched in client.consumer(TOPIC, stop_at_end=True).record_lists():
            for record in fetched.records:
                seen.saw(record.partition, record.offset, record.value, account)


async def in_sync(client: kproto.Client, topic: str, partitions: int) -> None:
    """Waits until each partition of a topic has three in-sync replicas. Raises TimeoutError."""
    deadline = time.monotonic() + IN_SYNC_S
    while True:
        try:
            (info,) = await client.refresh([topic])
            in_sync = [len(partition.in_sync) for partition in info.partitions.values()]
        except kproto.KprotoError:
            in_sync = []
        if len(in_sync) == partitions and set(in_sync) == {3}:
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"the replicas were not in sync after {IN_SYNC_S:g} s: {in_sync}")
        await asyncio.sleep(0.2)
