"""Defines the request and the result of ShareGroupHeartbeat, and validates requests (KIP-932)."""

from __future__ import annotations

from dataclasses import dataclass

from ...api_error import api_error
from ..consumer.consumer_group_member import JOIN_EPOCH, LEAVE_EPOCH, Partitions

__all__ = ["ShareHeartbeat", "ShareHeartbeatResult", "validate_share_heartbeat"]


@dataclass(frozen=True, slots=True)
class ShareHeartbeat:
    """Holds a ShareGroupHeartbeat request; fields that are None do not change the member."""

    member_id: str
    epoch: int
    rack: str | None = None
    topics: frozenset[str] | None = None
    client_id: str = ""
    client_host: str = ""


@dataclass(frozen=True, slots=True)
class ShareHeartbeatResult:
    """Holds the result of a heartbeat.

    `assigned` is None if the response has no assignment. The response has an assignment if the
    member joins, if the request has a subscription, or if the assignment has changed.
    """

    member_id: str
    epoch: int
    heartbeat_interval_ms: int = 0
    assigned: Partitions | None = None


def validate_share_heartbeat(group_id: str, request: ShareHeartbeat) -> None:
    """Raises INVALID_REQUEST for a request that no group accepts, in the order of Kafka's checks.

    The member id, the group id and the rack must not be empty. The first request must have a
    subscription. The lowest valid member epoch is -1, with which a member leaves.
    """
    _check_not_empty("MemberId", request.member_id)
    _check_not_empty("GroupId", group_id)
    _check_not_empty("RackId", request.rack)
    if request.epoch == JOIN_EPOCH and not request.topics:
        raise api_error("INVALID_REQUEST", "SubscribedTopicNames must be set in first request.")
    if request.epoch < LEAVE_EPOCH:
        raise api_error("INVALID_REQUEST", "MemberEpoch is invalid.")


def _check_not_empty(field: str, value: str | None) -> None:
    if value is not None and not value.strip():
        raise api_error("INVALID_REQUEST", f"{field} can't be empty.")
