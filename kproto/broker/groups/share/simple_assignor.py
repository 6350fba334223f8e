"""Implements Kafka's assignor for share groups, `simple` (KIP-932); the results equal Kafka's.

Several members can have the same partition. If there are more members than partitions, each
partition has about `members / partitions` members; else each member has about
`partitions / members` partitions. The assignor moves as few partitions as possible.

If all members have the same subscription, all topics are assigned together, otherwise topic by
topic. The iteration order of Java's hash maps, which `java_order` computes, selects the partition
that moves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from ....wire.uuid import Uuid
from ..consumer.assignors.group_spec import (
    Assignment,
    GroupSpec,
    partitions_in_order,
    topics_in_order,
)
from ..consumer.consumer_group_member import Partitions
from ..java_order import grown_size, in_java_order, uuid_hash

__all__ = ["assign_simple"]

_Place: TypeAlias = tuple[Uuid, int]

_INT: Final = 0xFFFF_FFFF

#: How full a map of Java is before its buckets double.
_LOAD_FACTOR: Final = 0.75


def assign_simple(group: GroupSpec, assignable: Partitions) -> Assignment:
    """Returns the target assignment of each member.

    `assignable` are the partitions whose share state exists; no other partition is assigned.
    """
    member_ids = group.member_ids
    if not member_ids:
        return {}
    old = [group.members[it].assigned for it in member_ids]
    if group.is_homogeneous:
        topics: Iterable[Uuid] = group.members[member_ids[0]].topics
        if not topics:
            return {}
        targets = _targets(topics, group.partitions, assignable)
        found = _Balance(targets, range(len(member_ids)), len(member_ids), _hash).assign(old)
        old = [{it: its[it] for it in its if it in topics} for its in old]
    else:
        topics = dict.fromkeys(it for member in member_ids for it in group.members[member].topics)
        if not topics:
            return {}
        found = [_places(it) for it in old]
        for topic_id in topics:
            subscribed = [
                at for at, it in enumerate(member_ids) if topic_id in group.members[it].topics
            ]
            targets = _targets([topic_id], group.partitions, assignable)
            its = [{topic_id: each[topic_id]} if topic_id in each else {} for each in old]
            of_topic = _Balance(targets, subscribed, len(member_ids), _index).assign(its)
            for at, places in enumerate(of_topic):
                found[at] = [it for it in found[at] if it[0] != topic_id] + places
    return {member_id: _by_topic(found[at], old[at]) for at, member_id in enumerate(member_ids)}


def _targets(
    topics: Iterable[Uuid], counts: Mapping[Uuid, int], assignable: Partitions
) -> list[_Place]:
    return [
        (topic_id, index)
        for topic_id in topics
        for index in range(counts[topic_id])
        if index in assignable.get(topic_id, frozenset())
    ]


def _places(assigned: Partitions) -> list[_Place]:
    return [
        (topic_id, index)
        for topic_id in topics_in_order(assigned)
        for index in partitions_in_order(assigned[topic_id])
    ]


def _by_topic(places: Iterable[_Place], old: Iterable[Uuid]) -> dict[Uuid, set[int]]:
    """Returns the partitions of each topic.

    As in Kafka, a topic in `old` whose partitions were all revoked keeps an empty set.
    """
    found: dict[Uuid, set[int]] = {it: set() for it in old}
    for topic_id, index in places:
        found.setdefault(topic_id, set()).add(index)
    return found


def _hash(place: _Place) -> int:
    """Returns Java's hash of a partition: that of a record with a topic id and an index."""
    return (31 * uuid_hash(place[0]) + place[1]) & _INT


def _index(place: _Place) -> int:
    """Returns the index of a partition, which is also Java's hash of the index."""
    return place[1]


def _sized(count: int) -> int:
    """Returns the buckets of a map that Kafka's AssignorHelpers create for `count` keys."""
    capacity = int((count + 1) / _LOAD_FACTOR + 1)
    return 1 << max(0, capacity - 1).bit_length()


class _Balance:
    """Balances `targets` over the members with the indexes `members`.

    `total` is the number of all members of the group. `hash_of` returns Java's hash of a partition
    in Kafka's hash maps.
    """

    def __init__(
        self,
        targets: Sequence[_Place],
        members: Sequence[int],
        total: int,
        hash_of: Callable[[_Place], int],
    ) -> None:
        self._targets = targets
        self._hash_of = hash_of
        self._members = members
        self._total = total
        count = len(members)
        #: How many members each partition should have.
        self._sharing = -(-count // len(targets)) if targets else 0
        #: How many partitions each member should have.
        self._desired = [0] * total
        precise = self._sharing * len(targets) / count if count else 0.0
        for at, member in enumerate(members):
            self._desired[member] = math.ceil(precise * (at + 1)) - math.ceil(precise * at)

    def assign(self, old: Sequence[Partitions]) -> list[list[_Place]]:
        """Returns the partitions of each member; `old` are the former partitions of each member.

        Partitions of topics that are no targets are dropped.
        """
        topics = {topic_id for topic_id, _ in self._targets}
        by_member = [[it for it in _places(each) if it[0] in topics] for each in old]
        by_place: dict[_Place, list[int]] = {}
        for member, places in enumerate(by_member):
            for place in places:
                by_place.setdefault(place, []).append(member)
        for members in by_place.values():
            members[:] = in_java_order(members, int, grown_size(len(members)))
        unfilled = {it for it in self._members if len(by_member[it]) < self._desired[it]}
        self._revoke_from_overfilled(by_member, by_place)
        unfilled |= self._revoke_overshared(by_member, by_place)
        for place in self._targets:
            by_place.setdefault(place, [])
        self._assign_remaining(by_member, by_place, unfilled)
        return by_member

    def _revoke_from_overfilled(
        self, by_member: list[list[_Place]], by_place: dict[_Place, list[int]]
    ) -> None:
        for member, places in enumerate(by_member):
            excess = len(places) - self._desired[member]
            if excess > 0:
                for place in in_java_order(places, self._hash_of, grown_size(len(places)))[:excess]:
                    places.remove(place)
                    by_place[place].remove(member)

    def _revoke_overshared(
        self, by_member: list[list[_Place]], by_place: dict[_Place, list[int]]
    ) -> set[int]:
        """Revokes partitions that have too many members; returns these members."""
        revoked: set[int] = set()
        for place, members in by_place.items():
            for member in members[: max(0, len(members) - self._sharing)]:
                members.remove(member)
                by_member[member].remove(place)
                revoked.add(member)
        return revoked

    def _assign_remaining(
        self,
        by_member: list[list[_Place]],
        by_place: dict[_Place, list[int]],
        unfilled: set[int],
    ) -> None:
        """Assigns partitions with too few members to the members in `unfilled`, in turn.

        As in Kafka, a partition keeps too few members if each member in `unfilled` has it already.
        """
        waiting = sorted(unfilled)
        at, some = 0, False
        size = _sized(len(self._targets))
        while len(by_place) > size * _LOAD_FACTOR:
            size *= 2
        # Kafka adds the keys by computeIfAbsent, which puts a key first in its bucket.
        for place in in_java_order(reversed(by_place), self._hash_of, size):
            members = by_place[place]
            while len(members) < self._sharing:
                if at == len(waiting):
                    if not some or not waiting:
                        break
                    at, some = 0, False
                member = waiting[at]
                if member in members:
                    at += 1
                    continue
                members.append(member)
                by_member[member].append(place)
                some = True
                if len(by_member[member]) >= self._desired[member]:
                    del waiting[at]
                else:
                    at += 1
            if not waiting:
                break
