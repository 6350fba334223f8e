"""Compares the assigned partitions, by topic id, with the owned ones, by name: plain data.

A recreated topic has another id: owned partitions of the old topic are revoked first (KIP-516).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from ....messages.consumer_group_heartbeat_request import TopicPartitions
from ....messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from ....wire.uuid import Uuid
from ...metadata.cluster import TopicPartition

__all__ = ["Difference", "Held", "Told", "assigned_in", "difference", "in_request", "told_of"]

#: What is held, with the id of each partition's topic.
Held: TypeAlias = Mapping[TopicPartition, Uuid]

#: Partitions as a coordinator names them.
Told: TypeAlias = frozenset[tuple[Uuid, int]]


class Difference(NamedTuple):
    """The partitions to revoke, those to add afterwards, and topic ids without a name yet."""

    revoked: frozenset[TopicPartition]
    added: dict[TopicPartition, Uuid]
    unresolved: frozenset[Uuid]


def assigned_in(response: ConsumerGroupHeartbeatResponse) -> Told | None:
    """Returns the assignment of a response; None if it has not changed."""
    if response.assignment is None:
        return None
    return frozenset(
        (topic.topic_id, partition)
        for topic in response.assignment.topic_partitions
        for partition in topic.partitions
    )


def told_of(held: Held) -> Told:
    """Returns the owned partitions in the form that a coordinator is sent."""
    return frozenset((topic_id, partition) for (_, partition), topic_id in held.items())


def in_request(told: Iterable[tuple[Uuid, int]]) -> list[TopicPartitions]:
    """Returns the same as structs of a request."""
    by_id: dict[Uuid, list[int]] = {}
    for topic_id, partition in sorted(told):
        by_id.setdefault(topic_id, []).append(partition)
    return [TopicPartitions(topic_id=each, partitions=its) for each, its in by_id.items()]


def difference(
    held: Held,
    assigned: Told,
    name_of: Callable[[Uuid], str | None],
    wants: Callable[[str], bool],
) -> Difference:
    """Returns the difference between `held` and `assigned`, for topics that the member `wants`."""
    names = {topic_id: name_of(topic_id) for topic_id, _ in assigned}
    target = {
        (name, partition): topic_id
        for topic_id, partition in sorted(assigned)
        if (name := names[topic_id]) is not None and wants(name)
    }
    return Difference(
        frozenset(tp for tp, topic_id in held.items() if target.get(tp) != topic_id),
        {tp: its for tp, its in target.items() if held.get(tp) != its},
        frozenset(topic_id for topic_id, name in names.items() if name is None),
    )
