"""Builds the requests of share groups for the scenes, and reads the results from the responses."""

from __future__ import annotations

from typing import Any

from kproto.broker.context import Context
from kproto.broker.groups.share import ShareHeartbeat
from kproto.broker.share import SharePartitionKey
from kproto.messages.alter_share_group_offsets_request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kproto.messages.delete_share_group_offsets_request import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from kproto.messages.delete_share_group_state_request import (
    DeleteShareGroupStateRequest,
    DeleteStateData,
)
from kproto.messages.delete_share_group_state_request import PartitionData as DeletedPartition
from kproto.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from kproto.messages.initialize_share_group_state_request import (
    InitializeShareGroupStateRequest,
    InitializeStateData,
)
from kproto.messages.initialize_share_group_state_request import (
    PartitionData as InitializedPartition,
)
from kproto.messages.read_share_group_state_request import PartitionData as ReadPartition
from kproto.messages.read_share_group_state_request import (
    ReadShareGroupStateRequest,
    ReadStateData,
)
from kproto.messages.read_share_group_state_summary_request import (
    PartitionData as SummaryPartition,
)
from kproto.messages.read_share_group_state_summary_request import (
    ReadShareGroupStateSummaryRequest,
    ReadStateSummaryData,
)
from kproto.messages.share_acknowledge_request import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from kproto.messages.share_fetch_request import FetchPartition, FetchTopic, ShareFetchRequest
from kproto.messages.share_group_describe_request import ShareGroupDescribeRequest
from kproto.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kproto.messages.write_share_group_state_request import PartitionData as WrittenPartition
from kproto.messages.write_share_group_state_request import (
    WriteShareGroupStateRequest,
    WriteStateData,
)
from kproto.protocol.error_codes import error_code
from kproto.wire.uuid import Uuid

__all__ = [
    "alter_offsets",
    "delete_offsets",
    "delete_state",
    "describe_group",
    "describe_offsets",
    "error_of_first_response",
    "error_of_result",
    "error_of_share_offsets",
    "error_of_share_partition",
    "heartbeat",
    "initialize_state",
    "read_state",
    "read_summary",
    "share_acknowledge",
    "share_fetch",
    "write_state",
]


def _topic_id(context: Context) -> Uuid:
    return context.cluster.topics.named("t").topic_id


def _state(context: Context) -> Uuid:
    """Creates the share state of partition 0; returns the topic id."""
    topic_id = _topic_id(context)
    key = SharePartitionKey("g", topic_id, 0)
    context.cluster.share_coordinator.initialize(key, 0, 0, context.now)
    return topic_id


def _group(context: Context, *, is_empty: bool) -> None:
    now = context.now
    group = context.cluster.groups.get_or_create_share_group("g", now)
    joining = ShareHeartbeat("m", 0, topics=frozenset({"t"}))
    group.heartbeat(joining, now)
    group.on_initialized(group.pending_initializations(), now)
    _state(context)
    if is_empty:
        group.leave(ShareHeartbeat("m", -1), now)
    else:
        group.heartbeat(ShareHeartbeat("m", 2), now)


def heartbeat(context: Context, version: int) -> ShareGroupHeartbeatRequest:
    return ShareGroupHeartbeatRequest(group_id="g", member_id="m", subscribed_topic_names=["t"])


def describe_group(context: Context, version: int) -> ShareGroupDescribeRequest:
    _group(context, is_empty=False)
    return ShareGroupDescribeRequest(group_ids=["g"])


def share_fetch(context: Context, version: int) -> ShareFetchRequest:
    topic_id = _state(context)
    topic = FetchTopic(topic_id=topic_id, partitions=[FetchPartition(partition_index=0)])
    return ShareFetchRequest(group_id="g", member_id="m", topics=[topic])


def share_acknowledge(context: Context, version: int) -> ShareAcknowledgeRequest:
    share_partitions = context.share_partitions
    topic = context.cluster.topics.named("t")
    key = SharePartitionKey("g", _state(context), 0)
    share_partitions.load(key, topic, topic.partition(0), context.now)
    share_partitions.sessions.create("g", "m", "", ())
    batch = AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=[1])
    partition = AcknowledgePartition(partition_index=0, acknowledgement_batches=[batch])
    return ShareAcknowledgeRequest(
        group_id="g",
        member_id="m",
        share_session_epoch=1,
        topics=[AcknowledgeTopic(topic_id=topic.topic_id, partitions=[partition])],
    )


def error_of_share_partition(answer: Any) -> str:
    """Returns the error of the response, or of its only partition."""
    if answer.error_code:
        return error_code(answer.error_code).name
    ((partition,),) = (topic.partitions for topic in answer.responses)
    return error_code(partition.error_code).name


def initialize_state(context: Context, version: int) -> InitializeShareGroupStateRequest:
    context.cluster.share_coordinator.coordinator("g")
    partition = InitializedPartition(partition=0, state_epoch=1, start_offset=0)
    data = InitializeStateData(topic_id=_topic_id(context), partitions=[partition])
    return InitializeShareGroupStateRequest(group_id="g", topics=[data])


def read_state(context: Context, version: int) -> ReadShareGroupStateRequest:
    data = ReadStateData(
        topic_id=_state(context), partitions=[ReadPartition(partition=0, leader_epoch=0)]
    )
    return ReadShareGroupStateRequest(group_id="g", topics=[data])


def write_state(context: Context, version: int) -> WriteShareGroupStateRequest:
    partition = WrittenPartition(partition=0, state_epoch=0, leader_epoch=0, start_offset=0)
    data = WriteStateData(topic_id=_state(context), partitions=[partition])
    return WriteShareGroupStateRequest(group_id="g", topics=[data])


def delete_state(context: Context, version: int) -> DeleteShareGroupStateRequest:
    data = DeleteStateData(topic_id=_state(context), partitions=[DeletedPartition(partition=0)])
    return DeleteShareGroupStateRequest(group_id="g", topics=[data])


def read_summary(context: Context, version: int) -> ReadShareGroupStateSummaryRequest:
    partition = SummaryPartition(partition=0, leader_epoch=0)
    data = ReadStateSummaryData(topic_id=_state(context), partitions=[partition])
    return ReadShareGroupStateSummaryRequest(group_id="g", topics=[data])


def error_of_result(answer: Any) -> str:
    ((partition,),) = (result.partitions for result in answer.results)
    return error_code(partition.error_code).name


def describe_offsets(context: Context, version: int) -> DescribeShareGroupOffsetsRequest:
    _group(context, is_empty=True)
    topic = DescribeShareGroupOffsetsRequestTopic(topic_name="t", partitions=[0])
    group = DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=[topic])
    return DescribeShareGroupOffsetsRequest(groups=[group])


def error_of_share_offsets(answer: Any) -> str:
    (group,) = answer.groups
    if group.error_code:
        return error_code(group.error_code).name
    ((partition,),) = (topic.partitions for topic in group.topics)
    return error_code(partition.error_code).name


def alter_offsets(context: Context, version: int) -> AlterShareGroupOffsetsRequest:
    _group(context, is_empty=True)
    partition = AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=0)
    topic = AlterShareGroupOffsetsRequestTopic(topic_name="t", partitions=[partition])
    return AlterShareGroupOffsetsRequest(group_id="g", topics=[topic])


def delete_offsets(context: Context, version: int) -> DeleteShareGroupOffsetsRequest:
    _group(context, is_empty=True)
    topic = DeleteShareGroupOffsetsRequestTopic(topic_name="t")
    return DeleteShareGroupOffsetsRequest(group_id="g", topics=[topic])


def error_of_first_response(answer: Any) -> str:
    """Returns the error of the response, or of its only topic."""
    if answer.error_code:
        return error_code(answer.error_code).name
    (topic,) = answer.responses
    return error_code(topic.error_code).name
