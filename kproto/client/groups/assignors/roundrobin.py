"""`roundrobin`: assigns partitions to subscribed consumers one after the other.

The result is that of Kafka's RoundRobinAssignor.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle

from .subscriptions import Assignment, Subscription, TopicRacks, java_sorted, sorted_members

__all__ = ["assign_round_robin"]


def assign_round_robin(topics: TopicRacks, members: Mapping[str, Subscription]) -> Assignment:
    """Returns the partitions of each member, sorted by topic and number."""
    found: Assignment = {member_id: [] for member_id in members}
    consumers = cycle(
        [(set(members[each].topics), found[each]) for each in sorted_members(members, members)]
    )
    wanted = {topic for member in members.values() for topic in member.topics}
    for topic in java_sorted(wanted & topics.keys()):
        for partition in range(len(topics[topic])):
            subscribed, assigned = next(consumers)
            while topic not in subscribed:
                subscribed, assigned = next(consumers)
            assigned.append((topic, partition))
    return found
