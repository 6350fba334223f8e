"""Defines the table of group errors: the action by request, error and group protocol.

If the table has no row for an error, the member retries a retriable error (see `core.retry`), and
raises any other error to the user. Does no I/O.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from ...wire.errors import BrokerResponseError, KprotoError
from .retry import Remedy, remedy_of

__all__ = [
    "COMMIT_REFUSALS",
    "ERROR_ACTIONS",
    "CommitRefusal",
    "ErrorAction",
    "GroupRequest",
    "classic_action",
    "commit_refusal",
    "consumer_action",
    "share_action",
]


class GroupRequest(Enum):
    """Names the operations of a group member; the value describes the operation in errors."""

    COORDINATOR = "finding the coordinator"
    TOPICS = "requesting the topics"
    JOIN = "joining"
    SYNC = "requesting the assignment"
    HEARTBEAT = "heartbeat"
    COMMIT = "committing"
    LEAVE = "leaving"


class ErrorAction(Enum):
    """The action of a member after an error."""

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
    HAS_LEFT = "the coordinator does not know the member, so it has left"
    FAIL = "raise the error to the user"


class ErrorRow(NamedTuple):
    """Has the actions of a member for `error`, if a response to one of `requests` has this error.

    `classic`, `consumer` and `share` are the actions in the three group protocols; None if the row
    does not apply to the protocol. In the consumer protocol and in share groups, JOIN is the
    heartbeat of a member that has no member epoch yet.
    """

    error: str
    requests: tuple[GroupRequest, ...]
    classic: ErrorAction | None
    consumer: ErrorAction | None
    share: ErrorAction | None = None


_ALL: Final = tuple(GroupRequest)
_COORDINATOR, _TOPICS, _JOIN, _SYNC, _HEARTBEAT, _COMMIT, _LEAVE = _ALL
_A = ErrorAction

ERROR_ACTIONS: Final = (
    ErrorRow("COORDINATOR_LOAD_IN_PROGRESS", _ALL, _A.RETRY, _A.RETRY, _A.RETRY),
    ErrorRow(
        "COORDINATOR_NOT_AVAILABLE",
        _ALL,
        _A.FIND_COORDINATOR,
        _A.FIND_COORDINATOR,
        _A.FIND_COORDINATOR,
    ),
    ErrorRow(
        "NOT_COORDINATOR",
        _ALL,
        _A.FIND_COORDINATOR,
        _A.FIND_COORDINATOR,
        _A.FIND_COORDINATOR,
    ),
    ErrorRow("GROUP_AUTHORIZATION_FAILED", _ALL, _A.FAIL, _A.FAIL, _A.FAIL),
    ErrorRow("INVALID_GROUP_ID", _ALL, _A.FAIL, _A.FAIL, _A.FAIL),
    # Static members (KIP-345).
    ErrorRow("FENCED_INSTANCE_ID", _ALL[:-1], _A.FENCED, _A.FENCED),
    ErrorRow("FENCED_INSTANCE_ID", (_LEAVE,), _A.HAS_LEFT, _A.HAS_LEFT),
    # A member in a generation or an epoch.
    ErrorRow(
        "UNKNOWN_MEMBER_ID",
        (_JOIN, _SYNC, _HEARTBEAT, _COMMIT),
        _A.MEMBER_UNKNOWN,
        _A.MEMBER_UNKNOWN,
        _A.MEMBER_UNKNOWN,
    ),
    ErrorRow("UNKNOWN_MEMBER_ID", (_LEAVE,), _A.HAS_LEFT, _A.HAS_LEFT, _A.HAS_LEFT),
    # The member id is still valid.
    ErrorRow("ILLEGAL_GENERATION", (_JOIN, _SYNC, _HEARTBEAT, _COMMIT), _A.GENERATION_LOST, None),
    ErrorRow("REBALANCE_IN_PROGRESS", (_SYNC, _HEARTBEAT, _COMMIT), _A.REBALANCE, None),  # KIP-568
    # The broker could not store the group in time.
    ErrorRow("REBALANCE_IN_PROGRESS", (_JOIN,), _A.RETRY, None),
    ErrorRow(
        "FENCED_MEMBER_EPOCH",
        (_JOIN, _HEARTBEAT, _COMMIT),
        None,
        _A.MEMBER_UNKNOWN,
        _A.MEMBER_UNKNOWN,
    ),
    ErrorRow("FENCED_MEMBER_EPOCH", (_LEAVE,), None, _A.HAS_LEFT, _A.HAS_LEFT),
    # The member has another epoch by now, or the next response has it (KIP-848).
    ErrorRow("STALE_MEMBER_EPOCH", (_COMMIT,), None, _A.STALE),
    # Joining.
    ErrorRow("MEMBER_ID_REQUIRED", (_JOIN,), _A.USE_MEMBER_ID, None),  # KIP-394
    ErrorRow("INVALID_SESSION_TIMEOUT", (_JOIN,), _A.FAIL, None),
    ErrorRow("UNRELEASED_INSTANCE_ID", (_JOIN,), None, _A.UNRELEASED),
    # SyncGroup has this error since KIP-559. A member of the consumer protocol gets it if the
    # broker does not convert the classic group.
    ErrorRow("INCONSISTENT_GROUP_PROTOCOL", (_JOIN,), _A.FAIL, _A.OTHER_PROTOCOL, _A.FAIL),
    ErrorRow("INCONSISTENT_GROUP_PROTOCOL", (_SYNC,), _A.FAIL, None),
    # For a joining member: the brokers' configuration forbids the conversion of the classic group.
    # For a member in the group: the group was deleted or converted.
    ErrorRow("GROUP_ID_NOT_FOUND", (_JOIN,), None, _A.OTHER_PROTOCOL, _A.FAIL),
    ErrorRow(
        "GROUP_ID_NOT_FOUND",
        (_HEARTBEAT, _COMMIT),
        None,
        _A.MEMBER_UNKNOWN,
        _A.MEMBER_UNKNOWN,
    ),
    ErrorRow("GROUP_ID_NOT_FOUND", (_LEAVE,), _A.HAS_LEFT, _A.HAS_LEFT, _A.HAS_LEFT),
    # The consumer protocol is disabled in the cluster.
    ErrorRow("UNSUPPORTED_VERSION", (_JOIN, _HEARTBEAT), None, _A.OTHER_PROTOCOL, _A.FAIL),
    # Kafka 4 fails to convert a classic group whose first rebalance has not ended, or in which a
    # joining member does not support the previous assignor.
    ErrorRow("UNKNOWN_SERVER_ERROR", (_JOIN,), None, _A.UNCONVERTED),
    # A retry with the same settings fails again.
    ErrorRow("GROUP_MAX_SIZE_REACHED", (_JOIN,), _A.FAIL, _A.FAIL, _A.FAIL),  # KIP-389
    ErrorRow("GROUP_MAX_SIZE_REACHED", (_HEARTBEAT,), None, _A.FAIL, _A.FAIL),
    ErrorRow("INVALID_REGULAR_EXPRESSION", (_JOIN, _HEARTBEAT), None, _A.FAIL),  # RE2
    ErrorRow("INVALID_REQUEST", (_JOIN, _HEARTBEAT), None, _A.FAIL, _A.FAIL),
    ErrorRow("TOPIC_AUTHORIZATION_FAILED", (_JOIN, _HEARTBEAT), None, _A.FAIL, _A.FAIL),
    ErrorRow("UNSUPPORTED_ASSIGNOR", (_JOIN, _HEARTBEAT), None, _A.FAIL),  # KIP-848
)

_Actions: TypeAlias = dict[tuple[GroupRequest, str], ErrorAction]


def _actions_in(column: Callable[[ErrorRow], ErrorAction | None]) -> _Actions:
    """Returns the actions of one column of the table, by (request, name of the error)."""
    return {
        (request, row.error): action
        for row in ERROR_ACTIONS
        for request in row.requests
        if (action := column(row)) is not None
    }


_CLASSIC: Final = _actions_in(lambda row: row.classic)
_CONSUMER: Final = _actions_in(lambda row: row.consumer)
_SHARE: Final = _actions_in(lambda row: row.share)


def classic_action(request: GroupRequest, error: KprotoError) -> ErrorAction:
    """Returns the action of a classic member after `request` failed with `error`."""
    return _CLASSIC.get((request, _name_of(error))) or _by_remedy(error)


def consumer_action(request: GroupRequest, error: KprotoError) -> ErrorAction:
    """Returns the action of a KIP-848 member after `request` failed with `error`."""
    return _CONSUMER.get((request, _name_of(error))) or _by_remedy(error)


def share_action(request: GroupRequest, error: KprotoError) -> ErrorAction:
    """Returns the action of a share group member (KIP-932) after `request` failed with `error`."""
    return _SHARE.get((request, _name_of(error))) or _by_remedy(error)


def _name_of(error: KprotoError) -> str:
    return error.name if isinstance(error, BrokerResponseError) else ""


def _by_remedy(error: KprotoError) -> ErrorAction:
    """Returns the action for an error that has no row in the table.

    The remedy of the error (`core.retry`) determines the action.
    """
    if remedy_of(error) is Remedy.FAIL:
        return ErrorAction.FAIL
    if isinstance(error, BrokerResponseError):
        return ErrorAction.RETRY
    return ErrorAction.FIND_COORDINATOR  # another broker may be the coordinator by now


class CommitRefusal(Enum):
    """The reason why a coordinator refuses an OffsetCommit or OffsetFetch of a member."""

    OVERTAKEN = "the member is in the group, but a rebalance has overtaken the request"
    FENCED = "the member is no longer in the group: other members may own its partitions"


_REFUSALS: Final = {
    ErrorAction.GENERATION_LOST: CommitRefusal.OVERTAKEN,
    ErrorAction.REBALANCE: CommitRefusal.OVERTAKEN,
    ErrorAction.STALE: CommitRefusal.OVERTAKEN,
    ErrorAction.MEMBER_UNKNOWN: CommitRefusal.FENCED,
    ErrorAction.FENCED: CommitRefusal.FENCED,
}

#: The reason of a refusal by the name of the error, for the errors of OffsetCommit and OffsetFetch
#: that depend on the membership of the member.
COMMIT_REFUSALS: Final = {
    row.error: _REFUSALS[action]
    for row in ERROR_ACTIONS
    if GroupRequest.COMMIT in row.requests
    for action in (row.classic, row.consumer)
    if action in _REFUSALS
}


def commit_refusal(error: KprotoError) -> CommitRefusal | None:
    """Returns why the coordinator refused an OffsetCommit or OffsetFetch of a member.

    Returns None if `error` does not depend on the membership of the member.
    """
    return COMMIT_REFUSALS.get(_name_of(error))
