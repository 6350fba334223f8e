"""Drives a group of the consumer protocol with a manual clock; each request is one call.

Stored records are encoded to bytes, so that another coordinator can load them as from a log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from kproto.broker.api_error import api_error
from kproto.broker.groups import (
    AnyGroup,
    ClassicGroup,
    ClassicGroupLimits,
    ClockReading,
    ConsumerGroup,
    ConsumerGroupConfig,
    GroupMetadataManager,
    JoinRequest,
    JoinResult,
    LeavingMember,
    MemberProtocol,
    PendingResult,
    SyncRequest,
    SyncResult,
)
from kproto.broker.groups.consumer import (
    ConsumerHeartbeat,
    ConsumerHeartbeatResult,
    classic_protocol,
)
from kproto.broker.groups.coordinator_records import load
from kproto.broker.topic_configs import TopicConfig
from kproto.broker.topics import Topic, Topics
from kproto.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kproto.messages.consumer_protocol_assignment import TopicPartition as AssignedPartition
from kproto.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kproto.records import Record
from kproto.stored.coordinator_records import CoordinatorRecord, encode_coordinator_record
from tests.unit.broker.groups.classic_group_driver import DATE_MS

__all__ = ["REBALANCE_MS", "SESSION_MS", "ConsumerPlay", "metadata"]

SESSION_MS: Final = 45_000
REBALANCE_MS: Final = 60_000


def metadata(*topics: str) -> bytes:
    """Returns the JoinGroup metadata of a classic member that subscribes to these topics."""
    return b"\0\3" + ConsumerProtocolSubscription(topics=sorted(topics)).encode(3)


class ConsumerPlay:
    """Drives group `g`; topics t, u and v have 6, 3 and 2 partitions.

    `refuses` names the error of every log write; if `refuses` is empty, writes succeed. The first
    rebalance of classic members is delayed by `delay_ms`.
    """

    def __init__(self, *, delay_ms: int = 0, **limits: Any) -> None:
        self._delay_ms = delay_ms
        self.ms = 0
        self.refuses = ""
        self.log: list[CoordinatorRecord] = []
        self.topics = Topics()
        for name, partitions in (("t", 6), ("u", 3), ("v", 2)):
            self.create(name, partitions)
        self.limits = ConsumerGroupConfig(**limits)
        self.groups = self._new()
        self.epochs: dict[str, int] = {}
        self.owned: dict[str, dict[str, list[int]]] = {}

    def create(self, name: str, partitions: int) -> None:
        config = TopicConfig({}, 1_000_000, 1, 1)
        self.topics.add(Topic(name, [(1,)] * partitions, config))

    def _new(self) -> GroupMetadataManager:
        groups = GroupMetadataManager(
            ClassicGroupLimits(self._delay_ms, 300_000, 100), self.limits, self.topics
        )
        groups.write = self._write
        return groups

    def _write(
        self, group_id: str, records: Sequence[CoordinatorRecord], now: ClockReading
    ) -> None:
        assert (group_id, now.ms <= self.ms) == ("g", True)
        if self.refuses:
            raise api_error(self.refuses, "the write failed")
        self.log += records

    def move(self) -> None:
        """Moves the group to another coordinator, which loads the stored records."""
        encoded = [encode_coordinator_record(it) for it in self.log]
        read = load(Record(at, key=key, value=value) for at, (key, value) in enumerate(encoded))
        self.groups = self._new()
        for group_id, stored in read.items():
            self.groups.restore(group_id, stored, self.now)

    @property
    def now(self) -> ClockReading:
        return ClockReading(self.ms, DATE_MS + self.ms)

    def wait(self, ms: int) -> None:
        self.ms += ms

    @property
    def any_group(self) -> AnyGroup:
        group = self.groups.find("g", self.now)
        assert group is not None
        return group

    @property
    def group(self) -> ConsumerGroup:
        group = self.any_group
        assert isinstance(group, ConsumerGroup)
        return group

    @property
    def classic_group(self) -> ClassicGroup:
        group = self.any_group
        assert isinstance(group, ClassicGroup)
        return group

    # Members of the consumer protocol

    def join(self, member_id: str, *topics: str, **overrides: Any) -> dict[str, list[int]] | None:
        fields = {"topics": topics, "owned": {}, "rebalance_ms": REBALANCE_MS, **overrides}
        return self.beat(member_id, 0, **fields)

    def beat(
        self,
        member_id: str,
        epoch: int | None = None,
        *,
        topics: Iterable[str] | None = None,
        owned: Mapping[str, Iterable[int]] | None = None,
        rebalance_ms: int = -1,
        may_describe: Callable[[str], bool] = lambda topic: True,
        **overrides: Any,
    ) -> dict[str, list[int]] | None:
        """Sends a heartbeat, by default with the last member epoch that the group returned.

        Returns the new assignment as {topic: partitions}, or None if the response has none. Raises
        BrokerResponseError with the group's error.
        """
        request = ConsumerHeartbeat(
            member_id,
            self.epochs.get(member_id, 0) if epoch is None else epoch,
            rebalance_timeout_ms=rebalance_ms,
            topics=None if topics is None else frozenset(topics),
            owned=None
            if owned is None
            else {self.topics.named(name).topic_id: frozenset(its) for name, its in owned.items()},
            **overrides,
        )
        group = (
            self.groups.get_or_create_consumer_group("g", self.now)
            if request.epoch == 0
            else self.group
        )
        answer = (
            group.leave(request, self.now)
            if request.epoch < 0
            else group.heartbeat(request, "new", self.now, may_describe)
        )
        return self._record_answer(member_id, answer)

    def own(self, member_id: str, **overrides: Any) -> dict[str, list[int]] | None:
        """Sends a heartbeat that reports the whole assignment as owned."""
        return self.beat(member_id, owned=self.owned.get(member_id, {}), **overrides)

    def _record_answer(
        self, member_id: str, answer: ConsumerHeartbeatResult
    ) -> dict[str, list[int]] | None:
        self.epochs[member_id] = answer.epoch
        if answer.assigned is None:
            return None
        assignment = {self.topics.name_of(it): sorted(its) for it, its in answer.assigned.items()}
        self.owned[member_id] = assignment
        return assignment

    def leave(self, member_id: str, epoch: int = -1, **overrides: Any) -> None:
        self.beat(member_id, epoch, **overrides)
        del self.epochs[member_id]

    def share(self, *members: str) -> None:
        """Sends heartbeats until no member receives a new assignment."""
        while sum(self.own(member_id) is not None for member_id in members):
            pass

    # Members of the classic protocol

    def join_classic(self, member_id: str, *topics: str, **overrides: Any) -> JoinResult:
        """Joins, and returns the response, which must not be pending."""
        answer = self.ask_to_join(member_id, *topics, **overrides).answer
        assert answer is not None
        return answer

    def ask_to_join(
        self, member_id: str, *topics: str, **overrides: Any
    ) -> PendingResult[JoinResult]:
        names = overrides.pop("names", ("range",))
        request = JoinRequest(
            member_id,
            "consumer",
            tuple(MemberProtocol(name, metadata(*topics)) for name in names),
            SESSION_MS,
            REBALANCE_MS,
            **overrides,
        )
        group = (
            self.any_group if member_id else self.groups.get_or_create_classic_group("g", self.now)
        )
        if isinstance(group, ConsumerGroup):
            return PendingResult(
                classic_protocol.join(group, request, f"m{len(group.members) + 1}", self.now)
            )
        assert isinstance(group, ClassicGroup)
        return group.join(request, f"m{len(group.members) + 1}", self.now)

    def sync_classic(
        self, member_id: str, generation: int, assigned: Mapping[str, list[int]] | None = None
    ) -> SyncResult:
        """Syncs, and returns the response, which must not be pending."""
        answer = self.ask_to_sync(member_id, generation, assigned).answer
        assert answer is not None
        return answer

    def ask_to_sync(
        self, member_id: str, generation: int, assigned: Mapping[str, list[int]] | None = None
    ) -> PendingResult[SyncResult]:
        partitions = [
            AssignedPartition(topic=name, partitions=its) for name, its in (assigned or {}).items()
        ]
        assignment = b"\0\1" + ConsumerProtocolAssignment(assigned_partitions=partitions).encode(1)
        request = SyncRequest(
            member_id, generation, assignments={} if assigned is None else {member_id: assignment}
        )
        group = self.any_group
        if isinstance(group, ConsumerGroup):
            return PendingResult(classic_protocol.sync(group, request, self.now))
        assert isinstance(group, ClassicGroup)
        return group.sync(request, self.now)

    def beat_classic(self, member_id: str, generation: int) -> None:
        classic_protocol.heartbeat(self.group, member_id, None, generation, self.now)

    def leave_classic(self, *members: str) -> list[str]:
        return classic_protocol.leave(self.group, [LeavingMember(it) for it in members], self.now)
