"""Describes streams groups (KIP-1071): requests and results as plain data.

StreamsGroupDescribe (89).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ...messages.streams_group_describe_request import StreamsGroupDescribeRequest
from ...messages.streams_group_describe_response import (
    Assignment,
    DescribedGroup,
    Member,
    Subtopology,
    TaskIds,
    TaskOffset,
    TopicInfo,
    TopologyDescription,
)
from .acl_types import AclOperation, authorized_operations
from .calls import PartCall
from .groups import described_call

__all__ = [
    "StreamsGroupDescription",
    "StreamsMemberDescription",
    "StreamsSubtopology",
    "StreamsTasks",
    "StreamsTopicInfo",
    "describe_streams_groups_call",
]


class StreamsTasks(NamedTuple):
    """The tasks of a member: lists of (subtopology id, partition)."""

    active: tuple[tuple[str, int], ...]
    standby: tuple[tuple[str, int], ...]
    warmup: tuple[tuple[str, int], ...]


class StreamsTopicInfo(NamedTuple):
    """An internal topic of a subtopology; 0 partitions or replicas leave the number to Kafka."""

    name: str
    partitions: int
    replication_factor: int
    configs: dict[str, str]


class StreamsSubtopology(NamedTuple):
    """A subtopology with its topics."""

    subtopology_id: str
    source_topics: tuple[str, ...]
    repartition_sink_topics: tuple[str, ...]
    state_changelog_topics: tuple[StreamsTopicInfo, ...]
    repartition_source_topics: tuple[StreamsTopicInfo, ...]


@dataclass(frozen=True, slots=True)
class StreamsMemberDescription:
    """A member of a streams group. `endpoint` is (host, port) for interactive queries, or None.

    The offsets of tasks map (subtopology id, partition) to an offset.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    rack: str | None
    epoch: int
    topology_epoch: int
    process_id: str
    endpoint: tuple[str, int] | None
    client_tags: dict[str, str]
    task_offsets: dict[tuple[str, int], int]
    task_end_offsets: dict[tuple[str, int], int]
    assignment: StreamsTasks
    target_assignment: StreamsTasks
    is_classic: bool


@dataclass(frozen=True, slots=True)
class StreamsGroupDescription:
    """A streams group; `coordinator` is a node id.

    `topology_description` is the structure of Kafka's message, None unless it was requested and is
    stored (KIP-1331, Kafka 4.4).
    """

    group_id: str
    state: str
    topology_epoch: int | None
    subtopologies: tuple[StreamsSubtopology, ...]
    members: tuple[StreamsMemberDescription, ...]
    group_epoch: int
    assignment_epoch: int
    assignor: str | None = None
    topology_description: TopologyDescription | None = None
    authorized_operations: frozenset[AclOperation] | None = None
    coordinator: int | None = None


def describe_streams_groups_call(
    *, operations: bool, topology_description: bool
) -> PartCall[str, StreamsGroupDescription]:
    """Returns the call that describes streams groups (Kafka 4.2)."""
    return described_call(
        "describing streams groups",
        lambda group_ids: StreamsGroupDescribeRequest(
            group_ids=group_ids,
            include_authorized_operations=operations,
            include_topology_description=topology_description,
        ),
        _group,
    )


def _group(group: DescribedGroup) -> StreamsGroupDescription:
    topology = group.topology
    return StreamsGroupDescription(
        group.group_id,
        group.group_state,
        None if topology is None else topology.epoch,
        tuple(map(_subtopology, (topology and topology.subtopologies) or ())),
        tuple(map(_member, group.members)),
        group.group_epoch,
        group.assignment_epoch,
        group.assignor_name,
        group.topology_description,
        authorized_operations(group.authorized_operations),
    )


def _subtopology(each: Subtopology) -> StreamsSubtopology:
    return StreamsSubtopology(
        each.subtopology_id,
        tuple(each.source_topics),
        tuple(each.repartition_sink_topics),
        tuple(map(_topic, each.state_changelog_topics)),
        tuple(map(_topic, each.repartition_source_topics)),
    )


def _topic(topic: TopicInfo) -> StreamsTopicInfo:
    configs = {each.key: each.value for each in topic.topic_configs}
    return StreamsTopicInfo(topic.name, topic.partitions, topic.replication_factor, configs)


def _member(member: Member) -> StreamsMemberDescription:
    endpoint = member.user_endpoint
    return StreamsMemberDescription(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rack_id,
        member.member_epoch,
        member.topology_epoch,
        member.process_id,
        None if endpoint is None else (endpoint.host, endpoint.port),
        {each.key: each.value for each in member.client_tags},
        _offsets(member.task_offsets),
        _offsets(member.task_end_offsets),
        _tasks(member.assignment),
        _tasks(member.target_assignment),
        member.is_classic,
    )


def _offsets(offsets: Iterable[TaskOffset]) -> dict[tuple[str, int], int]:
    return {(each.subtopology_id, each.partition): each.offset for each in offsets}


def _tasks(assignment: Assignment | None) -> StreamsTasks:
    if assignment is None:
        return StreamsTasks((), (), ())
    return StreamsTasks(
        _ids(assignment.active_tasks),
        _ids(assignment.standby_tasks),
        _ids(assignment.warmup_tasks),
    )


def _ids(tasks: Iterable[TaskIds]) -> tuple[tuple[str, int], ...]:
    return tuple((each.subtopology_id, at) for each in tasks for at in each.partitions)
