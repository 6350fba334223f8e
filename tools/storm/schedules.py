"""Runs random schedules: members on the embedded cluster, with a manual clock.

    .venv/bin/python -m tools.storm.schedules --count 1000

Members join, leave, are cancelled, are slow and are disconnected; responses are lost, late or
errors; coordinators move. The checks: no partition has two owners at once, no record is committed
before it is processed, every record is processed, and no member hangs. Each schedule has its own
seed, so that a failed schedule can be replayed.

With `--assignor uniform`, members use the consumer protocol (KIP-848). With `mixed`, each member
uses the consumer protocol, the classic protocol or the group's present protocol, so that the group
changes its protocol.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import sys
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any, Final

import kproto
from kproto.broker import BrokerSettings, Close, Cluster
from kproto.broker.faults import Control, ErrorCode, LoseResponses, SilentConnection, Slow
from kproto.messages import (
    ConsumerGroupHeartbeatRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from kproto.protocol.connection import ReceivedRequest
from kproto.testing.clock import ManualClock

from .group_log import OFFSETS_TOPIC, conversions_of, written_of
from .manual_time import STRIDE_MS, ManualTime
from .protocols import of_ours, timed

__all__ = ["ScheduleOutcome", "play"]

TOPIC: Final = "played"
GROUP: Final = "players"
PARTITIONS: Final = 6
MOST_MEMBERS: Final = 4
STEPS: Final = 14

APIS: Final = (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
#: The requests that faults can affect, if members use the consumer protocol.
APIS_OF_CONSUMERS: Final = (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
ENCODE_FAILURES: Final = (
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    "REQUEST_TIMED_OUT",
)
SETTINGS: Final = kproto.ClientSettings(
    request_timeout_ms=4_000,
    delivery_timeout_ms=30_000,
    api_timeout_ms=30_000,
    reconnect_backoff_max_ms=500,
    retry_backoff_max_ms=500,
    connect_timeout_ms=2_000,
    connect_timeout_max_ms=4_000,
)
BROKERS: Final = BrokerSettings(
    offsets_topic_num_partitions=2,
    group_consumer_min_session_timeout_ms=6_000,
    group_consumer_session_timeout_ms=6_000,
    group_consumer_min_heartbeat_interval_ms=1_000,
    group_consumer_heartbeat_interval_ms=1_000,
)


@dataclass
class ScheduleOutcome:
    """The result of the schedule of one `seed`: violations (`wrong`), and counts."""

    seed: int
    wrong: list[str] = field(default_factory=list)
    actions: Counter[str] = field(default_factory=Counter)
    records: int = 0
    conversions: int = 0  #: changes of the group's protocol while it had members
    again: int = 0  #: records processed twice, for example because their commit was lost


def play(seed: int, assignor: str = "cooperative-sticky") -> ScheduleOutcome:
    """Runs the schedule that `seed` draws.

    `assignor` is "uniform" (all members use the consumer protocol), "mixed" (members of both
    protocols), or the assignor of classic members.
    """
    return asyncio.run(_play(seed, assignor))


async def _play(seed: int, assignor: str) -> ScheduleOutcome:
    outcome = ScheduleOutcome(seed)
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: outcome.wrong.append(f"unseen: {context.get('message')} {context}")
    )
    clock = ManualClock()
    async with Cluster(2, settings=BROKERS, clock=clock) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS, replication_factor=2)
        await _Schedule(outcome, cluster, clock, assignor).run()
    return outcome


class _Schedule:
    """Runs one random schedule; tracks its members, its faults and the processed records."""

    def __init__(
        self, outcome: ScheduleOutcome, cluster: Cluster, clock: ManualClock, assignor: str
    ) -> None:
        self.outcome = outcome
        self.cluster = cluster
        self.clock = clock
        self.assignor = assignor
        self.apis = {"uniform": APIS_OF_CONSUMERS, "mixed": (*APIS, *APIS_OF_CONSUMERS)}.get(
            assignor, APIS
        )
        self.chance = random.Random(outcome.seed)
        self.owners: dict[int, str] = {}
        self.done: list[set[int]] = [set() for _ in range(PARTITIONS)]
        self.contiguous = [0] * PARTITIONS
        self.written = [0] * PARTITIONS
        self.members: list[_Player] = []
        self.cut_off: set[str] = set()
        self._number = 0
        self._faults: list[Control] = []
        self._stopped: int | None = None
        self._time = ManualTime(clock)

    async def run(self) -> None:
        self.cluster.control(self._looks_at_commit, request=OffsetCommitRequest)
        self.cluster.control(self._cuts_off)
        self._join()
        self._join()
        try:
            await self._writes()
            for _ in range(STEPS):
                action = self.chance.choice(self._possible())
                self.outcome.actions[action.__name__.strip("_")] += 1
                await action()
                await self._time.pass_ms(self.chance.uniform(0, 6_000))
            await self._heal()
            if not self.members:
                self._join()
            await self._until("every record is done", self._is_all_done)
            for member in self.members:
                member.stop.set()
            await self._until(
                "all have left", lambda: all(each.task.done() for each in self.members)
            )
        finally:
            for member in self.members:
                member.task.cancel()
            waiting = asyncio.gather(*(m.task for m in self.members), return_exceptions=True)
            while not waiting.done():
                await self._time.pass_ms(STRIDE_MS)
        self.outcome.records = sum(self.written)
        self.outcome.conversions = sum(
            conversions_of(written_of(self.cluster.records(OFFSETS_TOPIC, at), GROUP)).of_members
            for at in range(BROKERS.offsets_topic_num_partitions)
        )

    # Actions

    def _possible(self) -> list[Callable[[], Any]]:
        found: list[Callable[[], Any]] = [
            self._writes,
            self._loses_answer,
            self._loses_answer,
            self._delays,
            self._refuses,
            self._closes,
            self._moves_coordinator,
            self._stops_or_starts,
        ]
        if len(self.members) < MOST_MEMBERS:
            found += [self._joins] * 4
        if len(self.members) > 1:
            found += [self._leaves, self._leaves, self._cancels]
        if self.members:
            found += [self._is_slow, self._is_cut_off]
        return found

    async def _writes(self) -> None:
        writing = asyncio.create_task(self._write())
        await self._until("records are written", writing.done)
        writing.result()

    async def _write(self) -> None:
        bootstrap = self.cluster.bootstrap
        async with (
            kproto.Client(bootstrap, SETTINGS, clock=self.clock) as client,
            client.producer() as producer,
        ):
            for partition in range(PARTITIONS):
                count = self.chance.randrange(12)
                for _ in range(count):
                    await producer.enqueue(TOPIC, b"played", partition=partition)
                self.written[partition] += count

    async def _joins(self) -> None:
        self._join()

    def _join(self) -> None:
        self._number += 1
        self.members.append(_Player(self, f"player-{self._number}"))

    async def _leaves(self) -> None:
        member = self.chance.choice(self.members)
        member.stop.set()
        await self._goes(member)

    async def _cancels(self) -> None:
        member = self.chance.choice(self.members)
        member.task.cancel()
        await self._goes(member)

    async def _goes(self, member: _Player) -> None:
        """Waits until a member has ended, then removes it; its actions are still checked."""
        await self._until(f"{member.name} has gone", member.task.done)
        self.members.remove(member)

    async def _is_slow(self) -> None:
        self.chance.choice(self.members).slow_ms = self.chance.choice([3_000, 30_000])

    async def _is_cut_off(self) -> None:
        member = self.chance.choice(self.members)
        self.cut_off.add(member.name)
        await self._time.pass_ms(self.chance.uniform(500, 12_000))
        self.cut_off.discard(member.name)

    def _fault(self, function: Callable[[ReceivedRequest], Any], times: int = 1) -> None:
        api = self.chance.choice(self.apis)
        self._faults.append(self.cluster.control(function, request=api, times=times))

    async def _loses_answer(self) -> None:
        self._fault(LoseResponses())

    async def _delays(self) -> None:
        self._fault(Slow(self.chance.randrange(100, 5_000)), times=3)

    async def _refuses(self) -> None:
        self._fault(ErrorCode(self.chance.choice(ENCODE_FAILURES)), times=self.chance.randint(1, 3))

    async def _closes(self) -> None:
        after = self.chance.random() < 0.5
        self._fault(lambda _: Close(after_handling=after))

    async def _moves_coordinator(self) -> None:
        if self._stopped is not None:
            return
        coordinator = self.cluster.coordinator(GROUP)
        other = next(node for node in self.cluster.nodes if node != coordinator)
        for partition in range(BROKERS.offsets_topic_num_partitions):
            self.cluster.move_leader("__consumer_offsets", partition, other)

    async def _stops_or_starts(self) -> None:
        if self._stopped is None:
            self._stopped = self.chance.choice(self.cluster.nodes)
            await self.cluster.stop_broker(self._stopped)
        else:
            await self._start()

    async def _start(self) -> None:
        if self._stopped is not None:
            await self.cluster.start_broker(self._stopped)
            self._stopped = None

    async def _heal(self) -> None:
        await self._start()
        self.cut_off.clear()
        for control in self._faults:
            self.cluster.remove_control(control)

    # Checks

    def _cuts_off(self, request: ReceivedRequest) -> Any:
        return SilentConnection()(request) if request.client_id in self.cut_off else None

    def _looks_at_commit(self, request: ReceivedRequest) -> None:
        message = request.message
        assert isinstance(message, OffsetCommitRequest)
        for topic in message.topics:
            for each in topic.partitions:
                place, offset = each.partition_index, each.committed_offset
                if offset > self.contiguous[place]:
                    self.wrong(
                        f"{request.client_id} commits {place}:{offset}, and what is done ends at "
                        f"{self.contiguous[place]}"
                    )

    def on_processed(self, partition: int, offset: int) -> None:
        """Counts a record as processed; a member calls this after it has processed the record."""
        done = self.done[partition]
        if offset in done:
            self.outcome.again += 1
        done.add(offset)
        while self.contiguous[partition] in done:
            self.contiguous[partition] += 1

    def _is_all_done(self) -> bool:
        return self.contiguous == self.written

    def wrong(self, what: str) -> None:
        """Adds a violation with the time of the manual clock."""
        self.outcome.wrong.append(f"at {self.clock.monotonic():.3f} s: {what}")

    # Time

    async def _until(self, what: str, holds: Callable[[], bool]) -> None:
        if not await self._time.until(holds):
            missing = [
                f"{partition}:{self.contiguous[partition]}"
                for partition in range(PARTITIONS)
                if self.contiguous[partition] != self.written[partition]
            ]
            self.wrong(f"not {what}; owners {self.owners}, not done {missing}")


class _Player:
    """Runs one member of the group, and processes its records like an application."""

    def __init__(self, schedule: _Schedule, name: str) -> None:
        self.name = name
        self.stop = asyncio.Event()
        self.slow_ms = 0
        self._schedule = schedule
        self._chance = random.Random(f"{schedule.outcome.seed} {name}")
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        schedule = self._schedule
        settings = replace(SETTINGS, client_id=self.name)
        client = kproto.Client(schedule.cluster.bootstrap, settings, clock=schedule.clock)
        try:
            async with client.consumer(
                TOPIC,
                group=GROUP,
                **self._protocol(schedule.assignor),
                max_poll_interval_ms=20_000,
                auto_commit_interval_ms=2_000,
                on_assigned=self._assigned,
                on_revoked=self._given_up,
                on_lost=self._given_up,
            ) as consumer:
                await self._read(consumer)
        except kproto.KprotoError as error:
            schedule.wrong(f"{self.name} failed: {error!r}")
        finally:
            await client.close()
            for partition in [p for p, owner in schedule.owners.items() if owner == self.name]:
                del schedule.owners[partition]

    def _protocol(self, assignor: str) -> dict[str, Any]:
        if assignor == "mixed":
            protocol = {"group_protocol": self._chance.choice(["auto", "consumer", "classic"])}
            return timed(protocol, 6_000, 1_000)
        return of_ours(assignor, 6_000, 1_000)

    async def _read(self, consumer: Any) -> None:
        schedule = self._schedule
        records = aiter(consumer)
        stopping = asyncio.create_task(self.stop.wait())
        try:
            while not stopping.done():
                coming = asyncio.ensure_future(anext(records))
                try:
                    await asyncio.wait([coming, stopping], return_when=asyncio.FIRST_COMPLETED)
                finally:
                    if not coming.done():
                        coming.cancel()
                if coming.cancelled() or not coming.done():
                    break
                record = coming.result()
                slow_ms, self.slow_ms = self.slow_ms, 0
                if slow_ms:
                    await schedule.clock.sleep(slow_ms / 1000)
                elif self._chance.random() < 0.3:
                    await schedule.clock.sleep(self._chance.random() / 5)
                schedule.on_processed(record.partition, record.offset)
        finally:
            stopping.cancel()

    def _assigned(self, places: Collection[tuple[str, int]]) -> None:
        for _, partition in places:
            owner = self._schedule.owners.get(partition)
            if owner is not None:
                self._schedule.wrong(f"{self.name} gets {partition}, which {owner} has")
            self._schedule.owners[partition] = self.name

    def _given_up(self, places: Collection[tuple[str, int]]) -> None:
        for _, partition in places:
            if self._schedule.owners.get(partition) == self.name:
                del self._schedule.owners[partition]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.storm.schedules", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="default: %(default)s")
    parser.add_argument(
        "--seed", type=int, default=1, help="seed of the first schedule; default: %(default)s"
    )
    parser.add_argument("--assignor", default="cooperative-sticky", help="default: %(default)s")
    chosen = parser.parse_args()
    for name in ("kproto", "asyncio"):  # the schedules cause the errors on purpose
        logging.getLogger(name).setLevel(logging.CRITICAL)
    wrong = records = again = conversions = 0
    for seed in range(chosen.seed, chosen.seed + chosen.count):
        outcome = play(seed, chosen.assignor)
        records += outcome.records
        again += outcome.again
        conversions += outcome.conversions
        if outcome.wrong:
            wrong += 1
            print(f"\r\033[Kseed {seed}: {outcome.wrong[0]}")
        print(f"\r{seed - chosen.seed + 1} of {chosen.count}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(f"{chosen.count} schedules, {wrong} wrong; {records:,} records, {again:,} done again")
    if conversions:
        print(f"{conversions:,} conversions of a group with members in it")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
