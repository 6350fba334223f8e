"""Sticky assignment where members want different topics: as even as that allows, step by step.

What nobody has yet goes to the member with fewest partitions that wants it. Then partitions move,
one by one, from who has two more than another that wants them, until nothing gains from it; if the
whole came out no more even for it, all of that is undone. A partition moves back to who had it
before rather than on to a third.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ...metadata.cluster import TopicPartition
from .racks import rack_of, racks_count
from .subscriptions import Assignment, Subscription, TopicRacks, consumers_of, java_sorted

__all__ = ["Balancing"]


class Balancing:
    """One assignment; `owned` is what each has now, `before` who read what a generation ago."""

    def __init__(
        self,
        topics: TopicRacks,
        members: Mapping[str, Subscription],
        owned: Mapping[str, Sequence[TopicPartition]],
        before: Mapping[TopicPartition, str],
    ) -> None:
        self._topics = topics
        self._wants = {
            member_id: topics.keys() & member.topics for member_id, member in members.items()
        }
        self._consumers = consumers_of(topics, members)
        self._racks = {member_id: rack_of(member) for member_id, member in members.items()}
        self._racks_count = racks_count(self._racks.values(), topics)
        self._before = before
        self._moves = _Moves()
        rank = {member_id: at for at, member_id in enumerate(java_sorted(members))}
        self._rank = rank
        self._by_rank = list(rank)
        self._held: dict[str, dict[TopicPartition, None]] = {}
        self._owner: dict[TopicPartition, str] = {}
        self._gives_up = False
        for member_id, its in owned.items():
            kept = {place: None for place in its if self._may_keep(member_id, place)}
            self._gives_up |= len(kept) < len(its)
            self._held[member_id] = kept
            self._owner |= dict.fromkeys(kept, member_id)
        #: The number of partitions and the rank of each that takes part, in order.
        self._order: list[tuple[int, int]] = []

    def balanced(self) -> Assignment:
        """Who reads what."""
        held = self._held
        begins = not any(held.values())
        topics = sorted(java_sorted(self._topics), key=lambda topic: len(self._consumers[topic]))
        places = [
            (topic, partition)
            for topic in topics
            for partition in range(len(self._topics[topic]))
            if self._consumers[topic]
        ]
        left = [place for place in places if place not in self._owner]
        self._order = sorted((len(its), self._rank[member]) for member, its in held.items())
        rest = left
        if self._racks_count:
            rest = [place for place in left if not self._give(place, self._is_near)]
        for place in rest:
            self._give(place, None)
        self._leave_out_fixed()
        movable = [place for place in places if len(self._consumers[place[0]]) > 1]
        is_new = set(left)
        sizes = {member: len(its) for member, its in held.items()}
        kept = {member: dict(its) for member, its in held.items()}
        if not self._gives_up:
            self._even_out([place for place in movable if place in is_new])
        moved = self._even_out(movable)
        if (
            moved
            and not begins
            and _unevenness(map(len, held.values())) >= _unevenness(sizes.values())
        ):
            held = kept
        return {member: list(its) for member, its in held.items()}

    def _may_keep(self, member_id: str, place: TopicPartition) -> bool:
        if place[0] not in self._wants[member_id]:
            return False
        return not self._racks_count or self._is_near(member_id, place)

    def _is_near(self, member_id: str, place: TopicPartition) -> bool:
        rack = self._racks[member_id]
        return rack is None or rack in self._topics[place[0]][place[1]]

    def _first_that_wants(self, topic: str) -> str:
        """Who has fewest partitions of those that want the topic."""
        for _, rank in self._order:
            if topic in self._wants[self._by_rank[rank]]:
                return self._by_rank[rank]
        raise AssertionError("a topic that moves has members that take part")

    def _give(
        self, place: TopicPartition, may: Callable[[str, TopicPartition], bool] | None
    ) -> bool:
        """Give it to the member with fewest partitions that wants it, and may have it."""
        for at, (count, rank) in enumerate(self._order):
            member_id = self._by_rank[rank]
            if place[0] in self._wants[member_id] and (may is None or may(member_id, place)):
                del self._order[at]
                insort(self._order, (count + 1, rank))
                self._held[member_id][place] = None
                self._owner[place] = member_id
                return True
        return False

    def _leave_out_fixed(self) -> None:
        """Nobody gives to or takes from who has all that he can get, and shares it with none."""
        self._order = [
            (count, rank)
            for count, rank in self._order
            if count < self._most(self._by_rank[rank])
            or any(len(self._consumers[topic]) > 1 for topic, _ in self._held[self._by_rank[rank]])
        ]

    def _most(self, member_id: str) -> int:
        return sum(len(self._topics[topic]) for topic in self._wants[member_id])

    def _even_out(self, places: Collection[TopicPartition]) -> bool:
        """Move partitions to who has two less, until nothing gains; whether any moved."""
        has_moved = False
        is_even = self._is_even()
        moved = True
        while moved and not is_even:
            moved = False
            for place in places:
                if not self._moves_on(place):
                    continue
                moved = has_moved = True
                is_even = self._is_even()
                if is_even:
                    break
        return has_moved

    def _moves_on(self, place: TopicPartition) -> bool:
        """Move it, or one that stands for it, to who had it before or has fewest, if that gains."""
        topic = place[0]
        owner = self._owner[place]
        many = len(self._held[owner])
        before = self._before.get(place)
        if before is not None and topic in self._wants[before]:
            to = before
            if many <= len(self._held[to]) + 1:
                to = self._first_that_wants(topic)
        else:
            to = self._first_that_wants(topic)
        if many <= len(self._held[to]) + 1:
            return False
        chosen = self._moves.instead_of(place, owner, to)
        giver = self._owner[chosen]
        self._moves.note(chosen, giver, to)
        self._resize(giver, -1)
        self._resize(to, 1)
        del self._held[giver][chosen]
        self._held[to][chosen] = None
        self._owner[chosen] = to
        return True

    def _resize(self, member_id: str, by: int) -> None:
        count = len(self._held[member_id])
        rank = self._rank[member_id]
        del self._order[bisect_left(self._order, (count, rank))]
        insort(self._order, (count + by, rank))

    def _is_even(self) -> bool:
        """Whether no partition could move to somebody who has two less."""
        if not self._order or self._order[0][0] >= self._order[-1][0] - 1:
            return True
        most_of: dict[str, int] = {}
        for its in self._held.values():
            count = len(its)
            for topic in {topic for topic, _ in its}:
                if count > most_of.get(topic, 0):
                    most_of[topic] = count
        return not any(
            count + 1 < most_of.get(topic, 0)
            for count, rank in self._order
            for topic in self._wants[self._by_rank[rank]]
        )


class _Moves:
    """Which partitions have moved from whom to whom, so that none of a topic move to and fro."""

    def __init__(self) -> None:
        self._by_place: dict[TopicPartition, tuple[str, str]] = {}
        self._by_topic: dict[str, dict[tuple[str, str], dict[TopicPartition, None]]] = {}

    def instead_of(self, place: TopicPartition, owner: str, to: str) -> TopicPartition:
        """The partition to move: one of the topic that came from `to`, if there is one."""
        by_pair = self._by_topic.get(place[0])
        if by_pair is None:
            return place
        if place in self._by_place:
            owner = self._by_place[place][0]
        return next(iter(by_pair.get((to, owner), (place,))))

    def note(self, place: TopicPartition, giver: str, to: str) -> None:
        """It moves from `giver` to `to`."""
        first = giver
        pair = self._by_place.pop(place, None)
        by_pair = self._by_topic.setdefault(place[0], {})
        if pair is not None:
            first = pair[0]
            its = by_pair[pair]
            del its[place]
            if not its:
                del by_pair[pair]
        if first != to:
            self._by_place[place] = (first, to)
            by_pair.setdefault((first, to), {})[place] = None
        if not by_pair:
            del self._by_topic[place[0]]


def _unevenness(sizes: Iterable[int]) -> int:
    """The sum of the differences of all pairs."""
    in_order = sorted(sizes)
    last = len(in_order) - 1
    return sum(size * (2 * at - last) for at, size in enumerate(in_order))
