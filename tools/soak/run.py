"""Runs clients on the embedded cluster while random faults of all kinds occur.

A producer and a consumer run as long as the test. Other clients, one after the other, create a
topic, write, read and close. Half of them, drawn at random, are cancelled if they still run after a
random time of at most 0.2 s. The records of the long-running clients are checked: the consumer must
read each record once and in order.
"""

from __future__ import annotations

import asyncio
import random
import struct
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import kproto
from kproto.broker import Close, Cluster, Delay

from .samples import Sample, measure

__all__ = ["Outcome", "soak"]

TOPIC = "soaked"
PARTITIONS = 6
CHUNK = 50
KEPT = 2_000
"""The records per partition that the brokers keep; the measured memory includes them."""

FAULT_EVERY_S = 0.3
LONGEST_AWAY_S = 1.0
SAMPLES = 400
_NUMBER = struct.Struct(">Q")

#: Short backoffs, so that clients recover soon after a fault and a run can have many faults.
SETTINGS = kproto.ClientSettings(
    connect_timeout_ms=1_000,
    request_timeout_ms=3_000,
    retry_backoff_ms=20,
    retry_backoff_max_ms=200,
    delivery_timeout_ms=60_000,
    api_timeout_ms=60_000,
)


#: At the end of a run, how many times within 30 seconds the test checks if all records are read.
LOOKS = 600


@dataclass
class Outcome:
    """The result of a run."""

    seconds: float
    seed: int
    samples: list[Sample] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    acknowledged: int = 0
    seen: int = 0
    wrong: list[str] = field(default_factory=list)  #: wrong records, and unhandled errors
    visits: int = 0
    cancelled: int = 0


async def soak(seconds: float, seed: int, progress: Callable[[float], None]) -> Outcome:
    """Runs clients under faults for `seconds` seconds, and returns the result."""
    outcome = Outcome(seconds, seed)
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: outcome.wrong.append(f"unseen: {context.get('message')} {context}")
    )
    async with Cluster(3, racks=("a", "b", "c")) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS, replication_factor=3)
        await _Run(outcome, cluster, progress).run()
    return outcome


class _Run:
    """The clients and faults of one soak test."""

    def __init__(
        self, outcome: Outcome, cluster: Cluster, progress: Callable[[float], None]
    ) -> None:
        self._outcome = outcome
        self._cluster = cluster
        self._progress = progress
        self._begun = time.monotonic()
        self._chance = random.Random(outcome.seed)
        self._is_over = False
        self._sent = [0] * PARTITIONS
        self._read = [0] * PARTITIONS

    async def run(self) -> None:
        async with (
            kproto.Client(self._cluster.bootstrap, SETTINGS) as writing,
            kproto.Client(self._cluster.bootstrap, SETTINGS) as reading,
        ):
            reader = asyncio.create_task(self._reads(reading))
            async with asyncio.TaskGroup() as tasks:
                works = [
                    tasks.create_task(work)
                    for work in (self._writes(writing), self._visits(), self._fails())
                ]
                await self._watch([reader, *works])
                self._is_over = True
            await self._heal()
            for _ in range(LOOKS):
                if self._read == self._sent or reader.done():
                    break
                await asyncio.sleep(30 / LOOKS)
            if self._read != self._sent:
                self._outcome.wrong.append(f"sent {self._sent}, and read {self._read}")
            reader.cancel()
            await asyncio.wait([reader])

    async def _watch(self, works: list[asyncio.Task[None]]) -> None:
        outcome = self._outcome
        for number in range(SAMPLES):
            due = self._begun + outcome.seconds * (number + 1) / SAMPLES
            await asyncio.sleep(due - time.monotonic())
            at = time.monotonic() - self._begun
            outcome.samples.append(measure(at, outcome.acknowledged))
            self._progress(at)
            for partition, read in enumerate(self._read):
                before = read - KEPT
                if before > 0:
                    self._cluster.delete_records(TOPIC, partition, before)
            for work in works:
                if work.done() and work.exception() is not None:
                    raise RuntimeError("a part of the run failed") from work.exception()

    # Work

    async def _writes(self, client: kproto.Client) -> None:
        outcome = self._outcome
        async with client.producer() as producer:
            while not self._is_over:
                partition = random.randrange(PARTITIONS)
                first = self._sent[partition]
                values = [
                    kproto.ProducerRecord(_NUMBER.pack(first + at), partition=partition)
                    for at in range(CHUNK)
                ]
                acks = await producer.send_many(TOPIC, values)
                self._sent[partition] += CHUNK
                outcome.acknowledged += len(acks)
                await asyncio.sleep(0.01)

    async def _reads(self, client: kproto.Client) -> None:
        outcome = self._outcome
        async for record in client.consumer(TOPIC, max_wait_ms=100):
            (number,) = _NUMBER.unpack(record.value or b"")
            if number != self._read[record.partition] and len(outcome.wrong) < 20:
                expected = self._read[record.partition]
                outcome.wrong.append(
                    f"{record.partition}: {number} came, but {expected} was expected"
                )
            self._read[record.partition] = number + 1
            outcome.seen += 1

    async def _visits(self) -> None:
        outcome = self._outcome
        while not self._is_over:
            outcome.visits += 1
            visit = asyncio.create_task(self._visit(f"visit-{outcome.visits}"))
            if random.random() < 0.5:
                await asyncio.wait([visit], timeout=random.random() * 0.2)
                outcome.cancelled += visit.cancel()
            await asyncio.wait([visit])
            if not visit.cancelled():
                error = visit.exception()
                if error is not None and not isinstance(error, kproto.KprotoError):
                    outcome.wrong.append(f"a visit ended with {error!r}")
            for name in [name for name in self._cluster.topics if name.startswith("visit-")]:
                self._cluster.delete_topic(name)

    async def _visit(self, name: str) -> None:
        async with kproto.Client(self._cluster.bootstrap, SETTINGS) as client:
            await client.create_topics(kproto.NewTopic(name, 2, 2))
            async with client.producer(linger_ms=2) as producer:
                for at in range(5):
                    await producer.enqueue(name, b"%d" % at)
                await producer.flush()
            found = [it async for it in client.consumer(name, stop_at_end=True, max_wait_ms=50)]
            if len(found) != 5:
                self._outcome.wrong.append(f"a visit wrote 5 records and read {len(found)}")
            await client.delete_topics(name)

    # Faults

    async def _fails(self) -> None:
        faults = {
            "a broker restarted": self._away,
            "a leader moved": self._move,
            "the controller moved": self._move_controller,
            "a connection closed": self._close,
            "a response lost": self._lose,
            "a response late": self._delay,
        }
        while not self._is_over:
            await asyncio.sleep(self._chance.random() * 2 * FAULT_EVERY_S)
            name = self._chance.choice(list(faults))
            await faults[name]()
            self._outcome.faults[name] += 1

    async def _away(self) -> None:
        node = self._chance.choice(self._cluster.nodes)
        await self._cluster.stop_broker(node)
        try:
            await asyncio.sleep(self._chance.random() * LONGEST_AWAY_S)
        finally:
            await self._cluster.start_broker(node)

    async def _move(self) -> None:
        partition = self._chance.randrange(PARTITIONS)
        self._cluster.move_leader(TOPIC, partition, self._chance.choice(self._cluster.nodes))

    async def _move_controller(self) -> None:
        self._cluster.move_controller(self._chance.choice(self._cluster.nodes))

    async def _close(self) -> None:
        self._once(lambda _: Close())

    async def _lose(self) -> None:
        self._once(lambda _: Close(after_handling=True))

    async def _delay(self) -> None:
        self._once(lambda _: Delay(self._chance.randrange(300)))

    def _once(self, fault: Callable[[Any], Any]) -> None:
        self._cluster.control(fault, times=1, node=self._chance.choice(self._cluster.nodes))

    async def _heal(self) -> None:
        for node in self._cluster.nodes:
            await self._cluster.start_broker(node)
