"""Whether racks count, and whose rack has a replica of which partition (KIP-881)."""

from __future__ import annotations

from collections.abc import Iterable

from .subscriptions import Subscription, TopicRacks

__all__ = ["rack_of", "racks_count"]


def rack_of(member: Subscription) -> str | None:
    """The rack of a member; an empty one is none, as in Java."""
    return member.rack or None


def racks_count(consumer_racks: Iterable[str | None], topics: TopicRacks) -> bool:
    """Whether the racks of consumers make a difference for the partitions of `topics`.

    They do where a consumer's rack has a replica, unless each partition has one in every rack.
    """
    of_consumers = {rack for rack in consumer_racks if rack is not None}
    if not of_consumers:
        return False
    of_partitions = [racks for partitions in topics.values() for racks in partitions]
    every = frozenset().union(*of_partitions)
    return not every.isdisjoint(of_consumers) and any(racks != every for racks in of_partitions)
