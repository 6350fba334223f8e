"""Defines the checks by which handlers ask the cluster's authorizer whether it allows an operation.

Without an authorizer, all operations are allowed.
"""

from __future__ import annotations

from ..wire.errors import BrokerResponseError
from .api_error import api_error
from .authorizer import (
    AUTHORIZATION_ERRORS,
    CLUSTER_NAME,
    SUPPORTED_OPERATIONS,
    Authorizer,
    Operation,
    ResourceType,
)
from .context import Context
from .topics import Topic

__all__ = [
    "allows",
    "allows_any",
    "allows_cluster",
    "authorized_operations",
    "authorized_topic",
    "check",
    "check_cluster",
    "check_group_request",
    "check_topic_of_id",
    "cluster_operations",
    "required_authorizer",
]


def allows(context: Context, operation: Operation, resource_type: ResourceType, name: str) -> bool:
    """Returns True if the principal of the request may perform `operation` on the resource."""
    authorizer = context.cluster.authorizer
    return authorizer is None or authorizer.allows(
        str(context.principal), context.host, operation, resource_type, name
    )


def allows_cluster(context: Context, operation: Operation) -> bool:
    """Returns True if the principal may perform `operation` on the cluster."""
    return allows(context, operation, ResourceType.CLUSTER, CLUSTER_NAME)


def allows_any(context: Context, operation: Operation, resource_type: ResourceType) -> bool:
    """Returns True if `operation` is allowed on at least one resource of the type (KIP-679)."""
    authorizer = context.cluster.authorizer
    return authorizer is None or authorizer.allows_any(
        str(context.principal), context.host, operation, resource_type
    )


def check(context: Context, operation: Operation, resource_type: ResourceType, name: str) -> None:
    """Raises the error of the resource type, such as TOPIC_AUTHORIZATION_FAILED, if the principal
    may not perform `operation`.
    """
    if not allows(context, operation, resource_type, name):
        raise _denial(context, operation, resource_type, repr(name))


def check_topic_of_id(context: Context, operation: Operation, topic: Topic) -> None:
    """Raises TOPIC_AUTHORIZATION_FAILED if the principal may not perform `operation`.

    Handlers call this function if the request has a topic id instead of a topic name. The error
    contains the topic name only if the principal may describe the topic.
    """
    if not allows(context, operation, ResourceType.TOPIC, topic.name):
        may_hear = allows(context, Operation.DESCRIBE, ResourceType.TOPIC, topic.name)
        described = repr(topic.name) if may_hear else f"of id {topic.topic_id}"
        raise _denial(context, operation, ResourceType.TOPIC, described)


def authorized_topic(
    context: Context, operation: Operation, name: str, topic_id: bytes, *, by_id: bool
) -> Topic:
    """Returns the topic with `topic_id` if `by_id` is set, else the topic with `name`.

    Raises TOPIC_AUTHORIZATION_FAILED if the principal may not perform `operation` on the topic, and
    UNKNOWN_TOPIC_ID or UNKNOWN_TOPIC_OR_PARTITION if there is no such topic. The errors do not
    reveal to an unauthorized client whether a name exists, or which name a topic id has.
    """
    if by_id:
        found = context.cluster.topics.with_id(topic_id)
        check_topic_of_id(context, operation, found)
        return found
    check(context, operation, ResourceType.TOPIC, name)
    return context.cluster.topics.named(name)


def check_cluster(context: Context, operation: Operation) -> None:
    """Raises CLUSTER_AUTHORIZATION_FAILED if the principal may not perform `operation`."""
    check(context, operation, ResourceType.CLUSTER, CLUSTER_NAME)


def check_group_request(context: Context, group_id: str) -> None:
    """Checks first that the principal may READ the group, then that the group id is not empty.

    Raises GROUP_AUTHORIZATION_FAILED, and INVALID_GROUP_ID for an empty group id.
    """
    check(context, Operation.READ, ResourceType.GROUP, group_id)
    if not group_id:
        raise api_error("INVALID_GROUP_ID", "the group id is empty")


def _denial(
    context: Context, operation: Operation, resource_type: ResourceType, described: str
) -> BrokerResponseError:
    return api_error(
        AUTHORIZATION_ERRORS[resource_type],
        f"{context.principal} at {context.host or 'an unknown host'} may not {operation.name} "
        f"{resource_type.name} {described}",
    )


def required_authorizer(context: Context) -> Authorizer:
    """Returns the cluster's authorizer. Raises SECURITY_DISABLED if there is none."""
    authorizer = context.cluster.authorizer
    if authorizer is None:
        raise api_error("SECURITY_DISABLED", "no authorizer is configured on the broker")
    return authorizer


def authorized_operations(context: Context, resource_type: ResourceType, name: str) -> int:
    """Returns the operations that the principal may perform on a resource, as a bit field.

    Bit n is set if the operation with the code n is allowed (KIP-430).
    """
    return sum(
        1 << operation
        for operation in SUPPORTED_OPERATIONS[resource_type]
        if allows(context, operation, resource_type, name)
    )


def cluster_operations(context: Context) -> int:
    """Returns `authorized_operations` of the cluster; 0 without DESCRIBE on the cluster."""
    if not allows_cluster(context, Operation.DESCRIBE):
        return 0
    return authorized_operations(context, ResourceType.CLUSTER, CLUSTER_NAME)
