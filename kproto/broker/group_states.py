"""Describes the groups of a cluster for tests: state, members, committed offsets and lag.

`GroupState` is plain data, so that a real cluster can be described in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..protocol.consumer_protocol import decode_assignment
from ..wire.errors import DecodeError
from ..wire.uuid import Uuid
from .cluster_state import ClusterState
from .groups import AnyGroup, ClassicMember, ClockReading
from .groups.committed_offsets import TopicPartition
from .groups.consumer.consumer_group_member import partitions_of
from .groups.share import ShareGroup, ShareGroupMember
from .storage.partition import Partition
from .topics import Topic, Topics

__all__ = ["GroupMember", "GroupState", "TopicPartition", "group_states"]


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member of a group with its assigned partitions."""

    member_id: str
    client_id: str
    assignment: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class GroupState:
    """A group: its `protocol`, Kafka's name of its `state`, its members.

    `protocol` is `classic`, `consumer` or `share`. A share group has neither offsets nor lags here,
    because its members acknowledge single records. `offsets` has the committed offsets. `lags` has
    the number of records after the committed offset, for each partition of a topic that the group
    has committed offsets for, or that is assigned to a member. In a partition without a committed
    offset, all records count.
    """

    group_id: str
    protocol: str
    state: str
    members: tuple[GroupMember, ...]
    offsets: Mapping[TopicPartition, int]
    lags: Mapping[TopicPartition, int]

    @property
    def lag(self) -> int | None:
        """Returns the sum of all lags; None if the group has read from no topic yet."""
        return sum(self.lags.values()) if self.lags else None

    def has_reached(self, *, lag: int | None, members: int | None) -> bool:
        """Returns True if the lag is at most `lag`, and the group is stable with `members` members.

        A condition that is None is not checked.
        """
        if lag is not None and (self.lag is None or self.lag > lag):
            return False
        return members is None or (len(self.members) == members and self.state in _SETTLED)

    def __str__(self) -> str:
        lags = ", ".join(
            f"{tp.topic}-{tp.partition}: {self.offsets.get(tp, 'nothing')} committed, lag {lag}"
            for tp, lag in self.lags.items()
        )
        members = ", ".join(f"{it.client_id} ({len(it.assignment)})" for it in self.members)
        return (
            f"{self.group_id} ({self.protocol}): {self.state}; members with their number of "
            f"partitions: {members or 'none'}; {lags or 'no offsets'}"
        )


#: The states in which the members have their assignments.
_SETTLED = ("Stable", "Empty")


def group_states(cluster: ClusterState, now: ClockReading) -> dict[str, GroupState]:
    """Returns all groups by group id; first handles expired timeouts, as any request does."""
    return {
        group.group_id: _state_of(group, cluster.topics)
        for node_id in cluster.nodes
        for group in cluster.group_coordinator.groups_of(node_id, now)
    }


def _state_of(group: AnyGroup, topics: Topics) -> GroupState:
    members = tuple(_members_of(group, topics))
    offsets = {tp: committed.offset for tp, committed in group.offsets}
    names = {tp.topic for tp in offsets}
    if not isinstance(group, ShareGroup):
        names |= {tp.topic for member in members for tp in member.assignment}
    found = [topic for topic in map(topics.get, sorted(names)) if topic is not None]
    return GroupState(
        group.group_id, group.type, group.state, members, offsets, dict(_lags(found, offsets))
    )


def _members_of(group: AnyGroup, topics: Topics) -> Iterator[GroupMember]:
    for member in group.members.values():
        if isinstance(member, ClassicMember):
            assigned = _assigned_by_leader(member)
        elif isinstance(member, ShareGroupMember):
            of_share = member.assigned.items()
            pairs = ((topic_id, index) for topic_id, its in of_share for index in its)
            assigned = _named(pairs, topics)
        else:
            assigned = _named(partitions_of(member), topics)
        yield GroupMember(member.member_id, member.client_id, tuple(sorted(assigned)))


def _assigned_by_leader(member: ClassicMember) -> Iterator[TopicPartition]:
    """Yields nothing if the assignment is not that of a consumer, such as one of Kafka Connect."""
    try:
        assignment = decode_assignment(member.assignment)
    except DecodeError:
        return
    for topic in assignment.assigned_partitions:
        for index in topic.partitions:
            yield TopicPartition(topic.topic, index)


def _named(partitions: Iterable[tuple[Uuid, int]], topics: Topics) -> Iterator[TopicPartition]:
    for topic_id, index in partitions:
        name = topics.name_of(topic_id)
        if name:
            yield TopicPartition(name, index)


def _lags(
    topics: list[Topic], offsets: Mapping[TopicPartition, int]
) -> Iterator[tuple[TopicPartition, int]]:
    for topic in topics:
        for partition in topic.partitions:
            tp = TopicPartition(topic.name, partition.index)
            start = max(offsets.get(tp, 0), partition.log.start_offset)
            has_more = start < partition.log.end_offset
            yield tp, max(_end_of_records(partition) - start, 0) if has_more else 0


def _end_of_records(partition: Partition) -> int:
    """Returns the offset after the last record: before the control records at the log end.

    A consumer that has read all records of a transaction need not have read its marker.
    """
    end = partition.log.end_offset
    for batch in reversed(list(partition.log)):
        if not batch.is_control:
            break
        end = batch.base_offset
    return end
