"""Runs transactional members under injected faults; records the outcomes that their calls report.

A member polls records of `in`. In one transaction it sends an output per record to `out`, and
commits the offsets. A sender only sends records, to `t`, in transactions. A second member and a
second sender may use the transactional id of the first. Transactions fail, take longer than their
timeout, are cancelled, and are aborted by other tasks.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from kproto import (
    Client,
    ConfigurationError,
    FatalTransactionError,
    GroupConsumer,
    KprotoError,
    Producer,
    ProducerRecord,
    Transaction,
)
from kproto.broker import Cluster
from tests.support.virtual_time import LoopClock
from tests.unit.client.producer.transactions.fault_schedule import (
    FAULTY,
    PARTITIONS,
    SETTINGS,
    Attempt,
    InjectedFaults,
    Outcome,
    Report,
    Schedule,
)

__all__ = ["run_members"]

#: The longest time of a schedule's faults, in seconds of the loop.
LONGEST_S: Final = 16.0


class _Member:
    """Runs transactions with `transactional_id` until `stop` is set, or the time is over."""

    def __init__(
        self, name: str, transactional_id: str, schedule: Schedule, bootstrap: str, report: Report
    ) -> None:
        self.name = name
        self._id = transactional_id
        self._schedule = schedule
        self._chance = random.Random(f"{schedule.seed} {name}")
        self._report = report
        self._count = 0
        self._timeout_ms = self._chance.choice([600, 2_000, 10_000])
        self.client = Client(bootstrap, replace(SETTINGS, client_id=FAULTY), clock=LoopClock())
        report.transactional_ids.add(transactional_id)

    def _producer(self) -> Producer:
        return self.client.producer(
            transactional_id=self._id,
            transaction_timeout_ms=self._timeout_ms,
            batch_bytes=self._chance.choice([120, 1_000]),
            linger_ms=self._chance.choice([0, 0, 5]),
        )

    async def send_until(self, until: float) -> None:
        """Runs transactions without inputs."""
        producer = self._producer()
        async with self.client:
            while asyncio.get_running_loop().time() < until:
                values: dict[int, list[int]] = {}
                for _ in range(self._chance.randrange(8)):
                    values.setdefault(self._chance.randrange(PARTITIONS), []).append(0)
                _, continues = await self._attempt(producer, "t", values, None)
                if not continues:
                    await _closed(producer)
                    producer = self._producer()
                await asyncio.sleep(self._chance.uniform(0, 2))
            await _closed(producer)

    async def transform_until(self, until: float) -> None:
        """Runs consume-transform-produce in a group."""
        async with self.client:
            while asyncio.get_running_loop().time() < until:
                try:
                    await self._transform(until)
                except ConfigurationError:
                    raise
                except KprotoError:
                    self._report.faults["member started again"] += 1
                await asyncio.sleep(self._chance.choice([0.1, 2.0]))

    def _consumer(self) -> GroupConsumer:
        timeouts: dict[str, Any] = {}
        if self._schedule.protocol == "classic":
            timeouts = {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 500}
        return self.client.consumer(
            "in",
            group="g",
            group_protocol=self._schedule.protocol,
            read_committed=True,
            auto_commit=False,
            leave_timeout_ms=500,
            **timeouts,
        )

    async def _transform(self, until: float) -> None:
        producer = self._producer()
        leaves = self._chance.random() < 0.3
        try:
            async with self._consumer() as consumer:
                while asyncio.get_running_loop().time() < until:
                    polled = await consumer.poll(
                        timeout_ms=200, max_records=self._chance.randrange(1, 6)
                    )
                    await asyncio.sleep(self._chance.choice([0, 0.1, 0.5]))
                    if not polled:
                        continue
                    inputs = {
                        partition: [record.offset for record in records]
                        for (_, partition), records in polled.items()
                    }
                    outcome, continues = await self._attempt(producer, "out", inputs, consumer)
                    if not continues:
                        await _closed(producer)
                        producer = self._producer()
                    if outcome != "committed" or self._chance.random() < 0.1:
                        await consumer.seek_to_committed()
                    if leaves and self._chance.random() < 0.3:
                        return
        finally:
            await _closed(producer)

    async def _attempt(
        self,
        producer: Producer,
        topic: str,
        inputs: dict[int, list[int]],
        consumer: GroupConsumer | None,
    ) -> tuple[Outcome, bool]:
        """Runs a transaction; returns its outcome, and whether the producer can be used again."""
        chance = self._chance
        self._count += 1
        attempt = Attempt(f"{self.name}.{self._count}", topic)
        self._report.attempts.append(attempt)
        aborted: list[Outcome] = []
        task = asyncio.create_task(self._block(producer, attempt, inputs, consumer, aborted))
        if chance.random() < 0.12:
            self._report.faults["task cancelled"] += 1
            await asyncio.wait([task], timeout=chance.choice([0, 0.002, 0.02, 0.2, 1.0]))
            while not task.done():
                task.cancel()
                await asyncio.wait([task], timeout=chance.choice([0.0, 0.01, 2.0]))
        try:
            await task
        except asyncio.CancelledError:
            attempt.outcome = "unknown"
            is_usable = True
        except FatalTransactionError as error:
            attempt.outcome = _outcome_of(error)
            is_usable = False
        except (_ProgramError, KprotoError):
            attempt.outcome = "aborted"
            is_usable = True
        else:
            attempt.outcome = "committed"
            is_usable = True
        if aborted:
            attempt.outcome = aborted[0]
        self._report.faults[f"transaction {attempt.outcome}"] += 1
        return attempt.outcome, is_usable

    async def _block(
        self,
        producer: Producer,
        attempt: Attempt,
        inputs: dict[int, list[int]],
        consumer: GroupConsumer | None,
        aborted: list[Outcome],
    ) -> None:
        chance = self._chance
        aborter: asyncio.Task[None] | None = None
        try:
            async with producer.transaction() as transaction:
                if chance.random() < 0.08:
                    seconds = chance.choice([0, 0.001, 0.01, 0.1])
                    aborter = asyncio.create_task(self._abort(transaction, seconds, aborted))
                early = chance.random() < 0.3
                if consumer is not None and early:
                    await transaction.commit_offsets(consumer)
                await self._send(producer, attempt, inputs)
                if consumer is not None and not early:
                    await transaction.commit_offsets(consumer)
                drawn = chance.random()
                if drawn < 0.06:
                    self._report.faults["program failed"] += 1
                    raise _ProgramError
                if drawn < 0.10:
                    self._report.faults["program slow"] += 1
                    await asyncio.sleep(chance.choice([0.7, 3.0, 11.0]))
        finally:
            if aborter is not None:
                await _ended(aborter)

    async def _abort(
        self, transaction: Transaction, seconds: float, aborted: list[Outcome]
    ) -> None:
        await asyncio.sleep(seconds)
        self._report.faults["abort() of another task"] += 1
        try:
            await transaction.abort()
            aborted.append("aborted")
        except ConfigurationError:
            pass  # it is committed, or EndTxn is sent
        except FatalTransactionError as error:
            aborted.append(_outcome_of(error))

    async def _send(
        self, producer: Producer, attempt: Attempt, inputs: dict[int, list[int]]
    ) -> None:
        chance = self._chance
        for partition, offsets in inputs.items():
            attempt.values[partition] = [
                b"%s %d %d %d" % (attempt.label.encode(), partition, at, offset)
                for at, offset in enumerate(offsets)
            ]
        records = [
            ProducerRecord(value, partition=partition)
            for partition, values in attempt.values.items()
            for value in values
        ]
        way = chance.randrange(3)
        if way == 0:
            await producer.send_many(attempt.topic, records)
        elif way == 1:
            await asyncio.gather(
                *(
                    producer.send(attempt.topic, each.value, partition=each.partition)
                    for each in records
                )
            )
        else:
            for each in records:
                await producer.enqueue(attempt.topic, each.value, partition=each.partition)
                if chance.random() < 0.2:
                    await asyncio.sleep(chance.choice([0, 0.01]))


class _ProgramError(Exception):
    """Raised in a transaction, which aborts it."""


def _outcome_of(error: FatalTransactionError) -> Outcome:
    return "unknown" if "unknown whether" in str(error) else "aborted"


async def _closed(producer: Producer) -> None:
    with suppress(KprotoError):
        await producer.close()


async def _ended(task: asyncio.Task[None]) -> None:
    """Waits until `task` has ended, even if the wait is cancelled."""
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task])


async def run_members(schedule: Schedule, cluster: Cluster) -> Report:
    """Runs the members of a schedule; returns once they have ended, and no fault is left."""
    report = Report()
    chance = schedule.chance
    faults = InjectedFaults(schedule, cluster, report)
    loop = asyncio.get_running_loop()
    disturbing = asyncio.create_task(faults.disturb())
    end = loop.time() + LONGEST_S * chance.uniform(0.2, 1)

    def member(name: str, transactional_id: str) -> _Member:
        return _Member(name, transactional_id, schedule, cluster.bootstrap, report)

    async def later(seconds: float, work: Coroutine[Any, Any, None]) -> None:
        await asyncio.sleep(seconds)
        await work

    other_id = "a" if schedule.has_zombie else "b"
    work = [
        member("a", "a").transform_until(end),
        later(chance.uniform(0, 3), member("b", other_id).transform_until(end - 2)),
        member("s", "s").send_until(end),
    ]
    if schedule.has_zombie:
        work.append(later(chance.uniform(0, 3), member("z", "s").send_until(end)))
    await asyncio.gather(*work)
    disturbing.cancel()
    await asyncio.wait([disturbing])
    await faults.stop()
    return report
