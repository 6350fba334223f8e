"""What a member asks of its group, ConsumerGroupHeartbeat as plain data, and what it hears.

Owns the checks that need no group, in the order of Kafka's GroupCoordinatorService.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ...api_error import api_error
from .consumer_group_member import JOINS, LEAVES, LEAVES_FOR_A_WHILE, Assigned, Partitions

__all__ = ["Heartbeat", "HeartbeatAnswer", "check_heartbeat"]

#: From this version of ConsumerGroupHeartbeat on, members make up their ids themselves (KIP-1082).
_FIRST_VERSION_OF_OWN_IDS: Final = 1

#: What a request says that leaves a rebalance timeout as it is.
_NOT_SAID: Final = -1


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """None for what the member leaves as it was; a rebalance timeout of -1 ms does the same.

    `held` are the partitions that it has, by the ids of their topics.
    """

    member_id: str
    epoch: int
    instance_id: str | None = None
    rack: str | None = None
    rebalance_timeout_ms: int = _NOT_SAID
    topics: frozenset[str] | None = None
    regex: str | None = None
    assignor: str | None = None
    held: Partitions | None = None
    client_id: str = ""
    client_host: str = ""

    @property
    def is_full(self) -> bool:
        """Whether it says all that there is to say, as after an error."""
        subscribes = self.topics is not None or self.regex is not None
        return self.rebalance_timeout_ms != _NOT_SAID and subscribes and self.held is not None


@dataclass(frozen=True, slots=True)
class HeartbeatAnswer:
    """`assigned` is None where the member need not hear it."""

    member_id: str
    epoch: int
    heartbeat_interval_ms: int = 0
    assigned: Assigned | None = None


def check_heartbeat(
    group_id: str, asked: Heartbeat, version: int, assignors: tuple[str, ...]
) -> None:
    """Raises INVALID_REQUEST and UNSUPPORTED_ASSIGNOR for what no group would take."""
    has_id = version >= _FIRST_VERSION_OF_OWN_IDS or asked.epoch > JOINS or asked.epoch == LEAVES
    if has_id:
        _check_said("MemberId", asked.member_id)
    _check_said("GroupId", group_id)
    _check_said("InstanceId", asked.instance_id)
    _check_said("RackId", asked.rack)
    if asked.epoch == JOINS:
        _check_first(asked)
    elif asked.epoch == LEAVES_FOR_A_WHILE:
        if asked.instance_id is None:
            raise api_error("INVALID_REQUEST", "InstanceId can't be null.")
    elif asked.epoch < LEAVES_FOR_A_WHILE:
        raise api_error("INVALID_REQUEST", "MemberEpoch is invalid.")
    if asked.assignor is not None and asked.assignor not in assignors:
        raise api_error(
            "UNSUPPORTED_ASSIGNOR",
            f"ServerAssignor {asked.assignor} is not supported. Supported assignors: "
            f"{', '.join(sorted(assignors))}.",
        )


def _check_first(asked: Heartbeat) -> None:
    if asked.rebalance_timeout_ms == _NOT_SAID:
        raise api_error("INVALID_REQUEST", "RebalanceTimeoutMs must be provided in first request.")
    if asked.held is None or asked.held:
        raise api_error("INVALID_REQUEST", "TopicPartitions must be empty when (re-)joining.")
    if asked.topics is None and asked.regex is None:
        raise api_error(
            "INVALID_REQUEST",
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining.",
        )


def _check_said(what: str, value: str | None) -> None:
    """A text that is there says something besides blanks."""
    if value is not None and not value.strip():
        raise api_error("INVALID_REQUEST", f"{what} can't be empty.")
