"""Sticky assignment where all members want the same topics.

Everybody keeps what he has up to his share; what is left goes round. A share is the quotient, and
one more for as many members as the remainder says. Where racks count, only what has a replica in
the member's rack is kept, and what is left first goes to members in whose rack it has one.
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
    """Who reads what; `owned` is what each has now, `twice` what two have claimed at once."""
    wanted = members[next(iter(members))].topics if members else ()
    there = {topic: topics[topic] for topic in java_sorted(set(wanted) & topics.keys())}
    racks = {member_id: rack_of(member) for member_id, member in members.items()}
    shares = _Shares(members, sum(map(len, there.values())))
    counts = racks_count(racks.values(), there)
    for member_id, its in owned.items():
        kept = [
            (topic, partition)
            for topic, partition in its
            if topic in there
            and (topic, partition) not in twice
            and (not counts or racks[member_id] in (None, *there[topic][partition]))
        ]
        shares.keep(member_id, sorted(kept, key=lambda place: (place[1], place[0])))
    kept_by_all = {place for given in shares.given.values() for place in given}
    left = [
        (topic, partition)
        for topic, partitions in there.items()
        for partition in range(len(partitions))
        if (topic, partition) not in kept_by_all
    ]
    shares.begin()
    if counts:
        # Those first that fewest members have near by.
        in_rack: dict[str | None, int] = {}
        for rack in racks.values():
            in_rack[rack] = in_rack.get(rack, 0) + 1
        left.sort(key=lambda p: sum(in_rack.get(rack, 0) for rack in there[p[0]][p[1]]))
        left = [p for p in left if not shares.give_near(p, there[p[0]][p[1]], racks)]
    shares.give_in_turns(left)
    return shares.given


class _Shares:
    """What each member is given: `least`, or one more for as many as `with_one_more` says."""

    def __init__(self, members: Collection[str], partitions: int) -> None:
        self.given: Assignment = {member_id: [] for member_id in members}
        self._least, self._with_one_more = divmod(partitions, len(members)) if members else (0, 0)
        self._below: list[str] = []  # have less than the least
        self._at_least: list[str] = []  # have the least, and may get one more
        self._turn = 0  # whose in `_below` it is

    def keep(self, member_id: str, its: Sequence[TopicPartition]) -> None:
        """Let a member have of `its` what its share allows."""
        least = self._least
        if len(its) < least:
            self._below.append(member_id)
            self.given[member_id] = list(its)
        elif len(its) > least and self._with_one_more:
            self._with_one_more -= 1
            self.given[member_id] = list(its[: least + 1])
        else:
            self.given[member_id] = list(its[:least])
            self._at_least.append(member_id)

    def begin(self) -> None:
        """All have what they keep: what is left goes round in the order of member ids."""
        self._below = java_sorted(self._below)
        self._at_least = java_sorted(self._at_least)

    def give_near(
        self, place: TopicPartition, near: Collection[str], racks: Mapping[str, str | None]
    ) -> bool:
        """Give a partition to the next member in one of the racks `near`, if one has room."""
        below = self._below
        for step in range(len(below)):
            at = (self._turn + step) % len(below)
            if racks[below[at]] in near:
                self._turn = self._give(place, at)
                return True
        if not self._with_one_more:
            return False
        for at, member_id in enumerate(self._at_least):
            if racks[member_id] in near:
                del self._at_least[at]
                self._with_one_more -= 1
                self.given[member_id].append(place)
                return True
        return False

    def give_in_turns(self, places: Sequence[TopicPartition]) -> None:
        """Give each to the next member with room: first up to the least, then one more."""
        at = 0
        for number, place in enumerate(places):
            if not self._below:
                for more, member_id in zip(places[number:], self._at_least, strict=False):
                    self.given[member_id].append(more)
                return
            at = self._give(place, at % len(self._below))

    def _give(self, place: TopicPartition, at: int) -> int:
        """Give it to the member at that place of those below; returns whose turn is next."""
        member_id = self._below[at]
        given = self.given[member_id]
        given.append(place)
        if len(given) < self._least:
            at += 1
        else:
            del self._below[at]
            self._at_least.append(member_id)
        return at % len(self._below) if self._below else 0
