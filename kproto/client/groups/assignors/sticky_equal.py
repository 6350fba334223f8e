"""Assigns stickily for members that all subscribe to the same topics.

Each member keeps the partitions that it owns, up to its share; the other partitions are assigned
round robin. A share is the number of partitions divided by the number of members; as many members
as the remainder get one partition more. With racks a member keeps only partitions that have a
replica in its rack, and other partitions first go to members whose rack has a replica.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ...metadata.cluster import TopicPartition
from .racks import rack_of, racks_count
from .subscriptions import Assignment, Subscription, TopicRacks, java_sorted

__all__ = ["assign_equally"]


def assign_equally(
    topics: TopicRacks,
    members: Mapping[str, Subscription],
    owned: Mapping[str, Sequence[TopicPartition]],
    twice: Collection[TopicPartition],
) -> Assignment:
    """Returns the partitions of each member.

    `owned` has the current partitions of each member, `twice` those that two members claim in the
    same generation.
    """
    wanted = members[next(iter(members))].topics if members else ()
    there = {topic: topics[topic] for topic in java_sorted(set(wanted) & topics.keys())}
    racks = {member_id: rack_of(member) for member_id, member in members.items()}
    shares = _Shares(members, sum(map(len, there.values())))
    counts = racks_count(racks.values(), there)
    for member_id, tps in owned.items():
        kept = [
            (topic, partition)
            for topic, partition in tps
            if topic in there
            and (topic, partition) not in twice
            and (not counts or racks[member_id] in (None, *there[topic][partition]))
        ]
        shares.keep(member_id, sorted(kept, key=lambda tp: (tp[1], tp[0])))
    kept_by_all = {tp for given in shares.given.values() for tp in given}
    left = [
        (topic, partition)
        for topic, partitions in there.items()
        for partition in range(len(partitions))
        if (topic, partition) not in kept_by_all
    ]
    shares.begin()
    if counts:
        # Partitions with the fewest members in the racks of their replicas come first.
        in_rack: dict[str | None, int] = {}
        for rack in racks.values():
            in_rack[rack] = in_rack.get(rack, 0) + 1
        left.sort(key=lambda p: sum(in_rack.get(rack, 0) for rack in there[p[0]][p[1]]))
        left = [p for p in left if not shares.give_near(p, there[p[0]][p[1]], racks)]
    shares.give_in_turns(left)
    return shares.given


class _Shares:
    """The partitions of each member: `_least` of them, or one more for `_with_one_more` members."""

    def __init__(self, members: Collection[str], partitions: int) -> None:
        self.given: Assignment = {member_id: [] for member_id in members}
        self._least, self._with_one_more = divmod(partitions, len(members)) if members else (0, 0)
        self._below: list[str] = []  # members with fewer partitions than `_least`
        self._at_least: list[str] = []  # members with `_least` partitions, which may get one more
        self._next = 0  # index in `_below`

    def keep(self, member_id: str, tps: Sequence[TopicPartition]) -> None:
        """Assigns a member the first of its own partitions `tps`, up to its share."""
        least = self._least
        if len(tps) < least:
            self._below.append(member_id)
            self.given[member_id] = list(tps)
        elif len(tps) > least and self._with_one_more:
            self._with_one_more -= 1
            self.given[member_id] = list(tps[: least + 1])
        else:
            self.given[member_id] = list(tps[:least])
            self._at_least.append(member_id)

    def begin(self) -> None:
        """Sorts the members by id for the round robin, after all have kept their partitions."""
        self._below = java_sorted(self._below)
        self._at_least = java_sorted(self._at_least)

    def give_near(
        self, tp: TopicPartition, near: Collection[str], racks: Mapping[str, str | None]
    ) -> bool:
        """Assigns a partition to the next member below its share in one of the racks `near`;
        returns False if there is none.
        """
        below = self._below
        for step in range(len(below)):
            at = (self._next + step) % len(below)
            if racks[below[at]] in near:
                self._next = self._give(tp, at)
                return True
        if not self._with_one_more:
            return False
        for at, member_id in enumerate(self._at_least):
            if racks[member_id] in near:
                del self._at_least[at]
                self._with_one_more -= 1
                self.given[member_id].append(tp)
                return True
        return False

    def give_in_turns(self, partitions: Sequence[TopicPartition]) -> None:
        """Assigns each partition to the next member below its share: up to `_least`, then one
        more.
        """
        at = 0
        for number, tp in enumerate(partitions):
            if not self._below:
                for more, member_id in zip(partitions[number:], self._at_least, strict=False):
                    self.given[member_id].append(more)
                return
            at = self._give(tp, at % len(self._below))

    def _give(self, tp: TopicPartition, at: int) -> int:
        """Assigns `tp` to the member at that index of `_below`; returns the next index."""
        member_id = self._below[at]
        given = self.given[member_id]
        given.append(tp)
        if len(given) < self._least:
            at += 1
        else:
            del self._below[at]
            self._at_least.append(member_id)
        return at % len(self._below) if self._below else 0
