"""Defines `Walk`: a `ConsumerMembership` that a test steps through its phases."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kproto.client.core.group_errors import ErrorAction
from kproto.client.groups.consumer.heartbeats import Heartbeat
from kproto.client.groups.consumer.membership import ConsumerMembership
from kproto.client.groups.effects import (
    ApplyAssignment,
    LeaveByHeartbeat,
    PrepareHeartbeat,
    Revoke,
    Step,
)
from kproto.client.groups.heartbeat_phases import Phase
from kproto.client.groups.settings import GroupSettings
from kproto.client.groups.subscription import Subscription, TopicPattern
from kproto.client.metadata.cluster import TopicPartition
from kproto.client.settings import ClientSettings
from kproto.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from kproto.messages.consumer_group_heartbeat_response import Assignment, TopicPartitions
from kproto.protocol.error_codes import code_of, error_of_code
from kproto.wire.errors import BrokerResponseError, KprotoError
from kproto.wire.uuid import Uuid

__all__ = ["IDS", "T0", "T1", "T2", "Walk", "answer_of", "error"]

T0, T1, T2 = ("t", 0), ("t", 1), ("t", 2)

#: Topic ids by name, as in metadata.
IDS = {name: Uuid(bytes([at + 1]) * 16) for at, name in enumerate(("t", "u", "v"))}


def error(name: str) -> BrokerResponseError:
    """Returns the broker error with this name."""
    return error_of_code(code_of(name), "a test")


def answer_of(
    epoch: int,
    tps: Iterable[tuple[str | Uuid, int]] | None = None,
    *,
    member_id: str | None = None,
    interval_ms: int = 1_000,
) -> ConsumerGroupHeartbeatResponse:
    """Returns a heartbeat response that assigns `tps`; a topic is given by name or by id."""
    assignment = None
    if tps is not None:
        by_id: dict[Uuid, list[int]] = {}
        for topic, partition in tps:
            topic_id = topic if isinstance(topic, Uuid) else IDS[topic]
            by_id.setdefault(topic_id, []).append(partition)
        its = [TopicPartitions(topic_id=each, partitions=of) for each, of in by_id.items()]
        assignment = Assignment(topic_partitions=its)
    return ConsumerGroupHeartbeatResponse(
        member_id=member_id,
        member_epoch=epoch,
        heartbeat_interval_ms=interval_ms,
        assignment=assignment,
    )


class Walk:
    """A member of group g that subscribes to topic t by default and sends a heartbeat each second.

    The broker has set a session timeout of 10 s.
    """

    def __init__(
        self,
        wanted: str | Iterable[str] | TopicPattern = "t",
        *,
        version: int = 1,
        may_change_protocol: bool = False,
        **settings: Any,
    ) -> None:
        its: dict[str, Any] = {
            "session_timeout_ms": 10_000,
            "max_poll_interval_ms": 60_000,
        } | settings
        self.settings = GroupSettings("g", **its)
        self.version = version
        self.topics = dict(IDS)
        self.its = ConsumerMembership(
            self.settings,
            ClientSettings(rack="r1"),
            self.name_of,
            may_change_protocol=may_change_protocol,
        )
        self.its.on_session_timeout_known(self.settings.session_timeout_ms)
        self.now = 100.0
        self.owned: set[TopicPartition] = set()
        self.its.subscribe(Subscription.to(wanted), self.now)

    def name_of(self, topic_id: Uuid) -> str | None:
        return next((name for name, its in self.topics.items() if its == topic_id), None)

    @property
    def phase(self) -> Phase:
        return self.its.phase

    def step(self) -> Step | None:
        return self.its.step(self.now, self.owned)

    def prepare(self, *topics: str) -> None:
        """Completes the `PrepareHeartbeat` step: the member subscribes to `topics`.

        Without `topics`, the member subscribes to the topic names of its subscription.
        """
        step = self.step()
        assert isinstance(step, PrepareHeartbeat)
        self.its.on_prepared(step, frozenset(topics) or step.subscription.topics, self.now)

    def beat(self) -> Heartbeat:
        """Advances the time until a heartbeat is due, and returns the heartbeat."""
        if not self.its.heartbeat_due(self.now):
            self.now = self.its.next_at(self.now)
        beat = self.its.heartbeat(self.version, self.now)
        assert beat is not None
        return beat

    def answered(
        self, beat: Heartbeat, epoch: int, *tps: tuple[str | Uuid, int], took: float = 0.1
    ) -> None:
        """Answers `beat` with the assignment of `tps`, after `took` seconds."""
        self.now += took
        assert self.its.on_heartbeat_response(beat, answer_of(epoch, tps), self.now) is None

    def on_heartbeat_response(
        self, epoch: int, tps: Iterable[tuple[str | Uuid, int]] | None = None, **more: Any
    ) -> ConsumerGroupHeartbeatRequest:
        """Sends a heartbeat and answers it; returns the request."""
        beat = self.beat()
        self.now += 0.1
        assert self.its.on_heartbeat_response(beat, answer_of(epoch, tps, **more), self.now) is None
        return beat.request

    def refused(self, what: str | KprotoError, words: str = "why") -> ErrorAction | None:
        """Sends a heartbeat that fails with `what`: the name of an error code, or an exception."""
        beat = self.beat()
        self.now += 0.1
        if isinstance(what, KprotoError):
            return self.its.on_heartbeat_response(beat, what, self.now)
        response = ConsumerGroupHeartbeatResponse(error_code=code_of(what), error_message=words)
        return self.its.on_heartbeat_response(beat, response, self.now)

    def apply(self) -> ApplyAssignment:
        step = self.step()
        assert isinstance(step, ApplyAssignment)
        self.carry_out(step)
        return step

    def carry_out(self, step: ApplyAssignment) -> None:
        assert step.revoked <= self.owned
        self.owned -= step.revoked
        assert self.owned.isdisjoint(step.added)
        self.owned.update(step.added)
        self.its.on_assignment_applied(step, self.now)

    def revoke(self) -> Revoke:
        step = self.step()
        assert isinstance(step, Revoke)
        self.owned -= step.partitions
        self.its.on_revoked(self.now)
        return step

    def leave(self) -> LeaveByHeartbeat:
        step = self.step()
        assert isinstance(step, LeaveByHeartbeat)
        self.its.on_left(self.now)
        return step

    # To a phase

    def to(self, phase: Phase, *tps: TopicPartition) -> Walk:
        """Enters `phase` by the shortest path, and returns the walk.

        Unless `phase` is JOINING, the member gets epoch 5 and the assignment `tps` on the way.
        """
        match phase:
            case Phase.JOINING:
                self.prepare()
            case Phase.RECONCILING:
                self.to(Phase.JOINING).on_heartbeat_response(5, tps)
            case Phase.ACKNOWLEDGING:
                self.to(Phase.RECONCILING, *tps).apply()
            case Phase.STABLE:
                self.to(Phase.ACKNOWLEDGING, *tps).on_heartbeat_response(5)
            case Phase.FENCED:
                self.to(Phase.STABLE, *tps).refused("FENCED_MEMBER_EPOCH")
            case Phase.PREPARE_LEAVING:
                self.to(Phase.STABLE, *tps).its.subscribe(None, self.now)
            case Phase.LEAVING:
                self.to(Phase.PREPARE_LEAVING, *tps).revoke()
            case Phase.STALE:
                assert self.to(Phase.STABLE, *tps).its.on_poll_timeout(self.now)
                self.out()
            case Phase.UNSUBSCRIBED:
                self.to(Phase.LEAVING, *tps).leave()
            case Phase.FATAL:
                self.to(Phase.STABLE, *tps)
                self.its.begin_leave("a test", self.now, leaves=True, ends=True)
                self.out()
        assert self.phase is phase
        return self

    def out(self) -> None:
        self.revoke()
        self.leave()
