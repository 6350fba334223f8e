"""A group of the consumer protocol whose time a test turns, and what is asked of it in one line.

What it stores goes through bytes, so that another coordinator reads it as it would from a log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from kproto.broker.api_error import api_error
from kproto.broker.groups import (
    AnyGroup,
    ClassicGroup,
    ClockReading,
    ConsumerGroup,
    ConsumerGroupConfig,
    GroupConfig,
    GroupMetadataManager,
    JoinRequest,
    JoinResult,
    LeaveRequest,
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
from kproto.messages.consumer_protocol_assignment import TopicPartition as Given
from kproto.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kproto.records import Record
from kproto.stored.coordinator_records import CoordinatorRecord, encode_coordinator_record
from tests.unit.broker.groups.classic_group_driver import DATE_MS

__all__ = ["REBALANCE_MS", "SESSION_MS", "ConsumerPlay", "metadata"]

SESSION_MS: Final = 45_000
REBALANCE_MS: Final = 60_000


def metadata(*topics: str) -> bytes:
    """What a classic member says that reads topics."""
    return b"\0\3" + ConsumerProtocolSubscription(topics=sorted(topics)).encode(3)


class ConsumerPlay:
    """Group `g`; topics t, u and v have 6, 3 and 2 partitions. `refuses` is an error of the log.

    A first rebalance of classic members takes `delay_ms`.
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
            GroupConfig(self._delay_ms, 300_000, 100), self.limits, self.topics
        )
        groups.write = self._write
        return groups

    def _write(
        self, group_id: str, records: Sequence[CoordinatorRecord], now: ClockReading
    ) -> None:
        assert (group_id, now.ms <= self.ms) == ("g", True)
        if self.refuses:
            raise api_error(self.refuses, "there is no room")
        self.log += records

    def move(self) -> None:
        """Another coordinator has read what was stored."""
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

    def join(self, who: str, *topics: str, **given: Any) -> dict[str, list[int]] | None:
        fields = {"topics": topics, "owned": {}, "rebalance_ms": REBALANCE_MS, **given}
        return self.beat(who, 0, **fields)

    def beat(
        self,
        who: str,
        epoch: int | None = None,
        *,
        topics: Iterable[str] | None = None,
        owned: Mapping[str, Iterable[int]] | None = None,
        rebalance_ms: int = -1,
        may_describe: Callable[[str], bool] = lambda topic: True,
        **given: Any,
    ) -> dict[str, list[int]] | None:
        """What `who` is told to hold, None for nothing that is new. Raises what the group does."""
        asked = ConsumerHeartbeat(
            who,
            self.epochs.get(who, 0) if epoch is None else epoch,
            rebalance_timeout_ms=rebalance_ms,
            topics=None if topics is None else frozenset(topics),
            owned=None
            if owned is None
            else {self.topics.named(name).topic_id: frozenset(its) for name, its in owned.items()},
            **given,
        )
        group = (
            self.groups.get_or_create_consumer_group("g", self.now)
            if asked.epoch == 0
            else self.group
        )
        answer = (
            group.leave(asked, self.now)
            if asked.epoch < 0
            else group.heartbeat(asked, "new", self.now, may_describe)
        )
        return self._told(who, answer)

    def own(self, who: str, **given: Any) -> dict[str, list[int]] | None:
        """`who` tells that it holds what it was told to."""
        return self.beat(who, owned=self.owned.get(who, {}), **given)

    def _told(self, who: str, answer: ConsumerHeartbeatResult) -> dict[str, list[int]] | None:
        self.epochs[who] = answer.epoch
        if answer.assigned is None:
            return None
        told = {self.topics.name_of(it): sorted(its) for it, its in answer.assigned.items()}
        self.owned[who] = told
        return told

    def leave(self, who: str, epoch: int = -1, **given: Any) -> None:
        self.beat(who, epoch, **given)
        del self.epochs[who]

    def share(self, *members: str) -> None:
        """Let members go on until nobody hears anything that is new."""
        while sum(self.own(who) is not None for who in members):
            pass

    # Members of the classic protocol

    def join_classic(self, who: str, *topics: str, **given: Any) -> JoinResult:
        """What it hears at once."""
        answer = self.ask_to_join(who, *topics, **given).answer
        assert answer is not None
        return answer

    def ask_to_join(self, who: str, *topics: str, **given: Any) -> PendingResult[JoinResult]:
        names = given.pop("names", ("range",))
        asked = JoinRequest(
            who,
            "consumer",
            tuple(MemberProtocol(name, metadata(*topics)) for name in names),
            SESSION_MS,
            REBALANCE_MS,
            **given,
        )
        group = self.any_group if who else self.groups.get_or_create_classic_group("g", self.now)
        if isinstance(group, ConsumerGroup):
            return PendingResult(
                classic_protocol.join(group, asked, f"m{len(group.members) + 1}", self.now)
            )
        return group.join(asked, f"m{len(group.members) + 1}", self.now)

    def sync_classic(
        self, who: str, generation: int, assigned: Mapping[str, list[int]] | None = None
    ) -> SyncResult:
        """What it hears at once."""
        answer = self.ask_to_sync(who, generation, assigned).answer
        assert answer is not None
        return answer

    def ask_to_sync(
        self, who: str, generation: int, assigned: Mapping[str, list[int]] | None = None
    ) -> PendingResult[SyncResult]:
        given = [Given(topic=name, partitions=its) for name, its in (assigned or {}).items()]
        told = b"\0\1" + ConsumerProtocolAssignment(assigned_partitions=given).encode(1)
        asked = SyncRequest(who, generation, assignments={} if assigned is None else {who: told})
        group = self.any_group
        if isinstance(group, ConsumerGroup):
            return PendingResult(classic_protocol.sync(group, asked, self.now))
        return group.sync(asked, self.now)

    def beat_classic(self, who: str, generation: int) -> None:
        classic_protocol.heartbeat(self.group, who, None, generation, self.now)

    def leave_classic(self, *members: str) -> list[str]:
        return classic_protocol.leave(self.group, [LeaveRequest(it) for it in members], self.now)
