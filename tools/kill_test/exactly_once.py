"""Kills brokers, and kills programs that consume, transform and produce in transactions.

A producer sends numbered records to the input topic. Programs of `transform` copy them to the
output topic in transactions. Each round kills the next target in `TARGETS`, or stalls it, and waits
until the cluster and the programs run again. At the end, a consumer with read_committed reads the
output. The output must have each record once, and each of its partitions must be in order.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import kproto
from kproto.messages.describe_transactions_request import DescribeTransactionsRequest
from kproto.messages.find_coordinator_request import FindCoordinatorRequest
from kproto.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tools.kafka import KafkaCluster, KafkaJarsError, KafkaStartError
from tools.setup.java import JavaNotFoundError
from tools.setup.parts import write_part

from .account import AcknowledgedOffsets, Sightings, record_value
from .page import PAGE
from .run import QUICK_SESSIONS, in_sync
from .transform import NEEDS_PRODUCER, WAYS

__all__ = [
    "TARGETS",
    "TransactionPlan",
    "TransactionResult",
    "exactly_once_test",
    "transaction_facts",
    "transaction_table",
]

#: Maps the value of `--way`, see `transform.WAYS`, to the part of the page that has the result.
PARTS: Final = {"loop": "exactly-once", "run": "exactly-once-run"}
INPUT: Final = "to-transform"
OUTPUT: Final = "transformed"
GROUP: Final = "transforming"

#: The targets of SIGKILL by round. `stalled program` is stopped by SIGSTOP for longer than the
#: transaction timeout, and then continues. `zombie` is stopped, too, and meanwhile another program
#: starts with its transactional id.
TARGETS: Final = (
    "leader",
    "transaction coordinator",
    "group coordinator",
    "program",
    "broker and program",
    "stalled program",
    "zombie",
)

TRANSACTION_TIMEOUT_MS: Final = 10_000
#: How many seconds a stalled program is stopped: longer than the transaction timeout. The broker
#: looks for timed-out transactions at intervals, and aborts the transaction of the program
#: (transaction.abort.timed.out.transaction.cleanup.interval.ms).
STALL_S: Final = 14.0
#: The number of seconds within which a fenced program must end.
FENCED_S: Final = 60.0
READING_S: Final = 180.0
RECORDS_PER_S: Final = 1500
_CHUNK: Final = 50
_CHANGES: Final = 5


@dataclass(frozen=True)
class TransactionPlan:
    """The plan of a run; the seed chooses times and victims."""

    rounds: int = 50
    programs: int = 2
    partitions: int = 12
    seed: int = 1
    version: str = "4.4.0"
    protocol: str = "classic"
    way: str = "loop"
    targets: tuple[str, ...] = TARGETS


@dataclass
class TransactionResult:
    """The result of a run. `seen` has the records that read_committed read from the output."""

    plan: TransactionPlan
    account: AcknowledgedOffsets
    seen: Sightings
    hits: list[str] = field(default_factory=list)
    exits: Counter[int] = field(default_factory=Counter)
    aborts: int = 0
    fenced: int = 0
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
            program = await self._started(number)
            self._programs[number] = program
            code = await program.wait()
            if code == 0:  # after `terminate`
                return
            self._result.exits[code] += 1
            if code not in (-signal.SIGKILL, NEEDS_PRODUCER):
                log_path = self._log_of(number)
                self._note(f"program {number} ended with {code}; its log is {log_path}")
                await asyncio.sleep(1)

    def _log_of(self, number: int) -> Path:
        return self._folder / f"program-{number}.log"

    async def _started(self, number: int) -> asyncio.subprocess.Process:
        with self._log_of(number).open("ab") as log:
            return await asyncio.create_subprocess_exec(
                *self._command(number), stdout=log, stderr=log
            )

    def _command(self, number: int) -> list[str]:
        return [
            *(sys.executable, "-m", "tools.kill_test.transform", self._cluster.bootstrap),
            *("--input", INPUT, "--output", OUTPUT, "--group", GROUP),
            *("--transactional-id", _transactional_id(number)),
            *("--transaction-timeout-ms", str(TRANSACTION_TIMEOUT_MS)),
            *("--protocol", self._plan.protocol, "--way", self._plan.way),
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
        """Kills or stalls one target after the other; waits after each for in-sync replicas."""
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
        if target == "zombie":
            await self._replace(program)
            return
        if target == "broker and program":
            self._signal(program, signal.SIGKILL)
        node = self._cluster.node(await self._node(target, program))
        await asyncio.to_thread(node.kill)
        await asyncio.sleep(3 * self._chance.random())
        await asyncio.to_thread(node.start)

    async def _replace(self, number: int) -> None:
        """Stalls a program, and starts a second one with the same transactional id.

        When the stalled program continues, it must end because it is fenced. `keep_running` then
        starts a new program, which fences the second one.
        """
        await self._until_in_transaction(_transactional_id(number))
        zombie = self._programs[number]
        self._signal(number, signal.SIGSTOP)
        other = await self._started(number)
        try:
            await asyncio.sleep(STALL_S)
            self._signal(number, signal.SIGCONT)
            for program, name in ((zombie, "the stopped program"), (other, "its replacement")):
                code = await asyncio.wait_for(program.wait(), FENCED_S)
                if code == NEEDS_PRODUCER:
                    self._result.fenced += 1
                else:
                    self._note(f"{name} {number} was not fenced, but ended with {code}")
        except TimeoutError:
            self._note(f"a program {number} was not fenced in {FENCED_S:g} s")
        finally:
            if other.returncode is None:
                other.kill()
                await other.wait()

    async def _until_in_transaction(self, transactional_id: str) -> None:
        """Waits until the program with this transactional id has an open transaction.

        Ignores the first `_CHANGES` states, because an open transaction may be that of a program
        that was killed.
        """
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        seen: set[tuple[int, int, str]] = set()
        while True:
            try:
                found = (await self._watching.request(request)).transaction_states[0]
            except kproto.KprotoError:
                continue
            seen.add(
                (found.producer_epoch, found.transaction_start_time_ms, found.transaction_state)
            )
            if len(seen) > _CHANGES and found.transaction_state == "Ongoing":
                return
            await asyncio.sleep(0.01)

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
        """Waits until the group has committed the end offset of each input partition."""
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
        """Reads the output with read_committed, and then counts the uncommitted records."""
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


def transaction_table(result: TransactionResult) -> str:
    """Returns the verdict, then a Markdown table of the numbers, then the notes."""
    found = transaction_facts(result)
    rounds = ", ".join(f"{target} {times}x" for target, times in found["rounds"].items())
    uncommitted = found["output records that are not committed"]
    rows = [
        ("Kafka", f"{found['version']}, {found['group protocol']} group protocol"),
        ("program", "`consumer.run`" if found["way"] == "run" else "a loop of `poll`"),
        ("input records", f"{found['input records']:,} in {result.plan.partitions} partitions"),
        ("rounds", f"{len(result.hits)} ({rounds})"),
        ("lost", found["lost"]),
        ("doubled", found["doubled"]),
        ("out of order", found["out of order"]),
        (
            "output records of aborted transactions",
            f"{uncommitted:,}",
        ),
        ("producers that were fenced", found["exits of programs"].get(str(NEEDS_PRODUCER), 0)),
        (
            "programs that another one with their id fenced",
            found["fenced by another"],
        ),
        ("took", f"{result.took_s:,.0f} s, seed {found['seed']}"),
    ]
    verdict = "Each record once, in order." if found["right"] else "NOT RIGHT."
    lines = [verdict, "", "| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]
    return "\n".join([*lines, *(f"\n{note}" for note in found["notes"])]) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Runs the test. The exit code is 1 if a check fails, and 2 if the test cannot run."""
    options = _parser().parse_args(arguments)
    plan = TransactionPlan(
        rounds=options.rounds,
        programs=options.programs,
        seed=options.seed,
        version=options.version,
        protocol=options.protocol,
        way=options.way,
    )
    # Brokers are killed on purpose: the client's warnings would break the progress bar.
    logging.getLogger("kproto").setLevel(logging.ERROR)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    try:
        with (
            tempfile.TemporaryDirectory(prefix="kproto-exactly-once-") as folder,
            KafkaCluster(plan.version, racks=("a", "b", "c"), config=QUICK_SESSIONS) as cluster,
            Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as bar,
        ):
            rounds = bar.add_task("rounds", total=plan.rounds)

            def progress(_acknowledged: int, done: int) -> None:
                bar.update(rounds, completed=done)

            result = asyncio.run(exactly_once_test(plan, cluster, progress, Path(folder)))
    except (KafkaStartError, KafkaJarsError, JavaNotFoundError) as error:
        print(f"exactly-once test: {error}", file=sys.stderr)
        return 2
    print(transaction_table(result), end="\n")
    if options.write:
        write_part(PAGE, PARTS[plan.way], transaction_table(result))
    return 0 if result.is_right else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.kill_test.exactly_once")
    parser.add_argument("--rounds", type=int, default=50, help="default: %(default)s")
    parser.add_argument("--programs", type=int, default=2, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    parser.add_argument("--version", default="4.4.0", help="of Kafka; default: %(default)s")
    parser.add_argument("--protocol", default="classic", choices=["classic", "consumer"])
    parser.add_argument("--way", default="loop", choices=WAYS, help="default: %(default)s")
    parser.add_argument(
        "--write", action="store_true", help="also into docs/evidence/reliability.md"
    )
    return parser


def _transactional_id(number: int) -> str:
    return f"transform-{number}"


def transaction_facts(result: TransactionResult) -> dict[str, Any]:
    """Returns the result as JSON-compatible data."""
    return {
        "right": result.is_right,
        "version": result.plan.version,
        "group protocol": result.plan.protocol,
        "way": result.plan.way,
        "seed": result.plan.seed,
        "input records": result.account.total,
        "not acknowledged": result.account.failed,
        "rounds": dict(Counter(result.hits)),
        "exits of programs": {str(code): times for code, times in sorted(result.exits.items())},
        "aborted by the programs": result.aborts,
        "fenced by another": result.fenced,
        "output records that are not committed": result.uncommitted,
        "lost": result.lost,
        "doubled": result.seen.doubled,
        "out of order": result.seen.disordered,
        "took, s": round(result.took_s),
        "notes": result.notes,
    }


if __name__ == "__main__":
    sys.exit(main())
