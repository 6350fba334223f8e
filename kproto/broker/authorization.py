"""Whether whoever sent a request may do what it asks: a handler's questions to the authorizer.

A cluster without an authorizer lets everybody do everything.
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
    """Whether the principal of the request may do `operation` with the resource."""
    authorizer = context.cluster.authorizer
    return authorizer is None or authorizer.allows(
        str(context.principal), context.host, operation, resource_type, name
    )


def allows_cluster(context: Context, operation: Operation) -> bool:
    """The same with the cluster."""
    return allows(context, operation, ResourceType.CLUSTER, CLUSTER_NAME)


def allows_any(context: Context, operation: Operation, resource_type: ResourceType) -> bool:
    """Whether it may do `operation` with some resource of that type, there or not."""
    authorizer = context.cluster.authorizer
    return authorizer is None or authorizer.allows_any(
        str(context.principal), context.host, operation, resource_type
    )


def check(context: Context, operation: Operation, resource_type: ResourceType, name: str) -> None:
    """Raises the error that Kafka has for the resource, such as TOPIC_AUTHORIZATION_FAILED."""
    if not allows(context, operation, resource_type, name):
        raise _denial(context, operation, resource_type, repr(name))


def check_topic_of_id(context: Context, operation: Operation, topic: Topic) -> None:
    """The same of a topic that was asked for by its id.

    Who may not describe the topic does not hear its name.
    """
    if not allows(context, operation, ResourceType.TOPIC, topic.name):
        may_hear = allows(context, Operation.DESCRIBE, ResourceType.TOPIC, topic.name)
        told = repr(topic.name) if may_hear else f"of id {topic.topic_id}"
        raise _denial(context, operation, ResourceType.TOPIC, told)


def authorized_topic(
    context: Context, operation: Operation, name: str, topic_id: bytes, *, by_id: bool
) -> Topic:
    """The topic that a request names, or since some version its id, if the client has the right.

    Of a name it does not hear whether it is there, of an id not the name. Raises
    UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, TOPIC_AUTHORIZATION_FAILED.
    """
    if by_id:
        found = context.cluster.topics.with_id(topic_id)
        check_topic_of_id(context, operation, found)
        return found
    check(context, operation, ResourceType.TOPIC, name)
    return context.cluster.topics.named(name)


def check_cluster(context: Context, operation: Operation) -> None:
    """Raises CLUSTER_AUTHORIZATION_FAILED."""
    check(context, operation, ResourceType.CLUSTER, CLUSTER_NAME)


def check_group_request(context: Context, group_id: str) -> None:
    """Checks a request of a group member as Kafka does, before the request is handled.

    Raises GROUP_AUTHORIZATION_FAILED, then INVALID_GROUP_ID for an empty group id.
    """
    check(context, Operation.READ, ResourceType.GROUP, group_id)
    if not group_id:
        raise api_error("INVALID_GROUP_ID", "the group id is empty")


def _denial(
    context: Context, operation: Operation, resource_type: ResourceType, told: str
) -> BrokerResponseError:
    return api_error(
        AUTHORIZATION_ERRORS[resource_type],
        f"{context.principal} at {context.host or 'an unknown host'} may not {operation.name} "
        f"{resource_type.name} {told}",
    )


def required_authorizer(context: Context) -> Authorizer:
    """For a request about ACLs. Raises SECURITY_DISABLED where there are none."""
    authorizer = context.cluster.authorizer
    if authorizer is None:
        raise api_error("SECURITY_DISABLED", "no authorizer is configured on the broker")
    return authorizer


def authorized_operations(context: Context, resource_type: ResourceType, name: str) -> int:
    """A bit for each operation that the resource knows and the principal may do (KIP-430)."""
    return sum(
        1 << operation
        for operation in SUPPORTED_OPERATIONS[resource_type]
        if allows(context, operation, resource_type, name)
    )


def cluster_operations(context: Context) -> int:
    """The same of the cluster; 0 for who may not describe it."""
    if not allows_cluster(context, Operation.DESCRIBE):
        return 0
    return authorized_operations(context, ResourceType.CLUSTER, CLUSTER_NAME)
