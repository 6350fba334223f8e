"""What an assignor is asked: members, what they subscribe to and were meant to have, and topics."""

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
"""The partitions of each member, by the id of their topic."""


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """`topics` are those that are there, by their ids; `assigned` is its target of before.

    Kafka looks at topics in the order of their names in a hash set, and of two whose ids have the
    same place in a hash map at that first which was put there first: so `topics` are in that order.
    """

    topics: AbstractSet[Uuid]
    instance_id: str | None = None
    assigned: Partitions = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """`partitions` are how many each topic has.

    `is_homogeneous`: all subscribe alike, or are taken to, as the first member in order does.
    """

    members: Mapping[str, MemberSpec]
    partitions: Mapping[Uuid, int]
    is_homogeneous: bool

    @property
    def member_ids(self) -> list[str]:
        """The members in the order in which Kafka looks at them, that of a hash map."""
        return in_java_order(self.members, java_hash, grown_size(len(self.members)))


def topics_in_order(topics: AbstractSet[Uuid] | Partitions, *, copied: bool = False) -> list[Uuid]:
    """Topics in the order of a hash map, or of a hash set that is a copy."""
    size = (copied_size if copied else grown_size)(len(topics))
    return in_java_order(topics, uuid_hash, size)


def partitions_in_order(partitions: frozenset[int]) -> list[int]:
    """The numbers of a hash set that is a copy: in order, but for the higher ones of few."""
    return in_java_order(sorted(partitions), int, copied_size(len(partitions)))


def reversed_topics(places: dict[Uuid, set[int]]) -> dict[Uuid, set[int]]:
    """The same in the opposite order.

    `computeIfAbsent` of a hash map puts what is new in front of what has the same place there: what
    is added like that is collected backwards, and turned round in the end.
    """
    return dict(reversed(places.items()))
