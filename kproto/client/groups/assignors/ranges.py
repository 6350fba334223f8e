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
    consumers = _consumers_in_order(topics, members)
    racks = {member_id: rack_of(member) for member_id, member in members.items()}
    found: Assignment = {member_id: [] for member_id in members}
    if not any(racks.values()):
        for topic in sorted(consumers):
            _give_in_turn(topic, len(topics[topic]), consumers[topic], found)
        return found
    shares = [_Share(topic, topics[topic], its, racks) for topic, its in consumers.items()]
    if any(share.racks_count for share in shares):
        _match_racks(shares)
    for share in shares:
        share.give(None)
    for share in sorted(shares, key=lambda each: each.topic):
        for member_id, given in share.given.items():
            found[member_id] += [(share.topic, partition) for partition in sorted(given)]
    return found


def _consumers_in_order(
    topics: TopicRacks, members: Mapping[str, Subscription]
) -> dict[str, list[str]]:
    """The consumers of each topic that has any; sorted once where topics have the same ones."""
    in_orders: dict[tuple[str, ...], list[str]] = {}
    found = {}
    for topic, its in consumers_of(topics, members).items():
        key = tuple(its)
        if key and key not in in_orders:
            in_orders[key] = in_order(members, its)
        if key:
            found[topic] = in_orders[key]
    return found


def _give_in_turn(topic: str, count: int, consumers: Sequence[str], found: Assignment) -> None:
    """Give each consumer its run of `count` partitions; the first ones get one more."""
    each, with_one_more = divmod(count, len(consumers))
    begin = 0
    for at, consumer in enumerate(consumers):
        end = begin + each + (at < with_one_more)
        if begin == end:
            return
        found[consumer] += [(topic, partition) for partition in range(begin, end)]
        begin = end


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
