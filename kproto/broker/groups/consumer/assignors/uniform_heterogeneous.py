"""The assignor `uniform` where members subscribe to different topics.

As Kafka's UniformHeterogeneousAssignmentBuilder: members keep what they were meant to have, what is
free goes to those of its readers that have least, then topic by topic partitions go from those that
have most to those that have least, until that changes nothing or has been done often enough.
"""

from __future__ import annotations

from typing import Final

from .....wire.uuid import Uuid
from .group_spec import Assignment, GroupSpec, reversed_topics

__all__ = ["assign_uniform_heterogeneous"]

#: How often all topics are balanced; where that is not enough, the imbalance is small by then.
_MOST_ROUNDS: Final = 16

_NOBODY: Final = -1


def assign_uniform_heterogeneous(group: GroupSpec) -> Assignment:
    """What each member shall have."""
    return _HeterogeneousAssignmentBuilder(group).assign()


class _HeterogeneousAssignmentBuilder:
    """Members are numbers here, in the order of `ids`."""

    def __init__(self, group: GroupSpec) -> None:
        self.group = group
        self.ids = group.member_ids
        self.readers: dict[Uuid, list[int]] = {}
        for number, member_id in enumerate(self.ids):
            for topic_id in group.members[member_id].topics:
                self.readers.setdefault(topic_id, []).append(number)
        #: The member of each partition of a topic.
        self.owners = {it: [_NOBODY] * group.partitions[it] for it in self.readers}
        self.sizes = [0] * len(self.ids)
        self.found: Assignment = {}

    def assign(self) -> Assignment:
        if not self.readers:
            return {}
        self._keep()
        self._hand_out()
        self._balance()
        return {member_id: reversed_topics(its) for member_id, its in self.found.items()}

    def _keep(self) -> None:
        for number, member_id in enumerate(self.ids):
            member = self.group.members[member_id]
            kept = {it: set(its) for it, its in member.assigned.items() if it in member.topics}
            self.found[member_id] = reversed_topics(kept)
            for topic_id, its in kept.items():
                self.sizes[number] += len(its)
                for index in its:
                    self.owners[topic_id][index] = number

    def _hand_out(self) -> None:
        free = {
            topic_id: [index for index, owner in enumerate(owners) if owner == _NOBODY]
            for topic_id, owners in self.owners.items()
        }
        for topic_id in self._in_order([it for it, its in free.items() if its]):
            balancer = _Balancer(self.sizes, self.readers[topic_id])
            for index in free[topic_id]:
                self._give(topic_id, index, balancer.next_least())

    def _in_order(self, topics: list[Uuid]) -> list[Uuid]:
        """Topics with most partitions for a reader first, then those with fewest readers."""

        def rank(topic_id: Uuid) -> tuple[float, int, int, int]:
            readers = len(self.readers[topic_id])
            high = int.from_bytes(topic_id[:8], "big", signed=True)
            low = int.from_bytes(topic_id[8:], "big", signed=True)
            return -(self.group.partitions[topic_id] / readers), readers, high, low

        return sorted(topics, key=rank)

    def _balance(self) -> None:
        topics = self._in_order([it for it, its in self.readers.items() if len(its) > 1])
        last_changed: Uuid | None = None
        for _ in range(_MOST_ROUNDS):
            for topic_id in topics:
                if topic_id == last_changed:
                    return
                if self._balance_topic(topic_id) or last_changed is None:
                    last_changed = topic_id

    def _balance_topic(self, topic_id: Uuid) -> bool:
        """Whether something was moved."""
        readers = self.readers[topic_id]
        sizes = [self.sizes[it] for it in readers]
        if max(sizes) - min(sizes) <= 1:
            return False
        balancer = _Balancer(self.sizes, readers)
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
            self._give(topic_id, index, least)
            moved = True

    def _give(self, topic_id: Uuid, index: int, number: int) -> None:
        former = self.owners[topic_id][index]
        if former != _NOBODY:
            its = self.found[self.ids[former]][topic_id]
            its.remove(index)
            if not its:
                del self.found[self.ids[former]][topic_id]
            self.sizes[former] -= 1
        self.found[self.ids[number]].setdefault(topic_id, set()).add(index)
        self.owners[topic_id][index] = number
        self.sizes[number] += 1


class _Balancer:
    """Who has least and who has most of some members, while partitions are given and taken.

    Two ranges of the members, sorted by how many they have: from the left those with fewest, which
    grows when each of them has got one more; from the right those with most, which grows when each
    has lost one. `sizes` is changed by who gives.
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
        """One that has least; it is taken to get one more."""
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
        """One that has most, which is taken to lose one; None where nobody is left."""
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
        """The last of those has nothing to lose."""
        last, end = self._next_most + 1, self._most_end - 1
        self._members[last], self._members[end] = self._members[end], self._members[last]
        self._most_end -= 1

    @property
    def is_balanced(self) -> bool:
        return self._most - self._least <= 1
