"""The input of an assignor: members, subscriptions, previous assignments and topics."""

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
    """A member; `assigned` is its previous target assignment.

    `topics` are the ids of existing topics, in the order of Kafka: that of their names in a hash
    set, and for ids in one bucket of a hash map that of insertion.
    """

    topics: AbstractSet[Uuid]
    instance_id: str | None = None
    assigned: Partitions = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """A group; `partitions` are the partition counts of the topics.

    With `is_homogeneous`, all members are taken to subscribe as the first member in order does.
    """

    members: Mapping[str, MemberSpec]
    partitions: Mapping[Uuid, int]
    is_homogeneous: bool

    @property
    def member_ids(self) -> list[str]:
        """Returns the members in Kafka's iteration order, that of a hash map."""
        return in_java_order(self.members, java_hash, grown_size(len(self.members)))


def topics_in_order(topics: AbstractSet[Uuid] | Partitions, *, copied: bool = False) -> list[Uuid]:
    """Returns topics in the order of a hash map, or of a hash set that is a copy."""
    size = (copied_size if copied else grown_size)(len(topics))
    return in_java_order(topics, uuid_hash, size)


def partitions_in_order(partitions: frozenset[int]) -> list[int]:
    """Returns partitions in the order of a copied hash set.

    Sorted, except high ones in small sets.
    """
    return in_java_order(sorted(partitions), int, copied_size(len(partitions)))


def reversed_topics(assignment: dict[Uuid, set[int]]) -> dict[Uuid, set[int]]:
    """Returns the topics in reverse order.

    `computeIfAbsent` of a hash map inserts a new key before those in the same bucket. Keys inserted
    that way are collected in reverse, and reversed at the end.
    """
    return dict(reversed(assignment.items()))
