"""Implements the assignor `range`: assigns a range of each topic's partitions to each subscriber.

If all members have the same subscription, a member gets the same partition indexes of all topics
with the same partition count. Static members come first, in the order of their instance ids, so
that a restarted member gets the same partitions. The results equal those of Kafka's RangeAssignor.
"""

from __future__ import annotations

from collections import Counter

from .....wire.uuid import Uuid
from .group_spec import Assignment, GroupSpec

__all__ = ["assign_range"]


def assign_range(group: GroupSpec) -> Assignment:
    """Returns the target assignment of the assignor `range`."""
    ids = sorted(group.members, key=lambda it: _rank(group.members[it].instance_id, it))
    subscribed = {it: group.members[ids[0] if group.is_homogeneous else it].topics for it in ids}
    subscribers = Counter(topic_id for topics in subscribed.values() for topic_id in topics)
    numbers = Counter[Uuid]()  # how many subscribers of each topic have got their range
    found: Assignment = {member_id: {} for member_id in ids}
    for member_id, topics in subscribed.items():
        for topic_id in topics:
            number = numbers[topic_id]
            numbers[topic_id] += 1
            least, extra = divmod(group.partitions[topic_id], subscribers[topic_id])
            start = number * least + min(number, extra)
            its = range(start, start + least + (number < extra))
            if its:
                found[member_id][topic_id] = set(its)
    return found


def _rank(instance_id: str | None, member_id: str) -> tuple[bool, bytes]:
    """Returns the sort key of a member: static members first, then by id in Java's string order.

    Java compares strings by UTF-16 units.
    """
    text = member_id if instance_id is None else instance_id
    return instance_id is None, text.encode("utf-16-be", "surrogatepass")
