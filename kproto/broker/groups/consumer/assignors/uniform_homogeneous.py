"""Implements the assignor `uniform` for equal subscriptions.

The partition counts of members differ by at most one. Within that limit, each member keeps the
partitions of its previous target assignment. The results equal those of Kafka's
UniformHomogeneousAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Iterator

from .....wire.uuid import Uuid
from .group_spec import Assignment, GroupSpec, partitions_in_order, reversed_topics, topics_in_order

__all__ = ["assign_uniform_homogeneous"]


def assign_uniform_homogeneous(group: GroupSpec) -> Assignment:
    """Returns the target assignment of the assignor `uniform` for equal subscriptions."""
    ids = group.member_ids
    topics = group.members[ids[0]].topics if ids else frozenset()
    if not topics:
        return {}
    in_order = topics_in_order(topics, copied=True)
    meant = {
        (topic_id, index)
        for member in group.members.values()
        for topic_id, its in member.assigned.items()
        for index in its
    }
    free = [
        (topic_id, index)
        for topic_id in in_order
        for index in range(group.partitions[topic_id])
        if (topic_id, index) not in meant
    ]
    least, extra = divmod(sum(group.partitions[it] for it in topics), len(ids))
    assignment: Assignment = {}
    quotas: dict[str, int] = {}
    for number, member_id in enumerate(ids):
        takes_extra = extra > 0
        quota = least + takes_extra
        retained: dict[Uuid, set[int]] = {}
        assigned = group.members[member_id].assigned
        for topic_id in topics_in_order(assigned):
            if topic_id not in topics:
                continue
            its = partitions_in_order(assigned[topic_id])
            if its[:quota]:
                retained[topic_id] = set(its[:quota])
            free += [(topic_id, index) for index in its[quota:]]
            quota -= min(quota, len(its))
        if quota and takes_extra and len(ids) - number > extra:
            takes_extra = False  # there are enough later members to get the extra partitions
            quota -= 1
        extra -= takes_extra
        assignment[member_id], quotas[member_id] = reversed_topics(retained), quota
    _fill(assignment, quotas, iter(free))
    return {member_id: reversed_topics(its) for member_id, its in assignment.items()}


def _fill(assignment: Assignment, quotas: dict[str, int], free: Iterator[tuple[Uuid, int]]) -> None:
    for member_id, quota in quotas.items():
        for _, (topic_id, index) in zip(range(quota), free, strict=False):
            assignment[member_id].setdefault(topic_id, set()).add(index)
