"""Decides which group protocol a member uses. Does no I/O.

In the classic protocol the leader of the group assigns the partitions; in the consumer protocol the
broker assigns them (KIP-848). A group without members gets the protocol of the next member that
joins. A member with group_protocol="consumer" makes the broker convert a classic group that has
members; the broker's migration policy must allow the conversion. A member with "auto" uses the
classic protocol to join a classic group that has members.
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
    "has_consumer_groups",
    "initial_protocol",
    "is_live_classic",
    "may_change_protocol",
]


class GroupProtocol(Enum):
    """Lists the group protocols; each value is Kafka's name of the protocol."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


class GroupProtocolMismatchError(KprotoError):
    """Raised if the member must use the other group protocol; users never see this error.

    If `is_certain` is True, the member that replaces this member need not check the protocol of the
    group before it joins.
    """

    def __init__(self, why: str, *, is_certain: bool = False) -> None:
        super().__init__(why)
        self.is_certain = is_certain


#: States of a classic group that has members or joining members.
_LIVE: Final = frozenset(("PreparingRebalance", "CompletingRebalance", "Stable"))

#: The error of a missing group, or of a group of the other protocol (DescribeGroups v6 and later).
_NO_SUCH_GROUP: Final = code_of("GROUP_ID_NOT_FOUND")


def initial_protocol(settings: GroupSettings) -> GroupProtocol:
    """Returns the protocol to start with, by the setting `group_protocol`.

    "auto" starts with the classic protocol if the user names assignors, otherwise with the consumer
    protocol.
    """
    if settings.group_protocol == "auto":
        return GroupProtocol.CLASSIC if settings.names_assignors else GroupProtocol.CONSUMER
    return GroupProtocol(settings.group_protocol)


def may_change_protocol(settings: GroupSettings) -> bool:
    """Returns True if the member may change to the protocol that the group uses already."""
    return settings.group_protocol == "auto" and not settings.names_assignors


def has_consumer_groups(ranges: Mapping[int, ApiRange]) -> bool:
    """Returns True if a broker with these API versions may support the consumer protocol."""
    return ConsumerGroupHeartbeatRequest.API_KEY in ranges


def is_live_classic(answer: DescribeGroupsResponse, group_id: str) -> bool:
    """Returns True if `answer` describes the group as a classic group with members.

    Raises BrokerResponseError for an error other than GROUP_ID_NOT_FOUND.
    """
    for group in answer.groups:
        if group.group_id == group_id:
            if group.error_code not in (0, _NO_SUCH_GROUP):
                raise_for_code(group.error_code, f"describing group {group_id!r}")
            return group.group_state in _LIVE
    return False


def check_pattern(subscription: Subscription, group_id: str, why: str) -> None:
    """Raises ConfigurationError if the subscription has a `TopicPattern`.

    Call it only for a classic group. The message says that the group is a classic group, and
    continues with `why`, for example "with members".
    """
    if subscription.broker_pattern is not None:
        raise ConfigurationError(
            f"group {group_id!r} is a classic group, {why}, and its broker matches no patterns: "
            f"subscribe to re.compile({subscription.broker_pattern.text!r}) instead of "
            "a TopicPattern"
        )
