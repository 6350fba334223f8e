"""What a member is to do next, as data: the shell carries it out, and tells what came of it."""

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
    "MemberIdentity",
    "Parted",
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
    """Who commits offsets, by which a broker knows whether he still may.

    The generation is a member's epoch where it `has_epoch`, in the consumer protocol (KIP-848).
    """

    group_id: str
    member_id: str
    generation: int
    instance_id: str | None = None
    has_epoch: bool = False


class Revoke(NamedTuple):
    """Give partitions up: while still a member, by `until`; or at once, as they are `lost`."""

    places: frozenset[TopicPartition]
    lost: bool
    until: float


class Join(NamedTuple):
    """Send `Membership.join_request` of the topics that are subscribed to."""

    subscription: Subscription


class Lead(NamedTuple):
    """Compute who reads what. With `skip` that stands (KIP-814), and the topics are watched."""

    members: Sequence[JoinGroupResponseMember]
    assignor: Assignor
    skip: bool


class Sync(NamedTuple):
    """Send this SyncGroup."""

    request: SyncGroupRequest


class ApplyAssignment(NamedTuple):
    """Carry out an assignment: first give up by `until`, then begin with what is added."""

    revoked: frozenset[TopicPartition]
    added: tuple[TopicPartition, ...]
    until: float


class Leave(NamedTuple):
    """Tell the coordinator that the member leaves, and why; by `until`."""

    member_id: str
    instance_id: str | None
    reason: str
    until: float

    def request(self, group_id: str, version: int) -> LeaveGroupRequest:
        """The request in the shape that `version` has."""
        if version < _MEMBERS:
            return LeaveGroupRequest(group_id=group_id, member_id=self.member_id)
        one = Leaving(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            reason=self.reason[:LONGEST_REASON],
        )
        return LeaveGroupRequest(group_id=group_id, members=[one])


class Prepare(NamedTuple):
    """Find out what is to be known before a member joins by the consumer protocol (KIP-848)."""

    subscription: Subscription


class Resolve(NamedTuple):
    """Ask for the names of topics that were assigned by their ids (KIP-848)."""

    ids: frozenset[Uuid]


class LeaveByHeartbeat(NamedTuple):
    """Tell the coordinator by the `epoch` that the member leaves (KIP-848); by `until`."""

    member_id: str
    instance_id: str | None
    epoch: int
    reason: str
    until: float

    def request(self, group_id: str) -> ConsumerGroupHeartbeatRequest:
        """The last heartbeat."""
        return ConsumerGroupHeartbeatRequest(
            group_id=group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self.instance_id,
        )


class LeaveIntent(NamedTuple):
    """How a member leaves: by itself or told to, for good where it `ends`."""

    reason: str
    leaves: bool
    ends: bool
    lost: bool
    until: float  # records in hand are waited for
    leave_s: float


#: How a member tells that it leaves.
Parted: TypeAlias = Leave | LeaveByHeartbeat

Step: TypeAlias = (
    Revoke | Join | Lead | Sync | ApplyAssignment | Leave | Prepare | Resolve | LeaveByHeartbeat
)
