"""The assignor `range` of the coordinator: a range of each topic to each member, as RangeAssignor.

Of topics with as many partitions a member has the same numbers, if all subscribe alike. Static
members come first, in the order of their instance ids, so that one that comes back has what it had.
"""

from __future__ import annotations

from .....wire.uuid import Uuid
from .spec import Assignment, GroupSpec

__all__ = ["assign_ranges"]


def assign_ranges(group: GroupSpec) -> Assignment:
    """What each member shall have."""
    ids = sorted(group.members, key=lambda it: _rank(group.members[it].instance_id, it))
    found: Assignment = {member_id: {} for member_id in ids}
    for topic_id in set().union(*(it.topics for it in group.members.values())):
        readers = [it for it in ids if topic_id in group.members[it].topics]
        _split(found, topic_id, readers, group.partitions[topic_id])
    return found


def _rank(instance_id: str | None, member_id: str) -> tuple[bool, bytes]:
    """As Java compares texts: by their UTF-16 units."""
    text = member_id if instance_id is None else instance_id
    return instance_id is None, text.encode("utf-16-be", "surrogatepass")


def _split(found: Assignment, topic_id: Uuid, readers: list[str], count: int) -> None:
    least, extra = divmod(count, len(readers))
    start = 0
    for number, member_id in enumerate(readers):
        end = start + least + (number < extra)
        if end > start:
            found[member_id][topic_id] = set(range(start, end))
        start = end
