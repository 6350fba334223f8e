"""Decides which group protocol a group has, and a member uses. Plain data and decisions.

A group has members of the classic protocol, which assign among themselves, or of the consumer
protocol, whose broker assigns (KIP-848). A group without members takes the protocol of the next
member; a member of the consumer protocol converts a classic group with members, so that a member
with "auto" does not do that.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from ...messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from ...messages.describe_groups_response import DescribeGroupsResponse
from ...protocol.error_codes import code_of, raise_for_code
from ...protocol.negotiation import ApiRange
from ...wire.errors import ConfigurationError, KprotoError
from .settings import GroupSettings
from .subscription import Subscription

__all__ = [
    "GroupProtocol",
    "GroupProtocolMismatchError",
    "check_pattern",
    "first_kind",
    "has_consumer_groups",
    "is_live_classic",
    "may_change",
]


class GroupProtocol(Enum):
    """Group protocols, by Kafka's names."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


class GroupProtocolMismatchError(KprotoError):
    """The member must use the other protocol; users never see this error.

    `is_certain` if another look at the group would give the same result.
    """

    def __init__(self, why: str, *, is_certain: bool = False) -> None:
        super().__init__(why)
        self.is_certain = is_certain


#: States of a classic group that has members, or is about to.
_LIVE: Final = frozenset(("PreparingRebalance", "CompletingRebalance", "Stable"))

#: What is said of a group that is not there, or is of another kind (from DescribeGroups v6 on).
_NO_SUCH_GROUP: Final = code_of("GROUP_ID_NOT_FOUND")


def first_kind(settings: GroupSettings) -> GroupProtocol:
    """Returns the protocol to start with; with "auto" the group may turn out to have the other."""
    if settings.group_protocol == "auto":
        return GroupProtocol.CLASSIC if settings.names_assignors else GroupProtocol.CONSUMER
    return GroupProtocol(settings.group_protocol)


def may_change(settings: GroupSettings) -> bool:
    """True if the group decides the protocol of the member."""
    return settings.group_protocol == "auto" and not settings.names_assignors


def has_consumer_groups(ranges: Mapping[int, ApiRange]) -> bool:
    """True if a broker with these versions may coordinate groups of the consumer protocol."""
    return ConsumerGroupHeartbeatRequest.API_KEY in ranges


def is_live_classic(answer: DescribeGroupsResponse, group_id: str) -> bool:
    """True if it is a classic group with members. Raises BrokerResponseError."""
    for group in answer.groups:
        if group.group_id == group_id:
            if group.error_code not in (0, _NO_SUCH_GROUP):
                raise_for_code(group.error_code, f"looking at group {group_id!r}")
            return group.group_state in _LIVE
    return False


def check_pattern(subscription: Subscription, group_id: str, why: str) -> None:
    """Refuses a pattern of the broker for a classic group. Raises ConfigurationError."""
    if subscription.remote is not None:
        raise ConfigurationError(
            f"group {group_id!r} is a classic group, {why}, whose members match patterns by "
            f"themselves: subscribe to re.compile({subscription.remote.text!r}) in place of a "
            "TopicPattern"
        )
