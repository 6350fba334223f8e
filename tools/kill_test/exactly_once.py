"""Kills brokers and programs that consume, transform and produce in transactions.

A producer sends numbered records to the input topic. Programs of `transform` copy them to the
output topic in transactions. Each round kills the next target in `TARGETS`, or stalls it, and waits
until the cluster and the programs run again. At the end, a consumer with read_committed reads the
output: it must have each record once, in the order of its partition.
"""

from __future__ import annotations

import asyncio
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import kproto
from kproto.messages.find_coordinator_request import FindCoordinatorRequest
from kproto.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tools.kafka import KafkaCluster

from .account import AcknowledgedOffsets, Sightings, record_value
from .run import in_sync
from .transform import NEEDS_PRODUCER

__all__ = [
    "TARGETS",
    "TransactionPlan",
    "TransactionResult",
    "exactly_once_test",
    "transaction_facts",
]

INPUT: Final = "to-transform"
OUTPUT: Final = "transformed"
GROUP: Final = "transforming"

#: What a round kills by SIGKILL; `stalled program` is stopped by SIGSTOP for longer than the
#: transaction timeout, so that it continues as a zombie.
TARGETS: Final = (
    "leader",
    "transaction coordinator",
    "group coordinator",
    "program",
    "broker and program",
    "stalled program",
)

TRANSACTION_TIMEOUT_MS: Final = 10_000
#: How long a stalled program is stopped: longer than the timeout, after which the broker aborts its
#: transaction at its next check (transaction.abort.timed.out.transaction.cleanup.interval.ms).
STALL_S: Final = 14.0
READING_S: Final = 180.0
RECORDS_PER_S: Final = 1500
_CHUNK: Final = 50


@dataclass(frozen=True)
class TransactionPlan:
    """The plan of a run; the seed chooses times and victims."""

    rounds: int = 50
    programs: int = 2
    partitions: int = 12
    seed: int = 1
    version: str = "4.4.0"
    protocol: str = "classic"
    targets: tuple[str, ...] = TARGETS


@dataclass
class TransactionResult:
    """The result of a run. `seen` has the records that read_committed has in the output."""

    plan: TransactionPlan
    account: AcknowledgedOffsets
    seen: Sightings
    hits: list[str] = field(default_factory=list)
    exits: Counter[int] = field(default_factory=Counter)
    aborts: int = 0
    uncommitted: int = 0
    took_s: float = 0.0
    notes: list[str] = field(default_factory=list)

    @property
    def lost(self) -> int:
        """Returns the number of input records that the output does not have."""
        return len(self.seen.lost(self.account))

    @property
    def is_right(self) -> bool:
        """Returns True if the output has each input record once, and in order."""
        faults = [self.account.failed, self.lost, self.seen.doubled, self.seen.disordered]
        return not any(faults) and not self.notes and self.seen.seen == self.account.total


async def exactly_once_test(
    plan: TransactionPlan,
    cluster: KafkaCluster,
    progress: Callable[[int, int], None],
    folder: Path,
) -> TransactionResult:
    """Runs the plan on a running cluster; the programs log to `folder`."""
    result = TransactionResult(
        plan, AcknowledgedOffsets(plan.partitions), Sightings(plan.partitions)
    )
    begun = time.monotonic()
    async with (
        kproto.Client(cluster.bootstrap) as client,
        kproto.Client(cluster.bootstrap) as watching,
    ):
        for topic in (INPUT, OUTPUT):
            await watching.create_topics(
                kproto.NewTopic(topic, plan.partitions, 3, {"min.insync.replicas": "2"})
            )
            await in_sync(watching, topic, plan.partitions)
        run = _Run(plan, cluster, client, watching, result, progress, folder)
        try:
            async with asyncio.TaskGroup() as tasks:
                sending = tasks.create_task(run.send())
                for number in range(plan.programs):
                    tasks.create_task(run.keep_running(number))
                await run.rounds()
                run.is_sending = False
                await sending
                await run.until_transformed()
                run.is_over = True
                run.terminate()
        finally:
            run.kill_all()
        await run.read_output(watching)
    result.took_s = time.monotonic() - begun
    return result


class _Run:
    """The producer, the programs and the kills of one test."""

    def __init__(
        self,
        plan: TransactionPlan,
        cluster: KafkaCluster,
        client: kproto.Client,
        watching: kproto.Client,
        result: TransactionResult,
        progress: Callable[[int, int], None],
        folder: Path,
    ) -> None:
        self._plan = plan
        self._cluster = cluster
        self._client = client
        self._watching = watching
        self._result = result
        self._progress = progress
        self._folder = folder
        self._chance = random.Random(plan.seed)
        self._programs: dict[int, asyncio.subprocess.Process] = {}
        self.is_sending = True
        self.is_over = False

    async def send(self) -> None:
        """Sends numbered records to the input until the rounds are over."""
        account, chance = self._result.account, random.Random(f"{self._plan.seed} sends")
        sequences = [0] * self._plan.partitions
        async with self._client.producer() as producer, asyncio.TaskGroup() as acks:
            while self.is_sending:
                partition = chance.randrange(self._plan.partitions)
                deliveries = []
                first = sequences[partition]
                for _ in range(_CHUNK):
                    value = record_value(partition, sequences[partition], chance.randrange(60))
                    deliveries.append(await producer.enqueue(INPUT, value, partition=partition))
                    sequences[partition] += 1
                acks.create_task(self._acknowledge(account, partition, first, deliveries))
                await asyncio.sleep(_CHUNK / RECORDS_PER_S)

    async def _acknowledge(
        self,
        account: AcknowledgedOffsets,
        partition: int,
        first: int,
        deliveries: list[kproto.Delivery],
    ) -> None:
        for sequence, delivery in enumerate(deliveries, first):
            try:
                account.acknowledged(partition, sequence, (await delivery).offset)
            except kproto.KprotoError as error:
                account.failed += 1
                self._note(f"{partition}:{sequence} was not acknowledged: {error}")
        self._progress(account.total, len(self._result.hits))

    def _note(self, text: str) -> None:
        if len(self._result.notes) < 10:
            self._result.notes.append(text)

    # Programs

    async def keep_running(self, number: int) -> None:
        """Starts a program, and starts it again each time it ends."""
        while not self.is_over:
            log_path = self._folder / f"program-{number}.log"
            with log_path.open("ab") as log:
                program = await asyncio.create_subprocess_exec(
                    *self._command(number), stdout=log, stderr=log
                )
            self._programs[number] = program
            code = await program.wait()
            if code == 0:  # after `terminate`
                return
            self._result.exits[code] += 1
            if code not in (-signal.SIGKILL, NEEDS_PRODUCER):
                self._note(f"program {number} ended with {code}; its log is {log_path}")
                await asyncio.sleep(1)

    def _command(self, number: int) -> list[str]:
        return [
            *(sys.executable, "-m", "tools.kill_test.transform", self._cluster.bootstrap),
            *("--input", INPUT, "--output", OUTPUT, "--group", GROUP),
            *("--transactional-id", _transactional_id(number)),
            *("--transaction-timeout-ms", str(TRANSACTION_TIMEOUT_MS)),
            *("--protocol", self._plan.protocol),
        ]

    def _signal(self, number: int, sent: signal.Signals) -> None:
        program = self._programs.get(number)
        if program is not None and program.returncode is None:
            program.send_signal(sent)

    def terminate(self) -> None:
        for number in self._programs:
            self._signal(number, signal.SIGTERM)

    def kill_all(self) -> None:
        self.is_over = True
        for number in self._programs:
            self._signal(number, signal.SIGKILL)

    # Rounds

    async def rounds(self) -> None:
        """Hits one target after the other, and waits in between until all replicas are in sync."""
        targets = self._targets()
        for _ in range(self._plan.rounds):
            await asyncio.sleep(1 + 2 * self._chance.random())
            target = next(targets)
            await self._hit(target)
            self._result.hits.append(target)
            for topic in (INPUT, OUTPUT):
                await in_sync(self._watching, topic, self._plan.partitions)

    def _targets(self) -> Iterator[str]:
        while True:
            yield from self._plan.targets

    async def _hit(self, target: str) -> None:
        program = self._chance.randrange(self._plan.programs)
        if target == "program":
            self._signal(program, signal.SIGKILL)
            return
        if target == "stalled program":
            self._signal(program, signal.SIGSTOP)
            await asyncio.sleep(STALL_S)
            self._signal(program, signal.SIGCONT)
            return
        if target == "broker and program":
            self._signal(program, signal.SIGKILL)
        node = self._cluster.node(await self._node(target, program))
        await asyncio.to_thread(node.kill)
        await asyncio.sleep(3 * self._chance.random())
        await asyncio.to_thread(node.start)

    async def _node(self, target: str, program: int) -> int:
        """Returns the id of the broker that a round kills."""
        if target == "transaction coordinator":
            return await self._coordinator(1, _transactional_id(program))
        if target == "group coordinator":
            return await self._coordinator(0, GROUP)
        partition = self._chance.randrange(self._plan.partitions)
        return (await self._watching.topic(OUTPUT)).partitions[partition].leader

    async def _coordinator(self, kind: int, key: str) -> int:
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        while True:
            response: Any = await self._watching.request(request, version=4)
            found = response.coordinators[0]
            if not found.error_code:
                return int(found.node_id)
            await asyncio.sleep(0.2)

    # The end

    async def until_transformed(self) -> None:
        """Waits until the group has committed the end of each partition of the input."""
        deadline = time.monotonic() + READING_S
        while True:
            committed = await self._committed()
            behind = sum(
                self._result.account.of(partition) - committed.get(partition, 0)
                for partition in range(self._plan.partitions)
            )
            if not behind:
                return
            if time.monotonic() > deadline:
                self._note(f"{behind} records were not transformed {READING_S:g} s after the end")
                return
            await asyncio.sleep(0.5)

    async def _committed(self) -> dict[int, int]:
        """Returns the committed offsets of the group by partition; empty if there is an error."""
        request = OffsetFetchRequest(
            require_stable=True,
            groups=[
                OffsetFetchRequestGroup(
                    group_id=GROUP,
                    topics=[
                        OffsetFetchRequestTopics(
                            name=INPUT, partition_indexes=list(range(self._plan.partitions))
                        )
                    ],
                )
            ],
        )
        try:
            response: Any = await self._watching.request(request, version=8)
        except kproto.KprotoError:
            return {}
        return {
            found.partition_index: max(0, found.committed_offset)
            for topic in response.groups[0].topics
            for found in topic.partitions
        }

    async def read_output(self, client: kproto.Client) -> None:
        """Reads the output with read_committed, and counts the records that are not committed."""
        seen = self._result.seen
        reader = client.consumer(OUTPUT, stop_at_end=True, read_committed=True)
        async for fetched in reader.record_lists():
            for record in fetched.records:
                seen.saw(record.partition, record.offset, record.value)
        total = 0
        async for fetched in client.consumer(OUTPUT, stop_at_end=True).record_lists():
            total += len(fetched.records)
        self._result.uncommitted = total - seen.seen
        for path in sorted(self._folder.glob("program-*.log")):
            self._result.aborts += path.read_text(errors="replace").count("aborted: ")


def _transactional_id(number: int) -> str:
    return f"transform-{number}"


def transaction_facts(result: TransactionResult) -> dict[str, Any]:
    """Returns the result as JSON-compatible data."""
    return {
        "right": result.is_right,
        "version": result.plan.version,
        "group protocol": result.plan.protocol,
        "seed": result.plan.seed,
        "input records": result.account.total,
        "not acknowledged": result.account.failed,
        "rounds": dict(Counter(result.hits)),
        "exits of programs": {str(code): times for code, times in sorted(result.exits.items())},
        "aborted by the programs": result.aborts,
        "output records that are not committed": result.uncommitted,
        "lost": result.lost,
        "doubled": result.seen.doubled,
        "out of order": result.seen.disordered,
        "took, s": round(result.took_s),
        "notes": result.notes,
    }
