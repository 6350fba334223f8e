"""Authorizes ConsumerGroupDescribe and ShareGroupDescribe."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

from ...protocol.error_codes import code_of
from ..api_error import api_error
from ..authorization import allows, authorized_operations, check
from ..authorizer import Operation, ResourceType
from ..context import Context

__all__ = [
    "HIDDEN_TOPICS_CODE",
    "HIDDEN_TOPICS_MESSAGE",
    "add_authorized_operations",
    "check_may_describe",
    "may_describe_group",
    "may_describe_topics",
]

#: The error of a group with a topic that the client may not describe.
HIDDEN_TOPICS_CODE: Final = code_of("TOPIC_AUTHORIZATION_FAILED")
HIDDEN_TOPICS_MESSAGE: Final = (
    "The described group uses topics that the client is not authorized to describe."
)


class _DescribedGroup(Protocol):
    """The fields of a described group that both responses have."""

    group_id: str
    error_code: int
    authorized_operations: int


def may_describe_group(context: Context, group_id: str) -> bool:
    """Returns True if the client may describe a group."""
    return allows(context, Operation.DESCRIBE, ResourceType.GROUP, group_id)


def check_may_describe(context: Context, group_id: str) -> None:
    """Raises GROUP_AUTHORIZATION_FAILED, and INVALID_GROUP_ID for an empty group id."""
    check(context, Operation.DESCRIBE, ResourceType.GROUP, group_id)
    if not group_id:
        raise api_error("INVALID_GROUP_ID", "the group id is empty")


def may_describe_topics(context: Context, topics: Iterable[str]) -> bool:
    """Returns True if the client may describe all of the topics."""
    return all(allows(context, Operation.DESCRIBE, ResourceType.TOPIC, it) for it in topics)


def add_authorized_operations(context: Context, groups: Iterable[_DescribedGroup]) -> None:
    """Adds to each group without an error the operations that the client may execute on it."""
    for group in groups:
        if not group.error_code:
            group.authorized_operations = authorized_operations(
                context, ResourceType.GROUP, group.group_id
            )
