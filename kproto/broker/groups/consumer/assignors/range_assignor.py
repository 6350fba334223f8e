"""The assignor `range` of the coordinator: a range of each topic to each member, as RangeAssignor.

Of topics with as many partitions a member has the same numbers, if all subscribe alike. Static
members come first, in the order of their instance ids, so that one that comes back has what it had.
"""

from __future__ import annotations

from collections import Counter

from .....wire.uuid import Uuid
from .group_spec import Assignment, GroupSpec

__all__ = ["assign_range"]


def assign_range(group: GroupSpec) -> Assignment:
    """What each member shall have."""
    ids = sorted(group.members, key=lambda it: _rank(group.members[it].instance_id, it))
    wanted = {it: group.members[ids[0] if group.is_homogeneous else it].topics for it in ids}
    readers = Counter(topic_id for topics in wanted.values() for topic_id in topics)
    numbers = Counter[Uuid]()  # of the readers of each topic so far
    found: Assignment = {member_id: {} for member_id in ids}
    for member_id, topics in wanted.items():
        for topic_id in topics:
            number = numbers[topic_id]
            numbers[topic_id] += 1
            least, extra = divmod(group.partitions[topic_id], readers[topic_id])
            start = number * least + min(number, extra)
            its = range(start, start + least + (number < extra))
            if its:
                found[member_id][topic_id] = set(its)
    return found


def _rank(instance_id: str | None, member_id: str) -> tuple[bool, bytes]:
    """As Java compares texts: by their UTF-16 units."""
    text = member_id if instance_id is None else instance_id
    return instance_id is None, text.encode("utf-16-be", "surrogatepass")
