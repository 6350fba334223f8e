"""Defines the effects of a membership: what the driver carries out, as data."""

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
    "LONGEST_REASON",
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

#: A reason is cut there, as brokers keep no more of it (KIP-800).
LONGEST_REASON: Final = 255

#: LeaveGroup names several members from this version on (KIP-345).
_MEMBERS: Final = 3


class MemberIdentity(NamedTuple):
    """The member that commits offsets, by which a broker checks that it still may.

    `generation` is the member epoch if it `has_epoch`, in the consumer protocol (KIP-848).
    """

    group_id: str
    member_id: str
    generation: int
    instance_id: str | None = None
    has_epoch: bool = False


class Revoke(NamedTuple):
    """Revokes partitions while they can still be committed, by `until`; or drops `lost` ones at
    once.
    """

    partitions: frozenset[TopicPartition]
    lost: bool
    until: float


class Join(NamedTuple):
    """Sends `ClassicMembership.join_request` for the subscribed topics."""

    subscription: Subscription


class Lead(NamedTuple):
    """Computes the assignment as the leader. With `skip` it stays (KIP-814), and the topics are
    watched.
    """

    members: Sequence[JoinGroupResponseMember]
    assignor: Assignor
    skip: bool


class Sync(NamedTuple):
    """Sends this SyncGroup."""

    request: SyncGroupRequest


class ApplyAssignment(NamedTuple):
    """Applies an assignment: revokes partitions by `until`, then starts the added ones."""

    revoked: frozenset[TopicPartition]
    added: tuple[TopicPartition, ...]
    until: float


class Leave(NamedTuple):
    """Tells the coordinator that the member leaves, and why; by `until`."""

    member_id: str
    instance_id: str | None
    reason: str
    until: float

    def request(self, group_id: str, version: int) -> LeaveGroupRequest:
        """Returns the request in the shape of `version`."""
        if version < _MEMBERS:
            return LeaveGroupRequest(group_id=group_id, member_id=self.member_id)
        one = Leaving(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            reason=self.reason[:LONGEST_REASON],
        )
        return LeaveGroupRequest(group_id=group_id, members=[one])


class Prepare(NamedTuple):
    """Finds out what a member must know before it joins by the consumer protocol (KIP-848)."""

    subscription: Subscription


class Resolve(NamedTuple):
    """Requests the names of topics that were assigned by their ids (KIP-848)."""

    ids: frozenset[Uuid]


class LeaveByHeartbeat(NamedTuple):
    """Tells the coordinator by the `epoch` that the member leaves (KIP-848); by `until`."""

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
    """How a member leaves: whether the coordinator is told, and whether it `ends` for good."""

    reason: str
    leaves: bool
    ends: bool
    lost: bool
    until: float  # records in hand are waited for
    leave_s: float


#: How a member tells that it leaves.
LeaveRequest: TypeAlias = Leave | LeaveByHeartbeat

Step: TypeAlias = (
    Revoke | Join | Lead | Sync | ApplyAssignment | Leave | Prepare | Resolve | LeaveByHeartbeat
)
