"""What an error means for a member of a group, by the request that it answers. Knows no state.

Rows stand beside the KIP that brought them. What has no row is asked again if time mends it, by
the table of `retry`, and ends the member otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from ...wire.errors import BrokerResponseError, KprotoError
from ..core.retry import Remedy, remedy_of
from .settings import GroupSettings
from .subscription import Subscription

__all__ = ["EVERYWHERE", "GroupRequest", "Meaning", "explained", "meaning_in", "meaning_of"]


class GroupRequest(Enum):
    """What a member asks for."""

    COORDINATOR = "finding the coordinator"
    TOPICS = "asking for the topics"
    JOIN = "joining"
    SYNC = "asking for the assignment"
    HEARTBEAT = "heartbeat"
    COMMIT = "committing"
    LEAVE = "leaving"


class Meaning(Enum):
    """What follows from an error."""

    RETRY = "the same again, after a wait"
    FIND_COORDINATOR = "find the coordinator, then the same again"
    TAKE_ID = "join with the member id that came along"
    REBALANCE = "join again; still a member, with all that it reads"
    GENERATION_OVER = "what it read may be others' by now; join again as the same member"
    ID_OVER = "what it read is others'; join again as a new member"
    STALE = "the epoch has moved on; commit by the new one, as soon as it is heard of"
    UNRELEASED = "who had its instance id is a member yet; the same again, for a session"
    UNCONVERTED = "the classic group is in a rebalance; the same again, for delivery_timeout_ms"
    OTHER_KIND = "the group is of the other kind, or its cluster knows that one alone"
    FENCED = "another has taken its place for good"
    FAIL = "tell the user"


#: Whatever a member asks for, in groups of both kinds.
EVERYWHERE: Final[dict[str, Meaning]] = {
    "COORDINATOR_LOAD_IN_PROGRESS": Meaning.RETRY,
    "COORDINATOR_NOT_AVAILABLE": Meaning.FIND_COORDINATOR,
    "NOT_COORDINATOR": Meaning.FIND_COORDINATOR,
    "FENCED_INSTANCE_ID": Meaning.FENCED,  # KIP-345: another has the same instance id
    "GROUP_AUTHORIZATION_FAILED": Meaning.FAIL,
    "INVALID_GROUP_ID": Meaning.FAIL,
}

#: Of a member in a generation.
_IN_GENERATION: Final = {
    "UNKNOWN_MEMBER_ID": Meaning.ID_OVER,
    "ILLEGAL_GENERATION": Meaning.GENERATION_OVER,  # the member id is good yet
    "REBALANCE_IN_PROGRESS": Meaning.REBALANCE,
}

_TABLE: Final[dict[GroupRequest, dict[str, Meaning]]] = {
    GroupRequest.COORDINATOR: {},
    GroupRequest.TOPICS: {},
    GroupRequest.JOIN: {
        "MEMBER_ID_REQUIRED": Meaning.TAKE_ID,  # KIP-394
        "UNKNOWN_MEMBER_ID": Meaning.ID_OVER,
        "ILLEGAL_GENERATION": Meaning.GENERATION_OVER,
        "REBALANCE_IN_PROGRESS": Meaning.RETRY,  # the broker could not store the group in time
        "GROUP_MAX_SIZE_REACHED": Meaning.FAIL,  # KIP-389
        "INCONSISTENT_GROUP_PROTOCOL": Meaning.FAIL,
        "INVALID_SESSION_TIMEOUT": Meaning.FAIL,
    },
    GroupRequest.SYNC: _IN_GENERATION  # REBALANCE_IN_PROGRESS: KIP-568
    | {"INCONSISTENT_GROUP_PROTOCOL": Meaning.FAIL},  # KIP-559
    GroupRequest.HEARTBEAT: _IN_GENERATION,
    GroupRequest.COMMIT: _IN_GENERATION,
    GroupRequest.LEAVE: {},
}

#: What an error means to who set the member up: the names in braces
#: are the member's.
_WORDS: Final[dict[str, str]] = {
    "FENCED_INSTANCE_ID": "another member has joined as instance {instance}; give each its own",
    "GROUP_AUTHORIZATION_FAILED": "the principal needs READ on the group",
    "GROUP_ID_NOT_FOUND": "there is no such consumer group: a classic one with members becomes "
    "one where the broker allows that (group.consumer.migration.policy), and other groups never",
    "GROUP_MAX_SIZE_REACHED": "the group has as many members as its broker allows (group.max.size, "
    "group.consumer.max.size)",
    "INCONSISTENT_GROUP_PROTOCOL": "the members of the group have no assignor in common with this "
    "one, which has {assignors}; or it is no group of consumers",
    "INVALID_REGULAR_EXPRESSION": "a TopicPattern is RE2, which the broker reads; "
    "re.compile makes a pattern that is matched here",
    "TOPIC_AUTHORIZATION_FAILED": "the principal needs READ on all that is subscribed to: {wanted}",
    "UNKNOWN_SERVER_ERROR": "the broker's log says why; Kafka 4 fails so where a classic group "
    "would have to be converted in the midst of a rebalance",
    "UNRELEASED_INSTANCE_ID": "instance {instance} is a member yet, and was for longer than a "
    "session; give each member an instance id of its own",
    "UNSUPPORTED_ASSIGNOR": "the broker has no assignor {server_assignor!r} "
    "(group.consumer.assignors); without server_assignor it takes its own",
    "UNSUPPORTED_VERSION": "the cluster has no consumer groups (KIP-848), or has them turned off "
    '(group.coordinator.rebalance.protocols, group.version): use group_protocol="classic"',
    "INVALID_GROUP_ID": "the broker does not take that id of a group",
    "INVALID_SESSION_TIMEOUT": "the broker does not take a session_timeout_ms of {session} "
    "(group.min.session.timeout.ms, group.max.session.timeout.ms)",
}


def meaning_of(asked: GroupRequest, error: KprotoError) -> Meaning:
    """What an error means for the member of a classic group that asked."""
    return meaning_in(EVERYWHERE | _TABLE[asked], error)


def meaning_in(table: Mapping[str, Meaning], error: KprotoError) -> Meaning:
    """What an error means by a table, or by the one of all errors."""
    if isinstance(error, BrokerResponseError):
        known = table.get(error.name)
        if known is not None:
            return known
    remedy = remedy_of(error)
    if remedy is Remedy.FAIL:
        return Meaning.FAIL
    if isinstance(error, BrokerResponseError):
        return Meaning.RETRY
    return Meaning.FIND_COORDINATOR  # a broker that is silent or gone may coordinate no more


def explained(
    error: KprotoError, settings: GroupSettings, wanted: Subscription | None
) -> KprotoError:
    """The same error, and what it means to who set the member up so, and subscribed to that."""
    if not isinstance(error, BrokerResponseError) or error.name not in _WORDS:
        return error
    words = _WORDS[error.name].format(
        assignors=", ".join(each.name for each in settings.chosen),
        instance=settings.instance_id,
        session=settings.session_timeout_ms,
        server_assignor=settings.server_assignor,
        wanted=wanted,
    )
    detail = f"{error.detail}: {words}"
    return BrokerResponseError(error.code, error.name, detail, retriable=error.retriable)
