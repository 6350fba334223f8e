"""Validates OffsetCommit for classic groups, and OffsetDelete for groups of both protocols.

The order of checks is that of Kafka's ClassicGroup. `consumer.offset_checks` validates OffsetCommit
for groups of the consumer protocol.
"""

from __future__ import annotations

from typing import Final, Protocol

from ..api_error import api_error
from .classic_group_state import ClassicGroupState

__all__ = [
    "SupportsOffsetCommit",
    "SupportsOffsetDelete",
    "resets_session",
    "validate_offset_commit",
    "validate_offset_delete",
    "validate_transactional_commit",
]

#: The first version of OffsetCommit with GROUP_ID_NOT_FOUND.
_FIRST_VERSION_OF_NOT_FOUND: Final = 9

#: The first version of TxnOffsetCommit with GROUP_ID_NOT_FOUND (KIP-1319).
_FIRST_TRANSACTIONAL_VERSION_OF_NOT_FOUND: Final = 6

#: The states in which a commit resets the session timeout of the member.
_OF_SESSIONS: Final = frozenset({ClassicGroupState.STABLE, ClassicGroupState.PREPARING_REBALANCE})


class SupportsOffsetCommit(Protocol):
    """Describes the attributes of a group that `validate_offset_commit` uses."""

    protocol_type: str | None
    generation: int
    state: ClassicGroupState

    @property
    def group_id(self) -> str: ...

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        """Raises UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID for a static member that was replaced."""


class SupportsOffsetDelete(Protocol):
    """Describes the attributes of a group of either protocol that `validate_offset_delete` uses."""

    @property
    def group_id(self) -> str: ...

    @property
    def protocol_type(self) -> str | None: ...

    @property
    def state(self) -> str: ...


def validate_offset_commit(
    group: SupportsOffsetCommit | None,
    member_id: str,
    generation: int,
    instance_id: str | None,
    version: int,
) -> None:
    """Checks whether a commit is allowed; `group` is None if the group does not exist.

    Admin clients, and consumers that are not members, send a generation below 0. Such clients may
    commit if the group is empty or does not exist. `version` is the version of OffsetCommit. Raises
    GROUP_ID_NOT_FOUND (before v9 ILLEGAL_GENERATION), COORDINATOR_NOT_AVAILABLE, UNKNOWN_MEMBER_ID,
    FENCED_INSTANCE_ID, ILLEGAL_GENERATION and REBALANCE_IN_PROGRESS.
    """
    if group is None:
        if generation < 0:
            return
        name = "GROUP_ID_NOT_FOUND"
        if version < _FIRST_VERSION_OF_NOT_FOUND:
            name = "ILLEGAL_GENERATION"
        raise api_error(name, f"there is no group for generation {generation} to commit to")
    if group.state is ClassicGroupState.DEAD:
        raise api_error("COORDINATOR_NOT_AVAILABLE", f"group {group.group_id!r} is being deleted")
    if generation < 0 and group.state is ClassicGroupState.EMPTY:
        return
    if generation < 0 and not member_id and instance_id is None:
        raise api_error(
            "UNKNOWN_MEMBER_ID",
            f"group {group.group_id!r} has members, and the commit names none of them",
        )
    group.check_member(member_id, instance_id)
    if generation != group.generation:
        raise api_error(
            "ILLEGAL_GENERATION",
            f"group {group.group_id!r} is at generation {group.generation}, not {generation}",
        )
    if group.state is ClassicGroupState.COMPLETING_REBALANCE:
        raise api_error(
            "REBALANCE_IN_PROGRESS", f"group {group.group_id!r} waits for its assignment"
        )


def validate_transactional_commit(
    group: SupportsOffsetCommit | None,
    member_id: str,
    generation: int,
    instance_id: str | None,
    version: int,
) -> None:
    """Checks whether a TxnOffsetCommit is allowed; `group` is None if the group does not exist.

    A producer without the metadata of a consumer group sends a generation below 0 and no member:
    such a producer may always commit. For any other producer, the member and generation must be
    current (KIP-447). `version` is the version of TxnOffsetCommit. Raises GROUP_ID_NOT_FOUND
    (before v6 ILLEGAL_GENERATION), COORDINATOR_NOT_AVAILABLE, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID
    and ILLEGAL_GENERATION.
    """
    if group is None:
        if generation < 0:
            return
        name = "GROUP_ID_NOT_FOUND"
        if version < _FIRST_TRANSACTIONAL_VERSION_OF_NOT_FOUND:
            name = "ILLEGAL_GENERATION"
        raise api_error(name, f"there is no group for generation {generation} to commit to")
    if group.state is ClassicGroupState.DEAD:
        raise api_error("COORDINATOR_NOT_AVAILABLE", f"group {group.group_id!r} is being deleted")
    if generation < 0 and group.state is ClassicGroupState.EMPTY:
        return
    if generation < 0 and not member_id and instance_id is None:
        return
    group.check_member(member_id, instance_id)
    if generation != group.generation:
        raise api_error(
            "ILLEGAL_GENERATION",
            f"group {group.group_id!r} is at generation {group.generation}, not {generation}",
        )


def resets_session(group: SupportsOffsetCommit) -> bool:
    """Returns True if a commit in this state of the group resets the member's session timeout."""
    return group.state in _OF_SESSIONS


def validate_offset_delete(group: SupportsOffsetDelete | None) -> None:
    """Checks whether committed offsets of a group may be deleted (KIP-496).

    The caller also checks that no member subscribes to a topic of the offsets. Raises
    GROUP_ID_NOT_FOUND if the group does not exist. Raises NON_EMPTY_GROUP if the group has members
    that are not consumers, because their subscriptions are unknown.
    """
    if group is None or group.state == ClassicGroupState.DEAD:
        raise api_error("GROUP_ID_NOT_FOUND", "there is no such group")
    if group.state != ClassicGroupState.EMPTY and group.protocol_type != "consumer":
        raise api_error(
            "NON_EMPTY_GROUP",
            f"group {group.group_id!r} has members that are not consumers",
        )
