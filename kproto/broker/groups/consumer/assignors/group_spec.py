"""Defines the input of an assignor: members with subscriptions and assignments, and topics."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TypeAlias

from .....wire.uuid import Uuid
from ....coordinators import java_hash
from ...java_order import copied_size, grown_size, in_java_order, uuid_hash
from ..consumer_group_member import Partitions

__all__ = [
    "Assignment",
    "GroupSpec",
    "MemberSpec",
    "partitions_in_order",
    "reversed_topics",
    "topics_in_order",
]

Assignment: TypeAlias = dict[str, dict[Uuid, set[int]]]
"""The partitions of each member by topic id."""


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """Holds a member; `assigned` is the previous target assignment of the member.

    `topics` are the ids of the subscribed topics that exist, in the order in which Kafka inserts
    them into its hash maps. This order is the iteration order of a Java HashSet of the topic names.
    """

    topics: AbstractSet[Uuid]
    instance_id: str | None = None
    assigned: Partitions = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """Holds a group; `partitions` maps topic ids to partition counts.

    If `is_homogeneous` is set, assignors use the subscription of one member for all members.
    """

    members: Mapping[str, MemberSpec]
    partitions: Mapping[Uuid, int]
    is_homogeneous: bool

    @property
    def member_ids(self) -> list[str]:
        """Returns the member ids in the iteration order of Kafka's hash map."""
        return in_java_order(self.members, java_hash, grown_size(len(self.members)))


def topics_in_order(topics: AbstractSet[Uuid] | Partitions, *, copied: bool = False) -> list[Uuid]:
    """Returns topics in the order in which Java iterates over a HashMap whose keys are the topics.

    If `copied` is True, the order is that of a HashSet that was copied from another collection.
    """
    size = (copied_size if copied else grown_size)(len(topics))
    return in_java_order(topics, uuid_hash, size)


def partitions_in_order(partitions: frozenset[int]) -> list[int]:
    """Returns partitions in the iteration order of `new HashSet(partitions)`.

    The result is sorted if all indexes are below the number of buckets.
    """
    return in_java_order(sorted(partitions), int, copied_size(len(partitions)))


def reversed_topics(assignment: dict[Uuid, set[int]]) -> dict[Uuid, set[int]]:
    """Returns `assignment` with its topics in reverse order, which is Kafka's order.

    `computeIfAbsent` of a Java HashMap inserts a new key before the other keys of its bucket. A
    dict inserts a new key last, so callers reverse the dict at the end.
    """
    return dict(reversed(assignment.items()))
