"""Explains the errors of groups to the user: causes, and settings of member and broker."""

from __future__ import annotations

from typing import Final

from ...protocol.error_codes import error_of_code
from ...wire.errors import BrokerResponseError, KprotoError
from .settings import GroupSettings
from .subscription import Subscription

__all__ = ["with_explanation"]

#: Explanations by error name. Names in braces stand for the member's settings and subscription.
_EXPLANATIONS: Final[dict[str, str]] = {
    "FENCED_INSTANCE_ID": "another member has joined as instance {instance}; give each its own",
    "GROUP_AUTHORIZATION_FAILED": "the principal needs READ on the group",
    "GROUP_ID_NOT_FOUND": "there is no such consumer group: the broker converts a classic group "
    "with members only if group.consumer.migration.policy allows it, and no group of another type",
    "GROUP_MAX_SIZE_REACHED": "the group has as many members as its broker allows (group.max.size, "
    "group.consumer.max.size)",
    "INCONSISTENT_GROUP_PROTOCOL": "the members of the group have no assignor in common with this "
    "member, which has {assignors}: set assignors to one that the others have, such as "
    "assignors=['roundrobin'] beside aiokafka, whose only default it is, or add one of this "
    "member's to partition_assignment_strategy of the others; or it is no group of consumers",
    "INVALID_REGULAR_EXPRESSION": "the broker reads a TopicPattern as RE2; "
    "the client matches a pattern of re.compile",
    "TOPIC_AUTHORIZATION_FAILED": "the principal needs READ on all subscribed topics: {wanted}",
    "UNKNOWN_SERVER_ERROR": "the broker's log has the cause; Kafka 4 returns this error if it must "
    "convert a classic group during a rebalance",
    "UNRELEASED_INSTANCE_ID": "instance {instance} is still a member, and was for longer than a "
    "session; give each member an instance id of its own",
    "UNSUPPORTED_ASSIGNOR": "the broker has no assignor {server_assignor!r} "
    "(group.consumer.assignors); without server_assignor it uses its default",
    "UNSUPPORTED_VERSION": "the cluster does not support the consumer protocol (KIP-848), or has "
    "disabled it "
    '(group.coordinator.rebalance.protocols, group.version): use group_protocol="classic"',
    "INVALID_GROUP_ID": "the broker does not accept this group id",
    "INVALID_SESSION_TIMEOUT": "the broker does not accept a session_timeout_ms of {session} "
    "(group.min.session.timeout.ms, group.max.session.timeout.ms)",
}


def with_explanation(
    error: KprotoError, settings: GroupSettings, wanted: Subscription | None
) -> KprotoError:
    """Returns the error with an explanation; the error itself if there is no explanation for it.

    `wanted` is the subscription of the member.
    """
    if not isinstance(error, BrokerResponseError) or error.name not in _EXPLANATIONS:
        return error
    words = _EXPLANATIONS[error.name].format(
        assignors=", ".join(each.name for each in settings.resolved_assignors),
        instance=settings.instance_id,
        session=settings.session_timeout_ms,
        server_assignor=settings.server_assignor,
        wanted=wanted,
    )
    detail = f"{error.detail}: {words}"
    return error_of_code(error.code, detail)
