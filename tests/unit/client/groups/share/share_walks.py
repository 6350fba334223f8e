"""Defines `ShareWalk`: a `ShareMembership` that a test steps through its phases."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kproto.client.core.group_errors import ErrorAction
from kproto.client.groups.effects import (
    ApplyAssignment,
    LeaveByHeartbeat,
    PrepareHeartbeat,
    Revoke,
    Step,
)
from kproto.client.groups.heartbeat_phases import Phase
from kproto.client.groups.settings import GroupSettings
from kproto.client.groups.share.heartbeats import ShareHeartbeat
from kproto.client.groups.share.membership import ShareMembership
from kproto.client.groups.subscription import Subscription
from kproto.client.metadata.cluster import TopicPartition
from kproto.client.settings import ClientSettings
from kproto.messages import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from kproto.messages.share_group_heartbeat_response import Assignment, TopicPartitions
from kproto.protocol.error_codes import code_of
from kproto.wire.errors import KprotoError
from kproto.wire.uuid import Uuid

__all__ = ["IDS", "T0", "T1", "ShareWalk", "share_answer"]

T0, T1 = ("t", 0), ("t", 1)

#: Topic ids by name, as in metadata.
IDS = {name: Uuid(bytes([at + 1]) * 16) for at, name in enumerate(("t", "u"))}


def share_answer(
    epoch: int, tps: Iterable[tuple[str, int]] | None = None, *, interval_ms: int = 1_000
) -> ShareGroupHeartbeatResponse:
    """Returns a heartbeat response that assigns `tps`."""
    assignment = None
    if tps is not None:
        by_id: dict[Uuid, list[int]] = {}
        for topic, partition in tps:
            by_id.setdefault(IDS[topic], []).append(partition)
        its = [TopicPartitions(topic_id=each, partitions=of) for each, of in by_id.items()]
        assignment = Assignment(topic_partitions=its)
    return ShareGroupHeartbeatResponse(
        member_id="m", member_epoch=epoch, heartbeat_interval_ms=interval_ms, assignment=assignment
    )


class ShareWalk:
    """A member of the share group g that subscribes to topic t, and heartbeats each second."""

    def __init__(self, **settings: Any) -> None:
        its: dict[str, Any] = {"max_poll_interval_ms": 60_000} | settings
        self.settings = GroupSettings("g", **its)
        self.topics = dict(IDS)
        self.its = ShareMembership(self.settings, ClientSettings(rack="r1"), self.name_of)
        self.now = 100.0
        self.owned: set[TopicPartition] = set()
        self.its.subscribe(Subscription.to("t"), self.now)

    def name_of(self, topic_id: Uuid) -> str | None:
        return next((name for name, its in self.topics.items() if its == topic_id), None)

    @property
    def phase(self) -> Phase:
        return self.its.phase

    def step(self) -> Step | None:
        return self.its.step(self.now, self.owned)

    def prepare(self) -> None:
        """Completes the `PrepareHeartbeat` step."""
        step = self.step()
        assert isinstance(step, PrepareHeartbeat)
        self.its.on_prepared(step, step.subscription.topics, self.now)

    def beat(self) -> ShareHeartbeat:
        """Advances the time until a heartbeat is due, and returns the heartbeat."""
        if not self.its.heartbeat_due(self.now):
            self.now = self.its.next_at(self.now)
        beat = self.its.heartbeat(self.now)
        assert beat is not None
        return beat

    def answered(
        self, epoch: int, tps: Iterable[tuple[str, int]] | None = None, **more: Any
    ) -> ShareGroupHeartbeatRequest:
        """Sends a heartbeat and answers it; returns the request."""
        beat = self.beat()
        self.now += 0.1
        answer = share_answer(epoch, tps, **more)
        assert self.its.on_heartbeat_response(beat, answer, self.now) is None
        return beat.request

    def refused(self, what: str | KprotoError) -> ErrorAction | None:
        """Sends a heartbeat that fails with `what`: the name of an error code, or an exception."""
        beat = self.beat()
        self.now += 0.1
        if isinstance(what, KprotoError):
            return self.its.on_heartbeat_response(beat, what, self.now)
        response = ShareGroupHeartbeatResponse(error_code=code_of(what), error_message="why")
        return self.its.on_heartbeat_response(beat, response, self.now)

    def apply(self) -> ApplyAssignment:
        step = self.step()
        assert isinstance(step, ApplyAssignment)
        self.owned -= step.revoked
        self.owned.update(step.added)
        self.its.on_assignment_applied(step, self.now)
        return step

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

    def to(self, phase: Phase, *tps: TopicPartition) -> ShareWalk:
        """Enters `phase` by the shortest path, with epoch 5 and the assignment `tps`."""
        match phase:
            case Phase.JOINING:
                self.prepare()
            case Phase.RECONCILING:
                self.to(Phase.JOINING).answered(5, tps)
            case Phase.STABLE:
                self.to(Phase.RECONCILING, *tps).apply()
            case Phase.FENCED:
                self.to(Phase.STABLE, *tps).refused("FENCED_MEMBER_EPOCH")
            case Phase.PREPARE_LEAVING:
                self.to(Phase.STABLE, *tps).its.subscribe(None, self.now)
            case Phase.LEAVING:
                self.to(Phase.PREPARE_LEAVING, *tps).revoke()
            case Phase.STALE:
                assert self.to(Phase.STABLE, *tps).its.on_poll_timeout(self.now)
                self.revoke()
                self.leave()
            case Phase.FATAL:
                self.to(Phase.LEAVING, *tps)
                self.its.begin_leave("closed", self.now, leaves=True, ends=True)
                self.leave()
        assert self.phase is phase
        return self
