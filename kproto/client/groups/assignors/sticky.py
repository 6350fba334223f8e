"""`sticky` and `cooperative-sticky`: assign evenly and move as few partitions as possible.

The result is that of AbstractStickyAssignor of Kafka 4.4. `sticky_equal` assigns if all members
subscribe to the same topics, `sticky_general` otherwise. Cooperative members keep reading while
they join, so a partition that moves stays unassigned until its owner has revoked it (KIP-429).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ...metadata.cluster import TopicPartition
from .sticky_data import MemberData, cooperative_member_data, eager_member_data
from .sticky_equal import assign_equal_subscriptions
from .sticky_general import StickyBalancer
from .subscriptions import NO_GENERATION, Assignment, Subscription, TopicRacks

__all__ = ["assign_cooperative_sticky", "assign_sticky"]


def assign_sticky(topics: TopicRacks, members: Mapping[str, Subscription]) -> Assignment:
    """Returns the partitions of each member, for members that use the eager protocol."""
    return _assign(topics, members, eager_member_data)


def assign_cooperative_sticky(
    topics: TopicRacks, members: Mapping[str, Subscription]
) -> Assignment:
    """Returns the partitions of each member that uses the cooperative protocol (KIP-429).

    If a partition changes its owner, its former owner must revoke it first. Such a partition is in
    no member's list.
    """
    found = _assign(topics, members, cooperative_member_data)
    owned = {member_id: frozenset(member.owned) for member_id, member in members.items()}
    to_revoke = {tp for member_id, its in owned.items() for tp in its.difference(found[member_id])}
    for member_id, partitions in found.items():
        its = owned[member_id]
        found[member_id] = [tp for tp in partitions if tp in its or tp not in to_revoke]
    return found


class _Claims(NamedTuple):
    """Holds the existing partitions that each member owns.

    `conflicting` are the partitions that two members claim in the same generation.
    """

    owned: dict[str, list[TopicPartition]]
    conflicting: set[TopicPartition]


def _assign(
    topics: TopicRacks,
    members: Mapping[str, Subscription],
    owned_by: Callable[[Subscription], MemberData],
) -> Assignment:
    claimed = {member_id: owned_by(member) for member_id, member in members.items()}
    claims = _claims(topics, members, claimed)
    wanted = [frozenset(member.topics) for member in members.values()]
    if all(each == wanted[0] for each in wanted):
        return assign_equal_subscriptions(topics, members, claims.owned, claims.conflicting)
    return StickyBalancer(
        topics, members, claims.owned, _previous_owners(claimed)
    ).compute_assignment()


def _claims(
    topics: TopicRacks, members: Mapping[str, Subscription], claimed: Mapping[str, MemberData]
) -> _Claims:
    """Returns the existing partitions that each member owns, and the conflicting partitions.

    If several members claim a partition, the member with the latest generation owns it. If two
    members claim it with the same generation, the partition conflicts, and neither owns it.
    """
    owned: dict[str, dict[TopicPartition, None]] = {}
    owners: dict[TopicPartition, str] = {}
    conflicting: set[TopicPartition] = set()
    for member_id, its in claimed.items():
        mine = owned[member_id] = {}
        generation = NO_GENERATION if its.generation is None else its.generation
        for tp in its.partitions:
            topic, partition = tp
            if topic not in topics or not 0 <= partition < len(topics[topic]):
                continue
            other = owners.get(tp)
            if other is None:
                mine[tp] = None
                owners[tp] = member_id
                continue
            its_generation = claimed[other].generation
            others = NO_GENERATION if its_generation is None else its_generation
            if generation < others:
                continue
            owned[other].pop(tp, None)
            owners[tp] = member_id
            if generation == others:
                conflicting.add(tp)
            else:
                mine[tp] = None
    return _Claims({member_id: list(its) for member_id, its in owned.items()}, conflicting)


def _previous_owners(claimed: Mapping[str, MemberData]) -> dict[TopicPartition, str]:
    """Returns the member that owned each partition last before the newest generation.

    Claims of members with the newest generation do not count.
    """
    generations = {
        member_id: NO_GENERATION if its.generation is None else its.generation
        for member_id, its in claimed.items()
    }
    newest = max(generations.values(), default=NO_GENERATION)
    found: dict[TopicPartition, str] = {}
    for member_id, its in claimed.items():
        if generations[member_id] >= newest:
            continue
        for tp in its.partitions:
            other = found.get(tp)
            if other is None or generations[member_id] > generations[other]:
                found[tp] = member_id
    return found
