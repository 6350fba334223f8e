"""Defines the effects that a membership returns and the driver carries out, as plain data.

A membership is the state machine of a member. Times are in seconds of the client's clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from ...messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from ...messages.join_group_response import JoinGroupResponseMember
from ...messages.leave_group_request import LeaveGroupRequest
from ...messages.leave_group_request import MemberIdentity as Leaving
from ...messages.sync_group_request import SyncGroupRequest
from ...wire.uuid import Uuid
from ..metadata.cluster import TopicPartition
from .assignor import Assignor
from .subscription import Subscription

__all__ = [
    "MAX_REASON_LENGTH",
    "ApplyAssignment",
    "ComputeAssignment",
    "LeaveByHeartbeat",
    "LeaveIntent",
    "LeaveRequest",
    "MemberIdentity",
    "PrepareHeartbeat",
    "ResolveTopicNames",
    "Revoke",
    "SendJoinGroup",
    "SendLeaveGroup",
    "SendSyncGroup",
    "Step",
]

#: The most characters of the reason in a request; brokers truncate longer reasons, too (KIP-800).
MAX_REASON_LENGTH: Final = 255

#: The first version of LeaveGroup with a list of members (KIP-345).
_MEMBERS: Final = 3


class MemberIdentity(NamedTuple):
    """The fields of a commit by which the broker fences members of earlier generations.

    In the consumer protocol (KIP-848) `has_epoch` is True, and `generation` is the member epoch.
    """

    group_id: str
    member_id: str
    generation: int
    instance_id: str | None = None
    has_epoch: bool = False


class Revoke(NamedTuple):
    """Revokes partitions; the revocation, with its commit, must end by the time `until`.

    If `lost` is True, the partitions are dropped at once, without a revocation and without a
    commit.
    """

    partitions: frozenset[TopicPartition]
    lost: bool
    until: float


class SendJoinGroup(NamedTuple):
    """Sends the JoinGroup of `ClassicMembership.join_request` for the topics of `subscription`."""

    subscription: Subscription


class ComputeAssignment(NamedTuple):
    """Computes the assignment as the leader, with `assignor`.

    If `skip` is True, the group keeps the previous assignment (KIP-814): the leader only watches
    the topics.
    """

    members: Sequence[JoinGroupResponseMember]
    assignor: Assignor
    skip: bool


class SendSyncGroup(NamedTuple):
    """Sends the SyncGroup `request`, whose response has the assignment of the member."""

    request: SyncGroupRequest


class ApplyAssignment(NamedTuple):
    """Applies an assignment.

    Revokes the `revoked` partitions by the time `until`, then starts the `added` partitions.
    """

    revoked: frozenset[TopicPartition]
    added: tuple[TopicPartition, ...]
    until: float


class SendLeaveGroup(NamedTuple):
    """Sends LeaveGroup with a reason; waits for the response until the time `until`."""

    member_id: str
    instance_id: str | None
    reason: str
    until: float

    def request(self, group_id: str, version: int) -> LeaveGroupRequest:
        """Returns LeaveGroup for `version`: v3 added the instance id, and v5 the reason."""
        if version < _MEMBERS:
            return LeaveGroupRequest(group_id=group_id, member_id=self.member_id)
        member = Leaving(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            reason=self.reason[:MAX_REASON_LENGTH],
        )
        return LeaveGroupRequest(group_id=group_id, members=[member])


class PrepareHeartbeat(NamedTuple):
    """Determines the topics to subscribe to in the next heartbeat (KIP-848).

    Before a join, first finds the coordinator, checks the protocol of the group, and requests the
    session timeout.
    """

    subscription: Subscription


class ResolveTopicNames(NamedTuple):
    """Requests the names of assigned topics: the assignment has only their ids (KIP-848)."""

    ids: frozenset[Uuid]


class LeaveByHeartbeat(NamedTuple):
    """Sends the last heartbeat, with the `epoch` of a leaving member (KIP-848).

    Waits for the response until the time `until`.
    """

    member_id: str
    instance_id: str | None
    epoch: int
    reason: str
    until: float

    def request(self, group_id: str) -> ConsumerGroupHeartbeatRequest:
        """Returns the heartbeat by which the member leaves, with `epoch` as its member epoch."""
        return ConsumerGroupHeartbeatRequest(
            group_id=group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self.instance_id,
        )


class LeaveIntent(NamedTuple):
    """The options of a leave; `ends` is True if the member will not rejoin."""

    reason: str
    leaves: bool  # sends a leave request
    ends: bool
    lost: bool  # the partitions are lost already
    until: float  # the end of the wait for records in flight
    leave_s: float  # the timeout of the leave request


#: The leave request of each protocol.
LeaveRequest: TypeAlias = SendLeaveGroup | LeaveByHeartbeat

Step: TypeAlias = (
    Revoke
    | SendJoinGroup
    | ComputeAssignment
    | SendSyncGroup
    | ApplyAssignment
    | SendLeaveGroup
    | PrepareHeartbeat
    | ResolveTopicNames
    | LeaveByHeartbeat
)
