"""`range`: of each topic a run of neighbouring partitions for each of its consumers.

As Kafka's RangeAssignor gives them (KIP-881 for racks): consumers in order, the first ones get one
more where it does not come out even. Where racks count, each first gets what has a replica in its
rack; topics with the same consumers and the same number of partitions are kept in step then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from .racks import rack_of, racks_count
from .subscriptions import Assignment, Subscription, TopicRacks, consumers_of, in_order

__all__ = ["assign_ranges"]


def assign_ranges(topics: TopicRacks, members: Mapping[str, Subscription]) -> Assignment:
    """Who reads what; partitions in order of topic and number."""
    racks = {member_id: rack_of(member) for member_id, member in members.items()}
    consumers = consumers_of(topics, members)
    shares = [
        _Share(topic, partitions, in_order(members, consumers[topic]), racks)
        for topic, partitions in topics.items()
        if consumers[topic]
    ]
    if any(share.racks_count for share in shares):
        _match_racks(shares)
    for share in shares:
        share.give(None)
    found: Assignment = {member_id: [] for member_id in members}
    for share in sorted(shares, key=lambda each: each.topic):
        for member_id, given in share.given.items():
            found[member_id] += [(share.topic, partition) for partition in sorted(given)]
    return found


class _Share:
    """The partitions of a topic, and how many of them each consumer may still get."""

    def __init__(
        self,
        topic: str,
        partitions: Sequence[frozenset[str]],
        consumers: Sequence[str],
        racks: Mapping[str, str | None],
    ) -> None:
        self.topic = topic
        self.partitions = partitions
        self.given: dict[str, list[int]] = {member_id: [] for member_id in consumers}
        self.racks_count = racks_count((racks[each] for each in consumers), {topic: partitions})
        self._racks = racks
        self._left = dict.fromkeys(range(len(partitions)))  # in order, and quick to take from
        self._each, self._with_one_more = divmod(len(partitions), len(consumers))

    def room(self, consumer: str) -> int:
        """How many more the consumer may get."""
        return self._each + (self._with_one_more > 0) - len(self.given[consumer])

    def matches(self, consumer: str, partition: int) -> bool:
        """Whether the partition has a replica in the consumer's rack, if it has one."""
        rack = self._racks[consumer]
        return rack is None or rack in self.partitions[partition]

    def take(self, consumer: str, partitions: Sequence[int]) -> None:
        """Give these to the consumer."""
        given = self.given[consumer]
        given += partitions
        if len(given) > self._each:
            self._with_one_more -= 1
        for partition in partitions:
            del self._left[partition]

    def give(self, may: Callable[[str, int], bool] | None) -> None:
        """Give each consumer the first ones of those left that it may have, up to its room."""
        for consumer in self.given:
            if not self._left:
                return
            room = self.room(consumer)
            if room <= 0:
                continue
            chosen = []
            for partition in self._left:
                if may is None or may(consumer, partition):
                    chosen.append(partition)
                    if len(chosen) == room:
                        break
            if chosen:
                self.take(consumer, chosen)


def _match_racks(shares: Sequence[_Share]) -> None:
    """Give what has a replica in the consumer's rack, in step where topics belong together."""
    together: dict[tuple[int, tuple[str, ...]], list[_Share]] = {}
    for share in shares:
        together.setdefault((len(share.partitions), tuple(share.given)), []).append(share)
    for (partitions, consumers), its in together.items():
        if len(its) > 1:
            _match_in_step(its, partitions, consumers)
        elif its[0].racks_count:
            its[0].give(its[0].matches)


def _match_in_step(shares: Sequence[_Share], partitions: int, consumers: Sequence[str]) -> None:
    """Give the same partition of all topics to the first consumer whose rack has all of them."""
    for partition in range(partitions):
        for consumer in consumers:
            if all(
                share.matches(consumer, partition) and share.room(consumer) > 0 for share in shares
            ):
                for share in shares:
                    share.take(consumer, [partition])
                break
