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
import sys
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Final

import kproto
from kproto.broker import BrokerSettings, Cluster
from kproto.broker.faults import ErrorCode
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
from .group_schedule import (
    SETTINGS,
    Action,
    GroupMember,
    GroupSchedule,
    Outcome,
    play_all,
    report_unseen,
)
from .protocols import of_ours, timed

__all__ = ["ScheduleOutcome", "play"]

TOPIC: Final = "played"
GROUP: Final = "players"
PARTITIONS: Final = 6

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
BROKERS: Final = BrokerSettings(
    offsets_topic_num_partitions=2,
    group_consumer_min_session_timeout_ms=6_000,
    group_consumer_session_timeout_ms=6_000,
    group_consumer_min_heartbeat_interval_ms=1_000,
    group_consumer_heartbeat_interval_ms=1_000,
)


@dataclass
class ScheduleOutcome(Outcome):
    """The result of the schedule of one `seed`."""

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
    report_unseen(outcome)
    clock = ManualClock()
    async with Cluster(2, settings=BROKERS, clock=clock) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS, replication_factor=2)
        await _Schedule(outcome, cluster, clock, assignor).run()
    return outcome


class _Schedule(GroupSchedule["_Player"]):
    """Runs one random schedule; tracks its members, its faults and the processed records."""

    topic = TOPIC
    partitions = PARTITIONS
    value = b"played"
    member_prefix = "player"
    finished = "every record is done"

    def __init__(
        self, outcome: ScheduleOutcome, cluster: Cluster, clock: ManualClock, assignor: str
    ) -> None:
        apis = {"uniform": APIS_OF_CONSUMERS, "mixed": (*APIS, *APIS_OF_CONSUMERS)}
        super().__init__(outcome, cluster, clock, apis.get(assignor, APIS))
        self.outcome = outcome
        self.assignor = assignor
        self.owners: dict[int, str] = {}
        self.done: list[set[int]] = [set() for _ in range(PARTITIONS)]
        self.contiguous = [0] * PARTITIONS

    async def run(self) -> None:
        self.cluster.control(self._looks_at_commit, request=OffsetCommitRequest)
        await super().run()
        self.outcome.conversions = sum(
            conversions_of(written_of(self.cluster.records(OFFSETS_TOPIC, at), GROUP)).of_members
            for at in range(BROKERS.offsets_topic_num_partitions)
        )

    def _new_member(self, name: str) -> _Player:
        return _Player(self, name)

    # Actions

    def _always_possible(self) -> list[Action]:
        return [
            self._writes,
            self._loses_answer,
            self._loses_answer,
            self._delays,
            self._refuses,
            self._closes,
            self._moves_coordinator,
            self._stops_or_starts,
        ]

    def _possible_for_members(self) -> list[Action]:
        return [self._is_slow, self._is_cut_off]

    async def _is_slow(self) -> None:
        self.chance.choice(self.members).slow_ms = self.chance.choice([3_000, 30_000])

    async def _refuses(self) -> None:
        self._fault(ErrorCode(self.chance.choice(ENCODE_FAILURES)), times=self.chance.randint(1, 3))

    async def _moves_coordinator(self) -> None:
        if self._stopped is not None:
            return
        coordinator = self.cluster.coordinator(GROUP)
        other = next(node for node in self.cluster.nodes if node != coordinator)
        for partition in range(BROKERS.offsets_topic_num_partitions):
            self.cluster.move_leader("__consumer_offsets", partition, other)

    # Checks

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

    def _is_finished(self) -> bool:
        return self.contiguous == self.written

    def _unfinished(self) -> str:
        missing = [
            f"{partition}:{self.contiguous[partition]}"
            for partition in range(PARTITIONS)
            if self.contiguous[partition] != self.written[partition]
        ]
        return f"; owners {self.owners}, not done {missing}"


class _Player(GroupMember):
    """Runs one member of the group, and processes its records like an application."""

    def __init__(self, schedule: _Schedule, name: str) -> None:
        self.slow_ms = 0
        self._schedule = schedule
        super().__init__(schedule.outcome.seed, name)

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
                await self._each_record(consumer, self._process)
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

    async def _process(self, record: Any) -> None:
        schedule = self._schedule
        slow_ms, self.slow_ms = self.slow_ms, 0
        if slow_ms:
            await schedule.clock.sleep(slow_ms / 1000)
        elif self._chance.random() < 0.3:
            await schedule.clock.sleep(self._chance.random() / 5)
        schedule.on_processed(record.partition, record.offset)

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
    outcomes = play_all(lambda seed: play(seed, chosen.assignor), chosen.seed, chosen.count)
    wrong = sum(bool(each.wrong) for each in outcomes)
    records = sum(each.records for each in outcomes)
    again = sum(each.again for each in outcomes)
    conversions = sum(each.conversions for each in outcomes)
    print(f"{chosen.count} schedules, {wrong} wrong; {records:,} records, {again:,} done again")
    if conversions:
        print(f"{conversions:,} conversions of a group with members in it")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
