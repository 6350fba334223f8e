"""Starts members, kills or stalls some of them, and checks the result: `prove`."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import kproto
from kproto.broker import Broker, BrokerSettings
from kproto.client.commits.processed_bitmap import decode_bitmap
from kproto.client.commits.topic_labels import split_label
from kproto.client.processing.settings import Order
from kproto.messages import OffsetCommitKey, OffsetCommitValue
from kproto.stored.coordinator_records import CoordinatorRecord, decode_coordinator_record

from .judging import Attempt, Commit, DeadLetter, Member, Verdict, attempts_of, judge
from .member import SESSION_MS
from .work import DEAD, GROUP, TOPIC, key_of, value_of

__all__ = ["SETTINGS", "Plan", "prove"]

SETTINGS: Final = BrokerSettings(
    group_min_session_timeout_ms=SESSION_MS,
    group_initial_rebalance_delay_ms=0,
    offsets_topic_num_partitions=1,
)

#: How many seconds a member is stalled: longer than the session timeout, so that it is fenced.
_STALL_S: Final = SESSION_MS / 1000 * 1.5
_STEP_S: Final = 0.05
_ENDS_WITHIN_S: Final = 20.0


@dataclass(frozen=True)
class Plan:
    """The plan of a run. `harms` are its faults, in the order in which they happen.

    The seed chooses the handlers' behavior, the keys, the member that each fault affects, and the
    share of committed records at which each fault happens. `limit_s` is the maximum duration of the
    run.
    """

    records: int = 200_000
    partitions: int = 8
    order: Order = "partition"
    seed: int = 1
    members: int = 2
    harms: tuple[str, ...] = ("kill", "stop", "kill", "stall", "join", "kill", "stop")
    limit_s: float = 150.0


@dataclass
class _Members:
    """The processes of the members of one run, and the faults that they suffered."""

    plan: Plan
    bootstrap: str
    folder: Path
    members: dict[str, Member] = field(default_factory=dict)
    processes: dict[str, asyncio.subprocess.Process] = field(default_factory=dict)
    stalled: dict[str, float] = field(default_factory=dict)

    async def begin(self) -> None:
        name = f"member-{len(self.members)}"
        self.members[name] = Member(name)
        arguments = [self.bootstrap, self.plan.order, str(self.plan.seed), str(self.folder / name)]
        self.processes[name] = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tools.handling.member", *arguments
        )

    async def harm(self, what: str, chance: random.Random) -> None:
        """Applies the fault `what`: `stall`, `kill`, `stop` or `join`.

        The first three affect a random member. After `kill` and `stop`, a new member starts.
        """
        if what != "join":
            name = chance.choice(sorted(self.processes.keys() - self.stalled.keys()))
            process = self.processes[name]
            if what == "stall":
                self.members[name].harmed = time.monotonic_ns()
                process.send_signal(signal.SIGSTOP)
                self.stalled[name] = time.monotonic() + _STALL_S
                return
            if what == "kill":
                self.members[name].harmed = time.monotonic_ns()
                process.kill()
                await process.wait()
                del self.processes[name]
            else:
                await self.stop(name)
        await self.begin()

    async def stop(self, name: str) -> None:
        """Stops a member with SIGTERM, and waits for its end."""
        process = self.processes.pop(name)
        process.terminate()
        async with asyncio.timeout(_ENDS_WITHIN_S):
            code = await process.wait()
        # A member without records may not have installed its signal handler yet.
        said = self.folder / name
        is_new = not said.exists() or not said.stat().st_size
        assert code == 0 or (code == -signal.SIGTERM and is_new), f"{name} ended with {code}"

    def wake(self, *, at_once: bool = False) -> None:
        for name, until in [*self.stalled.items()]:
            if at_once or time.monotonic() >= until:
                self.processes[name].send_signal(signal.SIGCONT)
                del self.stalled[name]

    async def close(self) -> None:
        for process in self.processes.values():
            if process.returncode is None:
                process.kill()
                await process.wait()

    def attempts(self) -> list[Attempt]:
        found: list[Attempt] = []
        for name in self.members:
            path = self.folder / name
            if path.exists():
                found += attempts_of(name, path.read_text().splitlines())
        return found


async def prove(plan: Plan, folder: Path) -> Verdict:
    """Runs members on the records of an embedded broker, harms some members, and checks the result.

    Raises TimeoutError if the records are not committed within the plan's limit.
    """
    async with Broker(SETTINGS) as broker, kproto.Client(broker.bootstrap) as client:
        ends = await _write(plan, client)
        running = _Members(plan, broker.bootstrap, folder)
        try:
            async with asyncio.timeout(plan.limit_s):
                for _ in range(plan.members):
                    await running.begin()
                await _harm_until_the_end(plan, client, running)
                running.wake(at_once=True)
                for name in [*running.processes]:
                    await running.stop(name)
        finally:
            await running.close()
        letters = await _letters(plan, client)
        commits = await _commits(client)
        return judge(
            plan.order, plan.seed, ends, running.members, running.attempts(), letters, commits
        )


async def _write(plan: Plan, client: kproto.Client) -> dict[int, int]:
    await client.create_topics(
        kproto.NewTopic(TOPIC, partitions=plan.partitions),
        # With log append time, the timestamp of a dead letter is the time of its arrival.
        kproto.NewTopic(DEAD, partitions=1, configs={"message.timestamp.type": "LogAppendTime"}),
    )
    ends = {}
    async with client.producer() as producer:
        for partition in range(plan.partitions):
            count = ends[partition] = plan.records // plan.partitions
            await producer.send_many(
                TOPIC,
                [
                    kproto.ProducerRecord(
                        value_of(partition, offset),
                        key_of(plan.seed, partition, offset),
                        [("at", b"%d" % offset)],
                        partition=partition,
                    )
                    for offset in range(count)
                ],
            )
    return ends


async def _harm_until_the_end(plan: Plan, client: kproto.Client, running: _Members) -> None:
    """Harms members as planned, and returns when all records are committed.

    Harms a member, by a kill or a stall for example, when a certain share of the records is
    committed. The plan's seed varies the shares.
    """
    chance = random.Random(plan.seed)
    shares = [
        (at + 0.5 + chance.uniform(-0.3, 0.3)) / (len(plan.harms) + 1)
        for at in range(len(plan.harms))
    ]
    left = [*zip(shares, plan.harms, strict=True)]
    places = [(TOPIC, at) for at in range(plan.partitions)]
    total = plan.records // plan.partitions * plan.partitions
    async with client.consumer(places, group=GROUP, auto_commit=False) as looking:
        while True:
            found = await looking.committed(*places)
            done = sum(its.offset for its in found.values() if its is not None)
            if done == total:
                return
            running.wake()
            if left and done >= left[0][0] * total:
                await running.harm(left.pop(0)[1], chance)
            for name, process in running.processes.items():
                assert process.returncode is None, f"{name} ended with {process.returncode}"
            await asyncio.sleep(_STEP_S)


async def _letters(plan: Plan, client: kproto.Client) -> list[DeadLetter]:
    found = []
    async for record in client.consumer(DEAD, stop_at_end=True):
        failure = kproto.failure_of(record)
        assert failure is not None, "only the members write to the dead letter topic"
        at = (failure.partition, failure.offset)
        came = (record.key, record.value, failure.headers)
        sent = (key_of(plan.seed, *at), value_of(*at), (("at", b"%d" % failure.offset),))
        is_as_it_came = came == sent and failure.topic == TOPIC and failure.group == GROUP
        reason = f"{failure.error_type}: {failure.error_message}"
        found.append(DeadLetter(*at, record.timestamp, is_as_it_came, reason))
    return found


async def _commits(client: kproto.Client) -> list[Commit]:
    """Returns all commits of the group, in the order of the broker's log."""
    found = []
    async for record in client.consumer("__consumer_offsets", stop_at_end=True):
        match decode_coordinator_record(record):
            case CoordinatorRecord(OffsetCommitKey() as key, OffsetCommitValue() as value):
                if (key.group, key.topic) == (GROUP, TOPIC):
                    ahead = decode_bitmap(split_label(value.metadata)[1], value.offset)
                    done = () if ahead is None else range(ahead.base, ahead.end)
                    told = frozenset(
                        at for at in done if ahead is not None and ahead.is_processed(at)
                    )
                    at = value.commit_timestamp
                    found.append(Commit(key.partition, value.offset, at, told))
    return found
