"""Decides whether an assignor must consider racks (KIP-881)."""

from __future__ import annotations

from collections.abc import Iterable

from .subscriptions import Subscription, TopicRacks

__all__ = ["rack_of", "uses_racks"]


def rack_of(member: Subscription) -> str | None:
    """Returns the rack of a member; None without a rack.

    As in Java, an empty string means no rack.
    """
    return member.rack or None


def uses_racks(consumer_racks: Iterable[str | None], topics: TopicRacks) -> bool:
    """Returns True if racks affect the assignment of the partitions of `topics`.

    Racks have no effect if no consumer is in a rack with a replica, or if all partitions have
    their replicas in the same racks.
    """
    of_consumers = {rack for rack in consumer_racks if rack is not None}
    if not of_consumers:
        return False
    of_partitions = [racks for partitions in topics.values() for racks in partitions]
    every = frozenset().union(*of_partitions)
    return not every.isdisjoint(of_consumers) and any(racks != every for racks in of_partitions)
