"""Defines the request and the result of ConsumerGroupHeartbeat, and validates requests.

The order of the checks is that of Kafka's GroupCoordinatorService.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ...api_error import api_error
from .consumer_group_member import JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH, Assigned, Partitions

__all__ = ["ConsumerHeartbeat", "ConsumerHeartbeatResult", "validate_heartbeat"]

#: The first version of ConsumerGroupHeartbeat in which members generate their ids (KIP-1082).
_FIRST_VERSION_OF_CLIENT_IDS: Final = 1

#: The rebalance timeout in a request that does not change it.
_UNSET: Final = -1


@dataclass(frozen=True, slots=True)
class ConsumerHeartbeat:
    """Holds a ConsumerGroupHeartbeat request.

    Fields that are None, and a rebalance timeout of -1 ms, do not change the member. `owned` are
    the partitions that the member owns, by topic id.
    """

    member_id: str
    epoch: int
    instance_id: str | None = None
    rack: str | None = None
    rebalance_timeout_ms: int = _UNSET
    topics: frozenset[str] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: Partitions | None = None
    client_id: str = ""
    client_host: str = ""

    @property
    def is_full(self) -> bool:
        """Returns True if the request has a rebalance timeout, a subscription and owned partitions.

        Members send these three fields when they join, and after an error.
        """
        subscribes = self.topics is not None or self.regex is not None
        return self.rebalance_timeout_ms != _UNSET and subscribes and self.owned is not None


@dataclass(frozen=True, slots=True)
class ConsumerHeartbeatResult:
    """Holds the result of a heartbeat.

    `assigned` is None if the response has no assignment. The response has an assignment if the
    member joins, if the request is full, or if the assignment has changed. The response to a member
    that leaves has none.
    """

    member_id: str
    epoch: int
    heartbeat_interval_ms: int = 0
    assigned: Assigned | None = None


def validate_heartbeat(
    group_id: str, request: ConsumerHeartbeat, version: int, assignors: tuple[str, ...]
) -> None:
    """Raises INVALID_REQUEST or UNSUPPORTED_ASSIGNOR for a request that no group accepts.

    `assignors` are the assignors that the broker supports.
    """
    has_id = (
        version >= _FIRST_VERSION_OF_CLIENT_IDS
        or request.epoch > JOIN_EPOCH
        or request.epoch == LEAVE_EPOCH
    )
    if has_id:
        _check_not_empty("MemberId", request.member_id)
    _check_not_empty("GroupId", group_id)
    _check_not_empty("InstanceId", request.instance_id)
    _check_not_empty("RackId", request.rack)
    if request.epoch == JOIN_EPOCH:
        _check_first(request)
    elif request.epoch == LEAVE_STATIC_EPOCH:
        if request.instance_id is None:
            raise api_error("INVALID_REQUEST", "InstanceId can't be null.")
    elif request.epoch < LEAVE_STATIC_EPOCH:
        raise api_error("INVALID_REQUEST", "MemberEpoch is invalid.")
    if request.assignor is not None and request.assignor not in assignors:
        raise api_error(
            "UNSUPPORTED_ASSIGNOR",
            f"ServerAssignor {request.assignor} is not supported. Supported assignors: "
            f"{', '.join(sorted(assignors))}.",
        )


def _check_first(request: ConsumerHeartbeat) -> None:
    if request.rebalance_timeout_ms == _UNSET:
        raise api_error("INVALID_REQUEST", "RebalanceTimeoutMs must be provided in first request.")
    if request.owned is None or request.owned:
        raise api_error("INVALID_REQUEST", "TopicPartitions must be empty when (re-)joining.")
    if request.topics is None and request.regex is None:
        raise api_error(
            "INVALID_REQUEST",
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining.",
        )


def _check_not_empty(field: str, value: str | None) -> None:
    """Raises INVALID_REQUEST if `value` is empty or white space; None is valid."""
    if value is not None and not value.strip():
        raise api_error("INVALID_REQUEST", f"{field} can't be empty.")
