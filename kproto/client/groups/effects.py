"""Defines the effects that a membership returns and the driver carries out, as plain data."""

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
    "Join",
    "Lead",
    "Leave",
    "LeaveByHeartbeat",
    "LeaveIntent",
    "LeaveRequest",
    "MemberIdentity",
    "Prepare",
    "Resolve",
    "Revoke",
    "Step",
    "Sync",
]

#: The length to which reasons are truncated, as brokers do (KIP-800).
MAX_REASON_LENGTH: Final = 255

#: The first version of LeaveGroup with a list of members (KIP-345).
_MEMBERS: Final = 3


class MemberIdentity(NamedTuple):
    """The identity in a commit, by which the broker fences members of earlier generations.

    `generation` is the member epoch if it `has_epoch`, in the consumer protocol (KIP-848).
    """

    group_id: str
    member_id: str
    generation: int
    instance_id: str | None = None
    has_epoch: bool = False


class Revoke(NamedTuple):
    """Revokes partitions by `until`, while the member can still commit; or drops `lost` ones at
    once.
    """

    partitions: frozenset[TopicPartition]
    lost: bool
    until: float


class Join(NamedTuple):
    """Sends `ClassicMembership.join_request` for the subscribed topics."""

    subscription: Subscription


class Lead(NamedTuple):
    """Computes the assignment as the leader. With `skip` the leader keeps the previous assignment
    (KIP-814) and only watches the topics.
    """

    members: Sequence[JoinGroupResponseMember]
    assignor: Assignor
    skip: bool


class Sync(NamedTuple):
    """Sends `request`."""

    request: SyncGroupRequest


class ApplyAssignment(NamedTuple):
    """Applies an assignment: revokes partitions by `until`, then starts the added ones."""

    revoked: frozenset[TopicPartition]
    added: tuple[TopicPartition, ...]
    until: float


class Leave(NamedTuple):
    """Sends LeaveGroup with a reason; waits for the response until the time `until`."""

    member_id: str
    instance_id: str | None
    reason: str
    until: float

    def request(self, group_id: str, version: int) -> LeaveGroupRequest:
        """Returns the request for this `version`."""
        if version < _MEMBERS:
            return LeaveGroupRequest(group_id=group_id, member_id=self.member_id)
        member = Leaving(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            reason=self.reason[:MAX_REASON_LENGTH],
        )
        return LeaveGroupRequest(group_id=group_id, members=[member])


class Prepare(NamedTuple):
    """Finds the coordinator, the session timeout and the topics to subscribe to, before a member
    joins by the consumer protocol (KIP-848).
    """

    subscription: Subscription


class Resolve(NamedTuple):
    """Requests the names of assigned topics, which the assignment has by id (KIP-848)."""

    ids: frozenset[Uuid]


class LeaveByHeartbeat(NamedTuple):
    """Sends a heartbeat with the `epoch` of a leaving member (KIP-848); waits for the response
    until the time `until`.
    """

    member_id: str
    instance_id: str | None
    epoch: int
    reason: str
    until: float

    def request(self, group_id: str) -> ConsumerGroupHeartbeatRequest:
        """Returns the last heartbeat."""
        return ConsumerGroupHeartbeatRequest(
            group_id=group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self.instance_id,
        )


class LeaveIntent(NamedTuple):
    """The options of a leave; `ends` if the member will not rejoin."""

    reason: str
    leaves: bool  # sends a leave request
    ends: bool
    lost: bool  # the partitions are lost already
    until: float  # the end of the wait for records in flight
    leave_s: float  # the timeout of the leave request


#: The leave request of each protocol.
LeaveRequest: TypeAlias = Leave | LeaveByHeartbeat

Step: TypeAlias = (
    Revoke | Join | Lead | Sync | ApplyAssignment | Leave | Prepare | Resolve | LeaveByHeartbeat
)
