"""Defines `Walk`: a `ClassicMembership` that a test steps through its phases.

The walk has its own clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kproto.client.core.group_errors import ErrorAction
from kproto.client.groups.assignors.subscriptions import Subscription as MemberSubscription
from kproto.client.groups.classic.membership import ClassicMembership
from kproto.client.groups.classic.phases import Phase
from kproto.client.groups.effects import (
    ApplyAssignment,
    ComputeAssignment,
    Revoke,
    SendJoinGroup,
    SendLeaveGroup,
    SendSyncGroup,
    Step,
)
from kproto.client.groups.protocol_data import assignment_bytes, subscription_bytes
from kproto.client.groups.settings import GroupSettings
from kproto.client.groups.subscription import Subscription
from kproto.client.metadata.cluster import TopicPartition
from kproto.client.settings import ClientSettings
from kproto.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupResponse,
)
from kproto.messages.join_group_response import JoinGroupResponseMember
from kproto.protocol.error_codes import code_of, error_of_code
from kproto.wire.errors import BrokerResponseError

__all__ = ["MEMBER", "OTHER", "T0", "T1", "Walk", "error"]

MEMBER, OTHER = "member-1", "member-2"
T0, T1 = ("t", 0), ("t", 1)


def error(name: str) -> BrokerResponseError:
    """Returns the broker error with this name."""
    return error_of_code(code_of(name), "a test")


class Walk:
    """A member of group g and topic t, with a session of 10 s and a heartbeat each second."""

    def __init__(self, topic: str = "t", **settings: Any) -> None:
        its: dict[str, Any] = {
            "session_timeout_ms": 10_000,
            "heartbeat_interval_ms": 1_000,
            "max_poll_interval_ms": 60_000,
            "assignors": ("range",),
        } | settings
        self.settings = GroupSettings("g", **its)
        self.its = ClassicMembership(self.settings, ClientSettings(rack="r1"))
        self.now = self.sent_at = 100.0
        self.owned: set[TopicPartition] = set()
        self.join_sent: JoinGroupRequest | None = None
        self.its.subscribe(Subscription.to(topic), self.now)

    @property
    def phase(self) -> Phase:
        return self.its.phase

    def step(self) -> Step | None:
        return self.its.step(self.now, self.owned)

    def revoke(self) -> Revoke:
        """Carries out the next step, which must be a `Revoke`."""
        step = self.step()
        assert isinstance(step, Revoke)
        self.owned -= step.partitions
        self.its.on_revoked(self.now)
        return step

    def join(self) -> JoinGroupRequest:
        """Carries out the next step, which must be a JoinGroup."""
        step = self.step()
        assert isinstance(step, SendJoinGroup)
        self.sent_at = self.now
        self.join_sent = self.its.join_request(step.subscription.topics, self.owned)
        return self.join_sent

    def join_refused(self, name: str, member_id: str = "") -> ErrorAction | None:
        answer = JoinGroupResponse(error_code=code_of(name), member_id=member_id)
        return self.its.on_join_response(answer, self.sent_at, self.now)

    def joined(
        self,
        generation: int = 1,
        *,
        leads: bool = False,
        skip: bool = False,
        protocol: str = "range",
    ) -> None:
        """Answers the JoinGroup."""
        members = [
            JoinGroupResponseMember(
                member_id=each, metadata=subscription_bytes(MemberSubscription(("t",)))
            )
            for each in (MEMBER, OTHER)
        ]
        answer = JoinGroupResponse(
            generation_id=generation,
            protocol_type="consumer",
            protocol_name=protocol,
            leader=MEMBER if leads else OTHER,
            member_id=MEMBER,
            skip_assignment=skip,
            members=members if leads else [],
        )
        assert self.its.on_join_response(answer, self.sent_at, self.now) is None

    def on_assignment_computed(self, assignment: Mapping[str, Iterable[TopicPartition]]) -> None:
        step = self.step()
        assert isinstance(step, ComputeAssignment)
        self.its.on_assignment_computed(
            {member_id: list(tps) for member_id, tps in assignment.items()}
        )

    def sync_refused(self, name: str) -> ErrorAction | None:
        assert isinstance(self.step(), SendSyncGroup)
        return self.its.on_sync_response(
            SyncGroupResponse(error_code=code_of(name)), self.now, self.now
        )

    def synced(self, *tps: TopicPartition, protocol: str | None = "range") -> None:
        assert isinstance(self.step(), SendSyncGroup)
        answer = SyncGroupResponse(
            protocol_type="consumer", protocol_name=protocol, assignment=assignment_bytes(tps)
        )
        assert self.its.on_sync_response(answer, self.now, self.now) is None

    def apply(self) -> ApplyAssignment:
        step = self.step()
        assert isinstance(step, ApplyAssignment)
        self.owned -= step.revoked
        assert self.owned.isdisjoint(step.added)
        self.owned.update(step.added)
        self.its.on_assignment_applied(step, self.now)
        return step

    def leave(self) -> SendLeaveGroup:
        step = self.step()
        assert isinstance(step, SendLeaveGroup)
        self.its.on_left(self.now)
        return step

    def heartbeat(self) -> HeartbeatRequest:
        """Advances the time until a heartbeat is due, and returns the heartbeat."""
        self.now = max(self.now, self.its.next_at(self.now))
        request = self.its.heartbeat(self.now)
        assert request is not None
        return request

    def on_heartbeat_response(
        self, name: str | None = None, took: float = 0.1
    ) -> ErrorAction | None:
        """Sends a heartbeat that succeeds after `took` seconds, or fails with the error `name`."""
        request, sent_at = self.heartbeat(), self.now
        self.now += took
        answer = None if name is None else error(name)
        return self.its.on_heartbeat_response(request, answer, sent_at, self.now)

    # To a phase

    def to(self, phase: Phase, *tps: TopicPartition) -> Walk:
        """Enters `phase` by the shortest path, and returns the walk.

        The JoinGroup response has generation 1, and the SyncGroup response assigns `tps`.
        """
        match phase:
            case Phase.JOINING:
                self.revoke()
                self.join()
            case Phase.LEADING:
                self.to(Phase.JOINING).joined(leads=True, protocol=self.protocol)
            case Phase.SYNCING:
                self.to(Phase.JOINING).joined(protocol=self.protocol)
            case Phase.ASSIGNING:
                self.to(Phase.SYNCING).synced(*tps, protocol=self.protocol)
            case Phase.STABLE:
                self.to(Phase.ASSIGNING, *tps).apply()
            case Phase.PREPARE_LEAVING:
                self.to(Phase.STABLE, *tps).its.subscribe(None, self.now)
            case Phase.LEAVING:
                self.to(Phase.PREPARE_LEAVING, *tps).revoke()
            case Phase.UNSUBSCRIBED:
                assert self.to(Phase.STABLE, *tps).its.on_poll_timeout(self.now)
                self.out()
            case Phase.FATAL:
                self.to(Phase.STABLE, *tps).begin_leave(ends=True)
                self.out()
        assert self.phase is phase
        return self

    @property
    def protocol(self) -> str:
        return self.settings.resolved_assignors[0].name

    def begin_leave(self, *, ends: bool, leaves: bool = True) -> None:
        self.its.begin_leave("a test", self.now, leaves=leaves, ends=ends)

    def out(self) -> None:
        self.revoke()
        self.leave()
