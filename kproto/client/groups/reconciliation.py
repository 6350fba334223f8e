"""Compares the assigned partitions, by topic id, with the owned partitions, by topic name.

A recreated topic has another id: owned partitions of the old topic are revoked first (KIP-516).
Does no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from ...messages.consumer_group_heartbeat_request import TopicPartitions
from ...messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from ...messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse
from ...wire.uuid import Uuid
from ..metadata.cluster import TopicPartition

__all__ = [
    "AssignmentReconciliation",
    "Difference",
    "OwnedPartitions",
    "TopicIdPartitions",
    "assigned_in",
    "by_topic_id",
    "difference",
    "to_request",
]

#: The owned partitions, with the id of each partition's topic.
OwnedPartitions: TypeAlias = Mapping[TopicPartition, Uuid]

#: Partitions by topic id, as requests and responses have them.
TopicIdPartitions: TypeAlias = frozenset[tuple[Uuid, int]]


class Difference(NamedTuple):
    """The partitions to revoke, the partitions to add after the revocation, and topic ids.

    The topic ids are the ids of assigned topics whose names are not known yet.
    """

    revoked: frozenset[TopicPartition]
    added: dict[TopicPartition, Uuid]
    unresolved: frozenset[Uuid]


#: The difference if the member owns exactly the partitions that are assigned.
NO_DIFFERENCE: Final = Difference(frozenset(), {}, frozenset())


def assigned_in(
    response: ConsumerGroupHeartbeatResponse | ShareGroupHeartbeatResponse,
) -> TopicIdPartitions | None:
    """Returns the assignment of a response; None if it has not changed."""
    if response.assignment is None:
        return None
    return frozenset(
        (topic.topic_id, partition)
        for topic in response.assignment.topic_partitions
        for partition in topic.partitions
    )


def by_topic_id(owned: OwnedPartitions) -> TopicIdPartitions:
    """Returns the owned partitions by topic id, as a heartbeat lists them."""
    return frozenset((topic_id, partition) for (_, partition), topic_id in owned.items())


def to_request(partitions: Iterable[tuple[Uuid, int]]) -> list[TopicPartitions]:
    """Returns the partitions as structs of ConsumerGroupHeartbeat, one for each topic id."""
    by_id: dict[Uuid, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        by_id.setdefault(topic_id, []).append(partition)
    return [TopicPartitions(topic_id=each, partitions=its) for each, its in by_id.items()]


def difference(
    owned: OwnedPartitions,
    assigned: TopicIdPartitions,
    name_of: Callable[[Uuid], str | None],
    is_subscribed: Callable[[str], bool],
) -> Difference:
    """Returns the partitions to revoke, the partitions to add, and the topic ids without a name.

    `owned` are the partitions that the member owns, and `assigned` is the new assignment. `name_of`
    returns the name of a topic id, or None if the name is not known yet. Ignores an assigned
    partition if `is_subscribed` returns False for its topic.
    """
    names = {topic_id: name_of(topic_id) for topic_id, _ in assigned}
    target = {
        (name, partition): topic_id
        for topic_id, partition in sorted(assigned)
        if (name := names[topic_id]) is not None and is_subscribed(name)
    }
    return Difference(
        frozenset(tp for tp, topic_id in owned.items() if target.get(tp) != topic_id),
        {tp: its for tp, its in target.items() if owned.get(tp) != its},
        frozenset(topic_id for topic_id, name in names.items() if name is None),
    )


class AssignmentReconciliation:
    """Tracks the owned and the assigned partitions of one member.

    `name_of` returns the name of a topic id; None if the metadata lacks it. While neither the
    owned nor the assigned partitions change, a heartbeat takes the same time for any number of
    partitions.
    """

    def __init__(self, name_of: Callable[[Uuid], str | None]) -> None:
        self.owned: dict[TopicPartition, Uuid] = {}
        self.assigned: TopicIdPartitions = frozenset()
        self._owned_ids: TopicIdPartitions | None = frozenset()  # None after a change of `owned`
        #: The `is_subscribed` for which `difference` has found NO_DIFFERENCE; None if the owned or
        #: assigned partitions have changed since.
        self._reconciled_for: Callable[[str], bool] | None = None
        self._adding: dict[TopicPartition, Uuid] = {}
        self._name_of = name_of
        self._names: dict[Uuid, str] = {}

    def reset(self) -> None:
        """Forgets the owned and the assigned partitions, before the member joins."""
        self.drop_owned()
        self.assigned = frozenset()

    def drop_owned(self) -> None:
        """Forgets the owned partitions, because they were revoked or lost."""
        self.owned = {}
        self._on_change()

    def _on_change(self) -> None:
        self._owned_ids = None
        self._reconciled_for = None

    @property
    def owned_ids(self) -> TopicIdPartitions:
        """The owned partitions by topic id, as a heartbeat lists them."""
        if self._owned_ids is None:
            self._owned_ids = by_topic_id(self.owned)
        return self._owned_ids

    def assign(self, assigned: TopicIdPartitions) -> bool:
        """Stores the assignment; returns True if it has changed."""
        has_changed = assigned != self.assigned
        self.assigned = assigned
        self._reconciled_for = None
        used = {*self.owned.values(), *(topic_id for topic_id, _ in assigned)}
        self._names = {each: its for each, its in self._names.items() if each in used}
        return has_changed

    def difference(self, is_subscribed: Callable[[str], bool]) -> Difference:
        """Returns the partitions to revoke and to add, and the topic ids without a name.

        Ignores an assigned partition if `is_subscribed` returns False for its topic.
        """
        if self._reconciled_for == is_subscribed:
            return NO_DIFFERENCE
        found = difference(self.owned, self.assigned, self._named, is_subscribed)
        if found == NO_DIFFERENCE:
            self._reconciled_for = is_subscribed
        return found

    def is_assigned(self, tp: TopicPartition, topic_id: Uuid) -> bool:
        """Returns True if the member owns the partition with that topic id, or is adding it."""
        return topic_id in (self.owned.get(tp), self._adding.get(tp))

    def topic_id_of(self, tp: TopicPartition) -> Uuid | None:
        """Returns the topic id of a partition that is being added, or that the member owns."""
        return self._adding.get(tp, self.owned.get(tp))

    def start(self, changes: Difference) -> None:
        """Stores the added partitions, `changes.added`; `finish` makes them owned partitions."""
        self._adding = changes.added

    def finish(self, revoked: Iterable[TopicPartition], added: Iterable[TopicPartition]) -> None:
        """Updates the owned partitions: `revoked` are no longer owned, `added` are owned now."""
        for tp in revoked:
            self.owned.pop(tp, None)
        self.owned.update((tp, self._adding[tp]) for tp in added)
        self._on_change()

    def _named(self, topic_id: Uuid) -> str | None:
        """Returns the name of a topic id; None if the metadata lacks it.

        Stores the name, because the name of an id never changes.
        """
        if topic_id not in self._names:
            name = self._name_of(topic_id)
            if name is None:
                return None
            self._names[topic_id] = name
        return self._names[topic_id]
