"""`sticky` and `cooperative-sticky`: even shares, and everybody keeps what he can.

As AbstractStickyAssignor of Kafka 4.4 decides. Members that all want the same topics are a simple
case (`sticky_equal`); any others are balanced step by step (`sticky_general`). Cooperative members
keep reading while they join, so that what changes hands is given to nobody at first (KIP-429).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ...metadata.cluster import TopicPartition
from .sticky_data import Owned, owned_cooperatively, owned_eagerly
from .sticky_equal import assign_equally
from .sticky_general import Balancing
from .subscriptions import NO_GENERATION, Assignment, Subscription, TopicRacks

__all__ = ["assign_cooperatively", "assign_stickily"]


def assign_stickily(topics: TopicRacks, members: Mapping[str, Subscription]) -> Assignment:
    """Who reads what, of eager members."""
    return _assign(topics, members, owned_eagerly)


def assign_cooperatively(topics: TopicRacks, members: Mapping[str, Subscription]) -> Assignment:
    """Who reads what, of cooperative members, without what others have to give up first."""
    found = _assign(topics, members, owned_cooperatively)
    owned = {member_id: frozenset(member.owned) for member_id, member in members.items()}
    given_up = {
        place for member_id, its in owned.items() for place in its.difference(found[member_id])
    }
    for member_id, places in found.items():
        its = owned[member_id]
        found[member_id] = [place for place in places if place in its or place not in given_up]
    return found


class _Claims(NamedTuple):
    """What members own of what is there, and what two of them claim at once."""

    owned: dict[str, list[TopicPartition]]
    twice: set[TopicPartition]


def _assign(
    topics: TopicRacks,
    members: Mapping[str, Subscription],
    owned_by: Callable[[Subscription], Owned],
) -> Assignment:
    told = {member_id: owned_by(member) for member_id, member in members.items()}
    claims = _claims(topics, members, told)
    wanted = [frozenset(member.topics) for member in members.values()]
    if all(each == wanted[0] for each in wanted):
        return assign_equally(topics, members, claims.owned, claims.twice)
    return Balancing(topics, members, claims.owned, _before(told)).balanced()


def _claims(
    topics: TopicRacks, members: Mapping[str, Subscription], told: Mapping[str, Owned]
) -> _Claims:
    """Of two that claim a partition, that of the later generation has it; of one, neither."""
    owned: dict[str, dict[TopicPartition, None]] = {}
    owners: dict[TopicPartition, str] = {}
    twice: set[TopicPartition] = set()
    for member_id, its in told.items():
        mine = owned[member_id] = {}
        generation = NO_GENERATION if its.generation is None else its.generation
        for place in its.partitions:
            topic, partition = place
            if topic not in topics or not 0 <= partition < len(topics[topic]):
                continue
            other = owners.get(place)
            if other is None:
                mine[place] = None
                owners[place] = member_id
                continue
            its_generation = told[other].generation
            others = NO_GENERATION if its_generation is None else its_generation
            if generation < others:
                continue
            owned[other].pop(place, None)
            owners[place] = member_id
            if generation == others:
                twice.add(place)
            else:
                mine[place] = None
    return _Claims({member_id: list(its) for member_id, its in owned.items()}, twice)


def _before(told: Mapping[str, Owned]) -> dict[TopicPartition, str]:
    """Who read what in a generation before the newest that anybody tells of."""
    generations = {
        member_id: NO_GENERATION if its.generation is None else its.generation
        for member_id, its in told.items()
    }
    newest = max(generations.values(), default=NO_GENERATION)
    found: dict[TopicPartition, str] = {}
    for member_id, its in told.items():
        if generations[member_id] >= newest:
            continue
        for place in its.partitions:
            other = found.get(place)
            if other is None or generations[member_id] > generations[other]:
                found[place] = member_id
    return found
