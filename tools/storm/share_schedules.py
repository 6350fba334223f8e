"""Runs random schedules of share groups: members on the embedded cluster, with a manual clock.

    .venv/bin/python -m tools.storm.share_schedules --count 1000

Members join, leave, are cancelled, are cut off, accept, release, reject, renew and forget records,
and hold them beyond their locks; responses are lost, late or errors; leaders and coordinators move.
The checks: each record is accepted by a member, rejected by a member, or archived after the limit
of deliveries; a record whose acceptance is confirmed is never delivered again; no delivery count
exceeds the limit; no member hangs or fails. Each schedule has its own seed, so that a failed
schedule can be replayed.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import kproto
from kproto import LockLostError, Retries, ShareConsumer, ShareRecord
from kproto.broker import BrokerSettings, Cluster
from kproto.broker.faults import ErrorCode
from kproto.client.admin.configs import ConfigResource, ConfigResourceType
from kproto.messages import (
    FindCoordinatorRequest,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupHeartbeatRequest,
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)
from kproto.stored.coordinator_records import decode_coordinator_record
from kproto.testing.clock import ManualClock

from .group_schedule import (
    SETTINGS,
    Action,
    GroupMember,
    GroupSchedule,
    Outcome,
    play_all,
    report_unseen,
)

__all__ = ["ShareScheduleOutcome", "play"]

TOPIC: Final = "jobs"
GROUP: Final = "workers"
STATE_TOPIC: Final = "__share_group_state"
PARTITIONS: Final = 3
#: With one node stopped, `__share_group_state` still has its two in-sync replicas. If its writes
#: failed for several locks, records would be archived without a record of it, as in Kafka.
NODES: Final = 3
STATE_PARTITIONS: Final = 2
LIMIT: Final = 3
LOCK_MS: Final = 4_000

_COORDINATOR_ERRORS: Final = (
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR",
)
_SESSION_ERRORS: Final = ("SHARE_SESSION_NOT_FOUND", "INVALID_SHARE_SESSION_EPOCH")

#: The requests that faults can affect, with the errors that a broker may return.
APIS: Final[dict[Any, tuple[str, ...]]] = {
    FindCoordinatorRequest: _COORDINATOR_ERRORS,
    ShareGroupHeartbeatRequest: (*_COORDINATOR_ERRORS, "UNKNOWN_MEMBER_ID"),
    ShareFetchRequest: _SESSION_ERRORS,
    ShareAcknowledgeRequest: _SESSION_ERRORS,
}
#: The states of a record in the records of the share coordinator.
ACKNOWLEDGED, ARCHIVED = 2, 4

BROKERS: Final = BrokerSettings(
    offsets_topic_num_partitions=2,
    share_coordinator_state_topic_num_partitions=STATE_PARTITIONS,
    group_share_min_session_timeout_ms=6_000,
    group_share_session_timeout_ms=6_000,
    group_share_min_heartbeat_interval_ms=1_000,
    group_share_heartbeat_interval_ms=1_000,
    group_share_min_record_lock_duration_ms=LOCK_MS,
    group_share_record_lock_duration_ms=LOCK_MS,
    group_share_delivery_count_limit=LIMIT,
)

#: The partition and the offset of a record.
Key: TypeAlias = tuple[int, int]


@dataclass
class ShareScheduleOutcome(Outcome):
    """The result of the schedule of one `seed`."""

    deliveries: int = 0
    archived: int = 0  #: records that were archived after the limit of deliveries


def play(seed: int) -> ShareScheduleOutcome:
    """Runs the schedule that `seed` draws."""
    return asyncio.run(_play(seed))


async def _play(seed: int) -> ShareScheduleOutcome:
    outcome = ShareScheduleOutcome(seed)
    report_unseen(outcome)
    clock = ManualClock()
    async with Cluster(NODES, settings=BROKERS, clock=clock) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS, replication_factor=NODES)
        await _Schedule(outcome, cluster, clock).run()
    return outcome


class Oracles:
    """The observations of all members of a schedule; `wrong` takes violations."""

    def __init__(self, wrong: Callable[[str], None]) -> None:
        self._wrong = wrong
        self.deliveries = 0
        self.highest: dict[Key, int] = {}  #: the highest delivery count of each record
        self.confirmed: dict[Key, int] = {}  #: accepted records, with `highest` at that time
        self.accepting: set[Key] = set()  #: records that a member has accepted, or may accept
        self.rejecting: set[Key] = set()

    def on_delivery(self, name: str, record: ShareRecord) -> None:
        """Checks one delivery to the member `name`."""
        key, count = (record.partition, record.offset), record.delivery_count
        self.deliveries += 1
        if count > LIMIT:
            self._wrong(f"{name} gets {key} with the delivery count {count}")
        if count > self.confirmed.get(key, count):
            self._wrong(f"{name} gets {key}, which was accepted, with the delivery count {count}")
        self.highest[key] = max(count, self.highest.get(key, 0))

    def on_result(self, result: kproto.AcknowledgeResult) -> None:
        """Notes the acceptances that a broker has confirmed."""
        if result.error is None:
            for offset in (offset for each in result.accepted for offset in each):
                key = result.partition, offset
                self.confirmed.setdefault(key, self.highest.get(key, 0))

    def check_settled(self, written: set[Key], log: dict[Key, dict[int, int]]) -> None:
        """Checks that each written record has a reason for its end; see `state_log`."""
        for key in sorted(written):
            states = log.get(key, {})
            if ACKNOWLEDGED in states:
                if key not in self.accepting:
                    self._wrong(f"{key} is acknowledged, and no member has accepted it")
            elif ARCHIVED not in states:
                self._wrong(f"{key} is lost: neither accepted nor archived, but {states}")
            elif states[ARCHIVED] < LIMIT and key not in self.rejecting:
                self._wrong(f"{key} is archived after {states[ARCHIVED]} deliveries")
            if key not in self.highest and states.get(ARCHIVED, 0) < LIMIT:
                # A record may be archived unseen, if the responses of all its deliveries are lost.
                self._wrong(f"{key} was delivered to no member, and is not archived, but {states}")
        for key in self.confirmed.keys() - log.keys():
            self._wrong(f"the acceptance of {key} is confirmed, and not stored")


class _Schedule(GroupSchedule["_Member"]):
    """Runs one random schedule; tracks its members and its faults."""

    topic = TOPIC
    partitions = PARTITIONS
    value = b"job"
    member_prefix = "worker"
    finished = "every record is settled"

    def __init__(self, outcome: ShareScheduleOutcome, cluster: Cluster, clock: ManualClock) -> None:
        super().__init__(outcome, cluster, clock, APIS)
        self.outcome = outcome
        self.oracles = Oracles(self.wrong)
        self.is_healed = False

    async def run(self) -> None:
        await super().run()
        log = self._state_log()
        keys = {(at, offset) for at in range(PARTITIONS) for offset in range(self.written[at])}
        self.oracles.check_settled(keys, log)
        self.outcome.deliveries = self.oracles.deliveries
        self.outcome.archived = sum(each.get(ARCHIVED) == LIMIT for each in log.values())

    async def _prepare(self) -> None:
        await self._ends("the group is configured", self._configure())

    async def _configure(self) -> None:
        resource = ConfigResource(ConfigResourceType.GROUP, GROUP)
        configs = {resource: {"share.auto.offset.reset": "earliest"}}
        async with kproto.Client(self.cluster.bootstrap, SETTINGS, clock=self.clock) as client:
            await client.admin.incremental_alter_configs(configs)

    def _new_member(self, name: str) -> _Member:
        return _Member(self, name)

    def _state_log(self) -> dict[Key, dict[int, int]]:
        """Returns the stored states of each record, with the delivery count of each state."""
        found: dict[Key, dict[int, int]] = {}
        for at in range(STATE_PARTITIONS):
            for record in self.cluster.records(STATE_TOPIC, at):
                decoded = decode_coordinator_record(record, topic=STATE_TOPIC)
                key, value = decoded.key, decoded.value
                if isinstance(key, ShareSnapshotKey | ShareUpdateKey) and isinstance(
                    value, ShareSnapshotValue | ShareUpdateValue
                ):
                    for each in value.state_batches:
                        for offset in range(each.first_offset, each.last_offset + 1):
                            states = found.setdefault((key.partition, offset), {})
                            states[each.delivery_state] = each.delivery_count
        return found

    def _is_finished(self) -> bool:
        log = self._state_log()
        return all(
            log.get((at, offset), {}).keys() & {ACKNOWLEDGED, ARCHIVED}
            for at in range(PARTITIONS)
            for offset in range(self.written[at])
        )

    # Actions

    def _always_possible(self) -> list[Action]:
        return [
            self._writes,
            self._writes,
            self._loses_answer,
            self._loses_answer,
            self._delays,
            self._refuses,
            self._closes,
            self._moves_leader,
            self._moves_coordinator,
            self._stops_or_starts,
        ]

    async def _cancel(self, member: _Member) -> None:
        member.task.cancel()
        if self.chance.random() < 0.3:
            await asyncio.sleep(0)
            member.task.cancel()

    async def _refuses(self) -> None:
        api = self.chance.choice(list(APIS))
        fault = ErrorCode(self.chance.choice(APIS[api]))
        self._fault_in(api, fault, self.chance.randint(1, 3))

    def _moves(self, topic: str, partitions: int) -> None:
        if self._stopped is None:
            partition = self.chance.randrange(partitions)
            self.cluster.move_leader(topic, partition, self.chance.choice(list(self.cluster.nodes)))

    async def _moves_leader(self) -> None:
        self._moves(TOPIC, PARTITIONS)

    async def _moves_coordinator(self) -> None:
        if STATE_TOPIC in self.cluster.topics and self.chance.random() < 0.5:
            self._moves(STATE_TOPIC, STATE_PARTITIONS)
        elif "__consumer_offsets" in self.cluster.topics:
            self._moves("__consumer_offsets", BROKERS.offsets_topic_num_partitions)

    async def _heal(self) -> None:
        """Ends all faults; members accept all records from now on."""
        await super()._heal()
        self.is_healed = True


class _Member(GroupMember):
    """Runs one member of the group, in one of three modes, and processes its records."""

    def __init__(self, schedule: _Schedule, name: str) -> None:
        self._schedule = schedule
        self._oracles = schedule.oracles
        super().__init__(schedule.outcome.seed, name)

    async def _run(self) -> None:
        schedule = self._schedule
        settings = replace(SETTINGS, client_id=self.name)
        mode = self._chance.choice(("explicit", "explicit", "implicit", "run"))
        modes: dict[str, Callable[[ShareConsumer], Any]] = {
            "explicit": self._acknowledge,
            "implicit": self._read,
            "run": self._process,
        }
        client = kproto.Client(schedule.cluster.bootstrap, settings, clock=schedule.clock)
        try:
            async with client.share_consumer(
                TOPIC,
                group=GROUP,
                acknowledgement="implicit" if mode == "implicit" else "explicit",
                acquire_mode=self._chance.choice(("batch_optimized", "record_limit")),
                max_poll_records=self._chance.choice((3, 500)),
                max_poll_interval_ms=20_000,
                on_acknowledged=self._oracles.on_result,
            ) as consumer:
                await modes[mode](consumer)
        except kproto.KprotoError as error:
            schedule.wrong(f"{self.name} ({mode}) failed: {error!r}")
        finally:
            await client.close()

    async def _records(self, consumer: ShareConsumer, handle: Callable[[ShareRecord], Any]) -> None:
        """Calls `handle` with each record, until the member must stop."""

        async def handle_delivery(record: ShareRecord) -> None:
            self._oracles.on_delivery(self.name, record)
            await handle(record)

        await self._each_record(consumer, handle_delivery)

    def _lasts_s(self) -> float:
        """Draws how long the processing of a record takes: sometimes longer than its lock."""
        drawn = self._chance.random()
        if drawn < 0.7 or self._schedule.is_healed:
            return 0
        return self._chance.random() / 2 if drawn < 0.96 else self._chance.uniform(3, 9)

    async def _sleep(self) -> None:
        seconds = self._lasts_s()
        if seconds:
            await self._schedule.clock.sleep(seconds)

    async def _read(self, consumer: ShareConsumer) -> None:
        async def handle(record: ShareRecord) -> None:
            self._oracles.accepting.add((record.partition, record.offset))
            await self._sleep()

        await self._records(consumer, handle)

    async def _acknowledge(self, consumer: ShareConsumer) -> None:
        async def handle(record: ShareRecord) -> None:
            key = record.partition, record.offset
            drawn = 0.0 if self._schedule.is_healed else self._chance.random()
            try:
                if 0.9 <= drawn < 0.95:
                    await consumer.renew(record)
                await self._sleep()
                if drawn < 0.65 or drawn >= 0.9:
                    self._oracles.accepting.add(key)
                    await consumer.accept(record)
                elif drawn < 0.8:
                    await consumer.release(record)
                elif drawn < 0.85:
                    self._oracles.rejecting.add(key)
                    await consumer.reject(record)
            except LockLostError:
                return
            if drawn >= 0.98:
                await consumer.commit()

        await self._records(consumer, handle)

    async def _process(self, consumer: ShareConsumer) -> None:
        async def handle(record: ShareRecord) -> None:
            key = record.partition, record.offset
            self._oracles.on_delivery(self.name, record)
            await self._sleep()
            if not self._schedule.is_healed and self._chance.random() < 0.1:
                if record.delivery_count >= 3:
                    self._oracles.rejecting.add(key)
                raise ValueError("the handler fails")
            self._oracles.accepting.add(key)

        running = asyncio.ensure_future(
            consumer.run(handle, workers=3, retries=Retries(2, backoff_ms=500), stop_on=())
        )
        stopping = asyncio.create_task(self.stop.wait())
        try:
            await asyncio.wait([running, stopping], return_when=asyncio.FIRST_COMPLETED)
            await consumer.close()
            await running
        finally:
            stopping.cancel()
            running.cancel()
            await asyncio.wait([running])


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.storm.share_schedules", description=__doc__
    )
    parser.add_argument("--count", type=int, default=1000, help="default: %(default)s")
    parser.add_argument(
        "--seed", type=int, default=1, help="seed of the first schedule; default: %(default)s"
    )
    chosen = parser.parse_args()
    outcomes = play_all(play, chosen.seed, chosen.count)
    wrong = sum(bool(each.wrong) for each in outcomes)
    records = sum(each.records for each in outcomes)
    deliveries = sum(each.deliveries for each in outcomes)
    archived = sum(each.archived for each in outcomes)
    print(
        f"{chosen.count} schedules, {wrong} wrong; {records:,} records, {deliveries:,} deliveries, "
        f"{archived:,} archived after {LIMIT} deliveries"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
