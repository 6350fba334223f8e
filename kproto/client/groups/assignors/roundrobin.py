"""`roundrobin`: all partitions in turn to the consumers that want them, as RoundRobinAssignor."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle

from .subscriptions import Assignment, Subscription, TopicRacks, in_order, java_sorted

__all__ = ["assign_in_turns"]


def assign_in_turns(topics: TopicRacks, members: Mapping[str, Subscription]) -> Assignment:
    """Who reads what; partitions in order of topic and number."""
    found: Assignment = {member_id: [] for member_id in members}
    turns = cycle([(set(members[each].topics), found[each]) for each in in_order(members, members)])
    wanted = {topic for member in members.values() for topic in member.topics}
    for topic in java_sorted(wanted & topics.keys()):
        for partition in range(len(topics[topic])):
            wants, given = next(turns)
            while topic not in wants:
                wants, given = next(turns)
            given.append((topic, partition))
    return found
