"""Implements the assignor `uniform` for different subscriptions.

Members keep their previous target assignment, except topics to which they no longer subscribe.
Unassigned partitions are assigned to the subscribers with the fewest partitions. Then, topic by
topic, partitions move from the subscribers with the most partitions to the subscribers with the
fewest, until no partition moves or the maximum number of rounds is reached. The results equal those
of Kafka's UniformHeterogeneousAssignmentBuilder.
"""

from __future__ import annotations

from typing import Final

from .....wire.uuid import Uuid
from .group_spec import Assignment, GroupSpec, reversed_topics

__all__ = ["assign_uniform_heterogeneous"]

#: Maximum number of balancing rounds over all topics; after them, the imbalance is small.
_MOST_ROUNDS: Final = 16

_NOBODY: Final = -1


def assign_uniform_heterogeneous(group: GroupSpec) -> Assignment:
    """Returns the assignment of the assignor `uniform` if members have different subscriptions."""
    return _HeterogeneousAssignmentBuilder(group).assign()


class _HeterogeneousAssignmentBuilder:
    """Builds one assignment; a member is an index in the list `ids`."""

    def __init__(self, group: GroupSpec) -> None:
        self.group = group
        self.ids = group.member_ids
        self.subscribers: dict[Uuid, list[int]] = {}
        for number, member_id in enumerate(self.ids):
            for topic_id in group.members[member_id].topics:
                self.subscribers.setdefault(topic_id, []).append(number)
        #: The member index of each partition, by topic.
        self.owners = {it: [_NOBODY] * group.partitions[it] for it in self.subscribers}
        self.sizes = [0] * len(self.ids)
        self.assignment: Assignment = {}

    def assign(self) -> Assignment:
        if not self.subscribers:
            return {}
        self._retain_previous()
        self._assign_unassigned()
        self._balance()
        return {member_id: reversed_topics(its) for member_id, its in self.assignment.items()}

    def _retain_previous(self) -> None:
        for number, member_id in enumerate(self.ids):
            member = self.group.members[member_id]
            retained = {it: set(its) for it, its in member.assigned.items() if it in member.topics}
            self.assignment[member_id] = reversed_topics(retained)
            for topic_id, its in retained.items():
                self.sizes[number] += len(its)
                for index in its:
                    self.owners[topic_id][index] = number

    def _assign_unassigned(self) -> None:
        unassigned = {
            topic_id: [index for index, owner in enumerate(owners) if owner == _NOBODY]
            for topic_id, owners in self.owners.items()
        }
        for topic_id in self._in_order([it for it, its in unassigned.items() if its]):
            balancer = _LoadOrder(self.sizes, self.subscribers[topic_id])
            for index in unassigned[topic_id]:
                self._assign(topic_id, index, balancer.next_least())

    def _in_order(self, topics: list[Uuid]) -> list[Uuid]:
        """Returns topics in the order in which they are assigned and balanced.

        Topics with the most partitions per subscriber come first. Topics with an equal ratio are in
        ascending order of their number of subscribers, then of their topic ids.
        """

        def rank(topic_id: Uuid) -> tuple[float, int, int, int]:
            subscribers = len(self.subscribers[topic_id])
            high = int.from_bytes(topic_id[:8], "big", signed=True)
            low = int.from_bytes(topic_id[8:], "big", signed=True)
            return -(self.group.partitions[topic_id] / subscribers), subscribers, high, low

        return sorted(topics, key=rank)

    def _balance(self) -> None:
        topics = self._in_order([it for it, its in self.subscribers.items() if len(its) > 1])
        last_changed: Uuid | None = None
        for _ in range(_MOST_ROUNDS):
            for topic_id in topics:
                if topic_id == last_changed:
                    return
                if self._balance_topic(topic_id) or last_changed is None:
                    last_changed = topic_id

    def _balance_topic(self, topic_id: Uuid) -> bool:
        """Balances the partitions of one topic; returns True if a partition has moved."""
        subscribers = self.subscribers[topic_id]
        sizes = [self.sizes[it] for it in subscribers]
        if max(sizes) - min(sizes) <= 1:
            return False
        balancer = _LoadOrder(self.sizes, subscribers)
        owners = self.owners[topic_id]
        stacks: dict[int, list[int]] = {}
        for index, owner in enumerate(owners):
            stacks.setdefault(owner, []).append(index)
        moved = False
        while True:
            most = balancer.next_most()
            while most is not None and not stacks.get(most):
                balancer.exclude_most()
                most = balancer.next_most()
            if most is None:
                return moved
            index = stacks[most].pop()
            least = balancer.next_least()
            if balancer.is_balanced:
                return moved
            self._assign(topic_id, index, least)
            moved = True

    def _assign(self, topic_id: Uuid, index: int, number: int) -> None:
        former = self.owners[topic_id][index]
        if former != _NOBODY:
            its = self.assignment[self.ids[former]][topic_id]
            its.remove(index)
            if not its:
                del self.assignment[self.ids[former]][topic_id]
            self.sizes[former] -= 1
        self.assignment[self.ids[number]].setdefault(topic_id, set()).add(index)
        self.owners[topic_id][index] = number
        self.sizes[number] += 1


class _LoadOrder:
    """Tracks the members with the fewest and the most partitions while partitions move.

    The members are sorted by partition count. The left range has the members with the fewest
    partitions. When each member of the left range has got another partition, the next members join
    the range. The right range has the members with the most partitions. When each member of the
    right range has lost a partition, the next members join the range. The caller updates `sizes`.
    """

    def __init__(self, sizes: list[int], members: list[int]) -> None:
        self._sizes = sizes
        self._members = sorted(members, key=lambda it: (sizes[it], it))
        self._least = sizes[self._members[0]] - 1
        self._least_end = 0
        self._next_least = 0
        self._most = sizes[self._members[-1]] + 1
        self._most_start = self._most_end = len(self._members)
        self._next_most = len(self._members) - 1

    def next_least(self) -> int:
        """Returns a member with the fewest partitions; the caller must assign it a partition."""
        if self._next_least >= self._least_end:
            self._least += 1
            while (
                self._least_end < len(self._members)
                and self._sizes[self._members[self._least_end]] == self._least
            ):
                self._least_end += 1
            self._next_least = 0
        self._next_least += 1
        return self._members[self._next_least - 1]

    def next_most(self) -> int | None:
        """Returns a member with the most partitions.

        The caller takes a partition from this member, or calls `exclude_most`. Returns None if no
        member is left that can lose a partition.
        """
        if self._next_most < self._most_start:
            if self._most_end <= self._most_start and self._most_start > 0:
                self._most = self._sizes[self._members[self._most_start - 1]]
            else:
                self._most -= 1
            while (
                self._most_start > 0
                and self._sizes[self._members[self._most_start - 1]] == self._most
            ):
                self._most_start -= 1
            self._next_most = self._most_end - 1
        if self._next_most < 0:
            return None
        self._next_most -= 1
        return self._members[self._next_most + 1]

    def exclude_most(self) -> None:
        """Excludes the member that `next_most` returned last.

        Callers use this if the member has no partition of the topic.
        """
        last, end = self._next_most + 1, self._most_end - 1
        self._members[last], self._members[end] = self._members[end], self._members[last]
        self._most_end -= 1

    @property
    def is_balanced(self) -> bool:
        return self._most - self._least <= 1
