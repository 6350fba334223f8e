"""`PartitionGroups`: the assigned partitions of a share consumer by leader. Does no I/O."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from ....wire.uuid import Uuid
from ...metadata.cluster import Cluster, TopicPartition
from .session import TopicIdPartition

__all__ = ["PartitionGroups"]

_NEVER: Final = float("inf")


class PartitionGroups:
    """Groups the assigned partitions by leader, except for those that back off.

    Leaves out partitions of topics that the consumer does not subscribe to any more: the member
    has them until the coordinator has answered its next heartbeat.

    `by_node` has the partitions to fetch from each broker, `leaders` the leader of each partition,
    and `unknown` the topics of partitions without a known leader. Call `update` after each change.
    """

    def __init__(self) -> None:
        self.assigned: dict[TopicPartition, Uuid] = {}
        self.by_node: dict[int, list[TopicIdPartition]] = {}
        self.leaders: dict[TopicPartition, int] = {}
        self.unknown: set[str] = set()
        self._subscribed: frozenset[str] | None = None  # None: the topics of all partitions
        self._names: dict[Uuid, str] = {}  # also of revoked partitions, until their topic is gone
        self._backoff: dict[TopicPartition, float] = {}
        self._version = 0
        self._grouped_for = (-1, -1)

    def assign(self, topic_ids: Mapping[TopicPartition, Uuid]) -> None:
        """Adds partitions, with the ids of their topics in the assignment."""
        self.assigned |= topic_ids
        self._names |= {topic_id: topic for (topic, _), topic_id in topic_ids.items()}
        self._version += 1

    def revoke(self, tps: Collection[TopicPartition]) -> None:
        """Removes partitions."""
        for tp in tps:
            self.assigned.pop(tp, None)
            self._backoff.pop(tp, None)
        self._version += 1

    def subscribe(self, topics: frozenset[str]) -> None:
        """Leaves out the partitions of all other topics from now on."""
        self._subscribed = topics
        self._version += 1

    def is_subscribed(self, topic: str) -> bool:
        """Returns True if the consumer subscribes to a topic."""
        return self._subscribed is None or topic in self._subscribed

    def name_of(self, topic_id: Uuid) -> str | None:
        """Returns the name of a topic that was assigned; None for other ids."""
        return self._names.get(topic_id)

    @property
    def topics(self) -> set[str]:
        """The names of the topics with assigned partitions."""
        return {topic for topic, _ in self.assigned}

    def topics_at(self, node: int) -> set[str]:
        """Returns the topics of the partitions that a broker leads."""
        return {tp[0] for tp, leader in self.leaders.items() if leader == node}

    def update(self, cluster: Cluster) -> bool:
        """Groups the partitions again if anything has changed; returns True if a leader is new."""
        versions = (cluster.version, self._version)
        if versions == self._grouped_for:
            return False
        self.by_node = {}
        self.unknown = set()
        before, self.leaders = self.leaders, {}
        for tp, topic_id in self.assigned.items():
            if not self.is_subscribed(tp[0]):
                continue
            leader = cluster.leader(*tp)
            if leader is None or leader not in cluster.brokers:
                self.unknown.add(tp[0])
                continue
            self.leaders[tp] = leader
            if tp in self._backoff:
                if leader == before.get(tp):
                    continue
                del self._backoff[tp]  # it has a new leader
            self.by_node.setdefault(leader, []).append((topic_id, tp[1]))
        self._grouped_for = versions
        return any(before.get(tp, leader) != leader for tp, leader in self.leaders.items())

    # Backoffs

    def back_off(self, tp: TopicPartition, until: float) -> None:
        """Leaves a partition out of the groups until `until`, or until it has another leader."""
        if tp in self.assigned:
            self._backoff[tp] = until
            self._version += 1

    def end_backoffs(self, now: float) -> None:
        """Adds the partitions whose backoff is over to the groups again."""
        over = [tp for tp, until in self._backoff.items() if until <= now]
        for tp in over:
            del self._backoff[tp]
        self._version += bool(over)

    @property
    def next_at(self) -> float:
        """The end of the first backoff, in seconds of the clock; infinity if there is none."""
        return min(self._backoff.values(), default=_NEVER)
