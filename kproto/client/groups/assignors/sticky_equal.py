"""Assigns stickily for members that all subscribe to the same topics.

Each member keeps the partitions that it owns, up to its share; the other partitions are assigned
round robin. A share is the number of partitions divided by the number of members; if the remainder
of the division is n, n members get one partition more. With racks a member keeps only partitions
that have a replica in its rack, and other partitions first go to members whose rack has a replica.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ...metadata.cluster import TopicPartition
from .racks import rack_of, uses_racks
from .subscriptions import Assignment, Subscription, TopicRacks, java_sorted

__all__ = ["assign_equal_subscriptions"]


def assign_equal_subscriptions(
    topics: TopicRacks,
    members: Mapping[str, Subscription],
    owned: Mapping[str, Sequence[TopicPartition]],
    conflicting: Collection[TopicPartition],
) -> Assignment:
    """Returns the partitions to assign to each member.

    `owned` has, by member, the partitions that the member owns now. `conflicting` has the
    partitions that two members claim in the same generation.
    """
    wanted = members[next(iter(members))].topics if members else ()
    existing = {topic: topics[topic] for topic in java_sorted(set(wanted) & topics.keys())}
    racks = {member_id: rack_of(member) for member_id, member in members.items()}
    shares = _BalancedAssignment(members, sum(map(len, existing.values())))
    counts = uses_racks(racks.values(), existing)
    for member_id, tps in owned.items():
        kept = [
            (topic, partition)
            for topic, partition in tps
            if topic in existing
            and (topic, partition) not in conflicting
            and (not counts or racks[member_id] in (None, *existing[topic][partition]))
        ]
        shares.keep_owned(member_id, sorted(kept, key=lambda tp: (tp[1], tp[0])))
    kept_by_all = {tp for assigned in shares.assigned.values() for tp in assigned}
    left = [
        (topic, partition)
        for topic, partitions in existing.items()
        for partition in range(len(partitions))
        if (topic, partition) not in kept_by_all
    ]
    shares.sort_members()
    if counts:
        # Partitions with the fewest members in the racks of their replicas come first.
        in_rack: dict[str | None, int] = {}
        for rack in racks.values():
            in_rack[rack] = in_rack.get(rack, 0) + 1
        left.sort(key=lambda p: sum(in_rack.get(rack, 0) for rack in existing[p[0]][p[1]]))
        left = [p for p in left if not shares.assign_in_rack(p, existing[p[0]][p[1]], racks)]
    shares.assign_round_robin(left)
    return shares.assigned


class _BalancedAssignment:
    """The partitions that are assigned to each member, up to its share.

    A share is `_minimum` partitions, or one more for `_with_one_more` members.
    """

    def __init__(self, members: Collection[str], partitions: int) -> None:
        self.assigned: Assignment = {member_id: [] for member_id in members}
        self._minimum, self._with_one_more = divmod(partitions, len(members)) if members else (0, 0)
        self._below_minimum: list[str] = []  # members with fewer partitions than `_minimum`
        self._at_minimum: list[
            str
        ] = []  # members with `_minimum` partitions, which may get one more
        self._next = 0  # index in `_below_minimum` of the next member

    def keep_owned(self, member_id: str, tps: Sequence[TopicPartition]) -> None:
        """Assigns a member the first of its owned partitions `tps`, up to its share."""
        least = self._minimum
        if len(tps) < least:
            self._below_minimum.append(member_id)
            self.assigned[member_id] = list(tps)
        elif len(tps) > least and self._with_one_more:
            self._with_one_more -= 1
            self.assigned[member_id] = list(tps[: least + 1])
        else:
            self.assigned[member_id] = list(tps[:least])
            self._at_minimum.append(member_id)

    def sort_members(self) -> None:
        """Sorts the members by id for the round robin, after all members have kept partitions."""
        self._below_minimum = java_sorted(self._below_minimum)
        self._at_minimum = java_sorted(self._at_minimum)

    def assign_in_rack(
        self, tp: TopicPartition, near: Collection[str], racks: Mapping[str, str | None]
    ) -> bool:
        """Assigns a partition to the next member that is in a rack of `near` and below its share.

        Returns False if these racks have no such member.
        """
        below = self._below_minimum
        for step in range(len(below)):
            at = (self._next + step) % len(below)
            if racks[below[at]] in near:
                self._next = self._assign_to(tp, at)
                return True
        if not self._with_one_more:
            return False
        for at, member_id in enumerate(self._at_minimum):
            if racks[member_id] in near:
                del self._at_minimum[at]
                self._with_one_more -= 1
                self.assigned[member_id].append(tp)
                return True
        return False

    def assign_round_robin(self, partitions: Sequence[TopicPartition]) -> None:
        """Assigns each partition to the next member that has fewer than `_minimum` partitions.

        Once all members have `_minimum` partitions, assigns the remaining partitions, at most one
        more to each member.
        """
        at = 0
        for number, tp in enumerate(partitions):
            if not self._below_minimum:
                for more, member_id in zip(partitions[number:], self._at_minimum, strict=False):
                    self.assigned[member_id].append(more)
                return
            at = self._assign_to(tp, at % len(self._below_minimum))

    def _assign_to(self, tp: TopicPartition, at: int) -> int:
        """Assigns `tp` to the member at index `at` of `_below_minimum`; returns the next index."""
        member_id = self._below_minimum[at]
        assigned = self.assigned[member_id]
        assigned.append(tp)
        if len(assigned) < self._minimum:
            at += 1
        else:
            del self._below_minimum[at]
            self._at_minimum.append(member_id)
        return at % len(self._below_minimum) if self._below_minimum else 0
