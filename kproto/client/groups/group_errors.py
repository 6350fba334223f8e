"""Maps the error of each request to the next action of a member. Knows no state.

Rows name their KIPs. A member retries an error without a row if `core.retry` calls it retriable,
and ends otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from ...protocol.error_codes import error_of_code
from ...wire.errors import BrokerResponseError, KprotoError
from ..core.retry import Remedy, remedy_of
from .settings import GroupSettings
from .subscription import Subscription

__all__ = [
    "COMMON_ACTIONS",
    "ErrorAction",
    "GroupRequest",
    "action_for",
    "action_in",
    "with_explanation",
]


class GroupRequest(Enum):
    """The requests of a member."""

    COORDINATOR = "finding the coordinator"
    TOPICS = "asking for the topics"
    JOIN = "joining"
    SYNC = "asking for the assignment"
    HEARTBEAT = "heartbeat"
    COMMIT = "committing"
    LEAVE = "leaving"


class ErrorAction(Enum):
    """The action that follows from an error."""

    RETRY = "retry after a backoff"
    FIND_COORDINATOR = "find the coordinator, then retry"
    USE_MEMBER_ID = "join with the member id of the response"
    REBALANCE = "rejoin; still a member, with all its partitions"
    GENERATION_LOST = "the partitions may be lost; rejoin as the same member"
    MEMBER_UNKNOWN = "the partitions are lost; rejoin as a new member"
    STALE = "the member epoch has changed; commit with the new epoch, once it is known"
    UNRELEASED = "another member has the instance id; retry for the length of a session"
    UNCONVERTED = "the classic group is in a rebalance; retry for api_timeout_ms"
    OTHER_PROTOCOL = "the group uses the other protocol, or its cluster supports only the other"
    FENCED = "another member has the instance id and fenced this one; end the member"
    FAIL = "raise the error to the user"


#: Errors of any request, in groups of both protocols.
COMMON_ACTIONS: Final[dict[str, ErrorAction]] = {
    "COORDINATOR_LOAD_IN_PROGRESS": ErrorAction.RETRY,
    "COORDINATOR_NOT_AVAILABLE": ErrorAction.FIND_COORDINATOR,
    "NOT_COORDINATOR": ErrorAction.FIND_COORDINATOR,
    "FENCED_INSTANCE_ID": ErrorAction.FENCED,  # KIP-345: another member has the instance id
    "GROUP_AUTHORIZATION_FAILED": ErrorAction.FAIL,
    "INVALID_GROUP_ID": ErrorAction.FAIL,
}

#: Errors of a member in a generation.
_IN_GENERATION: Final = {
    "UNKNOWN_MEMBER_ID": ErrorAction.MEMBER_UNKNOWN,
    "ILLEGAL_GENERATION": ErrorAction.GENERATION_LOST,  # the member id is still valid
    "REBALANCE_IN_PROGRESS": ErrorAction.REBALANCE,
}

_TABLE: Final[dict[GroupRequest, dict[str, ErrorAction]]] = {
    GroupRequest.COORDINATOR: {},
    GroupRequest.TOPICS: {},
    GroupRequest.JOIN: {
        "MEMBER_ID_REQUIRED": ErrorAction.USE_MEMBER_ID,  # KIP-394
        "UNKNOWN_MEMBER_ID": ErrorAction.MEMBER_UNKNOWN,
        "ILLEGAL_GENERATION": ErrorAction.GENERATION_LOST,
        "REBALANCE_IN_PROGRESS": ErrorAction.RETRY,  # the broker could not store the group in time
        "GROUP_MAX_SIZE_REACHED": ErrorAction.FAIL,  # KIP-389
        "INCONSISTENT_GROUP_PROTOCOL": ErrorAction.FAIL,
        "INVALID_SESSION_TIMEOUT": ErrorAction.FAIL,
    },
    GroupRequest.SYNC: _IN_GENERATION  # REBALANCE_IN_PROGRESS: KIP-568
    | {"INCONSISTENT_GROUP_PROTOCOL": ErrorAction.FAIL},  # KIP-559
    GroupRequest.HEARTBEAT: _IN_GENERATION,
    GroupRequest.COMMIT: _IN_GENERATION,
    GroupRequest.LEAVE: {},
}

#: Explanations for the user; names in braces are settings of the member.
_EXPLANATIONS: Final[dict[str, str]] = {
    "FENCED_INSTANCE_ID": "another member has joined as instance {instance}; give each its own",
    "GROUP_AUTHORIZATION_FAILED": "the principal needs READ on the group",
    "GROUP_ID_NOT_FOUND": "there is no such consumer group: the broker converts a classic group "
    "with members only if group.consumer.migration.policy allows it, and no group of another type",
    "GROUP_MAX_SIZE_REACHED": "the group has as many members as its broker allows (group.max.size, "
    "group.consumer.max.size)",
    "INCONSISTENT_GROUP_PROTOCOL": "the members of the group have no assignor in common with this "
    "member, which has {assignors}; or it is no group of consumers",
    "INVALID_REGULAR_EXPRESSION": "the broker reads a TopicPattern as RE2; "
    "the client matches a pattern of re.compile",
    "TOPIC_AUTHORIZATION_FAILED": "the principal needs READ on all subscribed topics: {wanted}",
    "UNKNOWN_SERVER_ERROR": "the broker's log has the cause; Kafka 4 returns this error if it must "
    "convert a classic group during a rebalance",
    "UNRELEASED_INSTANCE_ID": "instance {instance} is still a member, and was for longer than a "
    "session; give each member an instance id of its own",
    "UNSUPPORTED_ASSIGNOR": "the broker has no assignor {server_assignor!r} "
    "(group.consumer.assignors); without server_assignor it uses its default",
    "UNSUPPORTED_VERSION": "the cluster has no consumer groups (KIP-848), or they are disabled "
    '(group.coordinator.rebalance.protocols, group.version): use group_protocol="classic"',
    "INVALID_GROUP_ID": "the broker does not accept this group id",
    "INVALID_SESSION_TIMEOUT": "the broker does not accept a session_timeout_ms of {session} "
    "(group.min.session.timeout.ms, group.max.session.timeout.ms)",
}


def action_for(request: GroupRequest, error: KprotoError) -> ErrorAction:
    """Returns the action for an error for the member of a classic group."""
    return action_in(COMMON_ACTIONS | _TABLE[request], error)


def action_in(table: Mapping[str, ErrorAction], error: KprotoError) -> ErrorAction:
    """Returns the action for an error by `table`, or by `core.retry` if the table lacks it."""
    if isinstance(error, BrokerResponseError):
        known = table.get(error.name)
        if known is not None:
            return known
    remedy = remedy_of(error)
    if remedy is Remedy.FAIL:
        return ErrorAction.FAIL
    if isinstance(error, BrokerResponseError):
        return ErrorAction.RETRY
    return ErrorAction.FIND_COORDINATOR  # an unreachable broker may not be the coordinator any more


def with_explanation(
    error: KprotoError, settings: GroupSettings, wanted: Subscription | None
) -> KprotoError:
    """Returns the error with an explanation for the user; it names settings and subscription."""
    if not isinstance(error, BrokerResponseError) or error.name not in _EXPLANATIONS:
        return error
    words = _EXPLANATIONS[error.name].format(
        assignors=", ".join(each.name for each in settings.chosen),
        instance=settings.instance_id,
        session=settings.session_timeout_ms,
        server_assignor=settings.server_assignor,
        wanted=wanted,
    )
    detail = f"{error.detail}: {words}"
    return error_of_code(error.code, detail)
