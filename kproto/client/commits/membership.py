"""`GroupMembership`: the member of a group, as the group consumer and the committer use it.

Beside it the one table of errors that mean that a request was not this member's to make.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final, Protocol, TypeVar

from ...wire.errors import BrokerResponseError, KprotoError
from ...wire.uuid import Uuid
from ..metadata.cluster import TopicPartition
from .requests import Identity

__all__ = ["MEMBER_ERRORS", "GroupMembership", "MemberError", "member_error"]

S_contra = TypeVar("S_contra", contravariant=True)


class MemberError(Enum):
    """Why a coordinator refuses a commit, or a fetch of committed offsets, of a member."""

    OVERTAKEN = "the member is in the group, and a rebalance has overtaken the request"
    FENCED = "the member is out of the group: another one may have its partitions"


#: For commits and for fetches of committed offsets. KIP-345 fences static members,
#: STALE_MEMBER_EPOCH is of KIP-848.
MEMBER_ERRORS: Final = {
    "ILLEGAL_GENERATION": MemberError.OVERTAKEN,
    "REBALANCE_IN_PROGRESS": MemberError.OVERTAKEN,
    "STALE_MEMBER_EPOCH": MemberError.OVERTAKEN,
    "UNKNOWN_MEMBER_ID": MemberError.FENCED,
    "FENCED_INSTANCE_ID": MemberError.FENCED,
}


def member_error(error: KprotoError) -> MemberError | None:
    """Returns what the error says of the member that sent the request; None if nothing."""
    if not isinstance(error, BrokerResponseError):
        return None
    return MEMBER_ERRORS.get(error.name)


class GroupMembership(Protocol[S_contra]):
    """A member of a group, of either protocol, without records; S_contra is its subscription."""

    @property
    def identity(self) -> Identity | None:
        """Member id and generation or epoch; None while the member is in no stable generation."""
        ...

    @property
    def assignment_valid_until(self) -> float:
        """Until when the broker surely counts the member, in seconds of the clock."""
        ...

    def start(self) -> None:
        """Joins the group once there is a subscription."""
        ...

    async def leave(self, leave: bool, reason: str) -> None:
        """Revokes all partitions, leaves the group if `leave`, and ends the member."""
        ...

    async def close(self) -> None:
        """Ends the member at once; the coordinator is told nothing."""
        ...

    def subscribe(self, subscription: S_contra) -> None:
        """Replaces the subscription."""
        ...

    def unsubscribe(self) -> None:
        """Revokes all partitions; a dynamic member leaves the group."""
        ...

    def request_rejoin(self, reason: str) -> None:
        """Requests a rebalance; brokers log the reason (KIP-800)."""
        ...

    def on_topics_changed(self) -> None:
        """Metadata may show other topics or partitions."""
        ...

    def on_poll(self) -> None:
        """The consumer polls: a member that left because polls were late joins again."""
        ...

    def is_assigned(self, tp: TopicPartition, topic_id: Uuid) -> bool:
        """Returns True if the partition is assigned by that topic id."""
        ...

    def on_commit_refused(self, error: BrokerResponseError, identity: Any) -> None:
        """The coordinator refused a request of `identity`, which the member has given."""
        ...
