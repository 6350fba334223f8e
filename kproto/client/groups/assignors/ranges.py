"""`range`: assigns each consumer of a topic a run of consecutive partitions of the topic.

The result is that of Kafka's RangeAssignor. Consumers are sorted; if the partitions cannot be
divided evenly, the first consumers get one partition more. With racks (KIP-881) each consumer first
gets partitions that have a replica in its rack, consecutive or not; topics with the same consumers
and the same number of partitions are co-partitioned if the racks allow it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from .racks import rack_of, uses_racks
from .subscriptions import Assignment, Subscription, TopicRacks, consumers_of, sorted_members

__all__ = ["assign_ranges"]


def assign_ranges(topics: TopicRacks, members: Mapping[str, Subscription]) -> Assignment:
    """Returns the partitions of each member, sorted by topic and number."""
    consumers = _sorted_consumers(topics, members)
    racks = {member_id: rack_of(member) for member_id, member in members.items()}
    found: Assignment = {member_id: [] for member_id in members}
    if not any(racks.values()):
        for topic in sorted(consumers):
            _assign_range(topic, len(topics[topic]), consumers[topic], found)
        return found
    shares = [
        _TopicAssignment(topic, topics[topic], its, racks) for topic, its in consumers.items()
    ]
    if any(share.uses_racks for share in shares):
        _match_racks(shares)
    for share in shares:
        share.fill(None)
    for share in sorted(shares, key=lambda each: each.topic):
        for member_id, assigned in share.assigned.items():
            found[member_id] += [(share.topic, partition) for partition in sorted(assigned)]
    return found


def _sorted_consumers(
    topics: TopicRacks, members: Mapping[str, Subscription]
) -> dict[str, list[str]]:
    """Returns the sorted consumers of each topic that has consumers.

    Topics with the same consumers share one list.
    """
    in_orders: dict[tuple[str, ...], list[str]] = {}
    found = {}
    for topic, its in consumers_of(topics, members).items():
        key = tuple(its)
        if key and key not in in_orders:
            in_orders[key] = sorted_members(members, its)
        if key:
            found[topic] = in_orders[key]
    return found


def _assign_range(topic: str, count: int, consumers: Sequence[str], found: Assignment) -> None:
    """Divides the `count` partitions of `topic` into consecutive runs, one per consumer.

    The first `count % len(consumers)` consumers get one partition more than all other consumers.
    """
    each, with_one_more = divmod(count, len(consumers))
    begin = 0
    for at, consumer in enumerate(consumers):
        end = begin + each + (at < with_one_more)
        if begin == end:
            return
        found[consumer] += [(topic, partition) for partition in range(begin, end)]
        begin = end


class _TopicAssignment:
    """Tracks which partitions of a topic each consumer has, and how many more it may get."""

    def __init__(
        self,
        topic: str,
        partitions: Sequence[frozenset[str]],
        consumers: Sequence[str],
        racks: Mapping[str, str | None],
    ) -> None:
        self.topic = topic
        self.partitions = partitions
        self.assigned: dict[str, list[int]] = {member_id: [] for member_id in consumers}
        self.uses_racks = uses_racks((racks[each] for each in consumers), {topic: partitions})
        self._racks = racks
        self._unassigned = dict.fromkeys(range(len(partitions)))  # a dict, because removal is fast
        self._minimum, self._with_one_more = divmod(len(partitions), len(consumers))

    def capacity(self, consumer: str) -> int:
        """Returns how many more partitions the consumer may get."""
        return self._minimum + (self._with_one_more > 0) - len(self.assigned[consumer])

    def matches(self, consumer: str, partition: int) -> bool:
        """Returns True if the consumer has no rack, or its rack has a replica of the partition."""
        rack = self._racks[consumer]
        return rack is None or rack in self.partitions[partition]

    def assign(self, consumer: str, partitions: Sequence[int]) -> None:
        """Assigns `partitions` to the consumer."""
        assigned = self.assigned[consumer]
        assigned += partitions
        if len(assigned) > self._minimum:
            self._with_one_more -= 1
        for partition in partitions:
            del self._unassigned[partition]

    def fill(self, may: Callable[[str, int], bool] | None) -> None:
        """Assigns each consumer the first unassigned partitions, up to the consumer's share.

        `may` returns True if a consumer may have a partition. If `may` is None, every consumer may
        have every partition.
        """
        for consumer in self.assigned:
            if not self._unassigned:
                return
            capacity = self.capacity(consumer)
            if capacity <= 0:
                continue
            chosen = []
            for partition in self._unassigned:
                if may is None or may(consumer, partition):
                    chosen.append(partition)
                    if len(chosen) == capacity:
                        break
            if chosen:
                self.assign(consumer, chosen)


def _match_racks(shares: Sequence[_TopicAssignment]) -> None:
    """Assigns each partition only to a consumer without a rack, or with a replica in its rack.

    Topics with the same consumers and the same number of partitions are co-partitioned: for
    example, one consumer gets partition 0 of all these topics.
    """
    co_partitioned: dict[tuple[int, tuple[str, ...]], list[_TopicAssignment]] = {}
    for share in shares:
        co_partitioned.setdefault((len(share.partitions), tuple(share.assigned)), []).append(share)
    for (partitions, consumers), its in co_partitioned.items():
        if len(its) > 1:
            _match_co_partitioned(its, partitions, consumers)
        elif its[0].uses_racks:
            its[0].fill(its[0].matches)


def _match_co_partitioned(
    shares: Sequence[_TopicAssignment], partitions: int, consumers: Sequence[str]
) -> None:
    """Assigns the partitions with the same number in all topics to one consumer.

    The first suitable consumer gets, for example, partition 0 of all topics. A suitable consumer
    has capacity in each topic, and has no rack or a rack with a replica of each of these
    partitions. If no consumer is suitable, the partitions stay unassigned.
    """
    for partition in range(partitions):
        for consumer in consumers:
            if all(
                share.matches(consumer, partition) and share.capacity(consumer) > 0
                for share in shares
            ):
                for share in shares:
                    share.assign(consumer, [partition])
                break
