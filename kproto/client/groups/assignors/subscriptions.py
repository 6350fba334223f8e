"""Defines the input of an assignor: topics with the racks of their replicas, and subscriptions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from ...metadata.cluster import TopicPartition

__all__ = [
    "NO_GENERATION",
    "Assign",
    "Assignment",
    "Subscription",
    "TopicRacks",
    "consumers_of",
    "java_sorted",
    "sorted_members",
]

NO_GENERATION: Final = -1

#: Topic -> for each of its partitions, from 0 on, the racks that have a replica of the partition.
TopicRacks: TypeAlias = Mapping[str, Sequence[frozenset[str]]]

#: Member id -> its partitions.
Assignment: TypeAlias = dict[str, list[TopicPartition]]


class Subscription(NamedTuple):
    """The subscription that a member sends to its leader (ConsumerProtocolSubscription).

    `owned` are the partitions that the member owns. `generation` is the generation in which they
    were assigned; NO_GENERATION if the member did not send it. The assignor defines `user_data`.
    """

    topics: Sequence[str]
    owned: Sequence[TopicPartition] = ()
    generation: int = NO_GENERATION
    rack: str | None = None
    instance_id: str | None = None
    user_data: bytes | None = None


#: Returns the partitions of each member, from the existing topics and the members' subscriptions.
Assign: TypeAlias = Callable[
    [TopicRacks, Mapping[str, Subscription]], Mapping[str, Iterable[TopicPartition]]
]


def java_sorted(texts: Iterable[str]) -> list[str]:
    """Returns the texts in the order of Java's `String.compareTo`: by UTF-16 code units."""
    found = list(texts)
    if all(map(str.isascii, found)):
        return sorted(found)
    return sorted(found, key=_code_units)


def sorted_members(members: Mapping[str, Subscription], ids: Iterable[str]) -> list[str]:
    """Returns `ids` sorted: static members by instance id, then dynamic members by member id."""
    static = {}
    dynamic = []
    for member_id in ids:
        instance_id = members[member_id].instance_id
        if instance_id is None:
            dynamic.append(member_id)
        else:
            static[instance_id] = member_id
    return [static[instance_id] for instance_id in java_sorted(static)] + java_sorted(dynamic)


def consumers_of(
    topics: Iterable[str], members: Mapping[str, Subscription]
) -> dict[str, list[str]]:
    """Returns, by topic, the ids of the members that subscribe to it, in the order of `members`."""
    found: dict[str, list[str]] = {topic: [] for topic in topics}
    for member_id, member in members.items():
        for topic in dict.fromkeys(member.topics):
            if topic in found:
                found[topic].append(member_id)
    return found


def _code_units(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")
