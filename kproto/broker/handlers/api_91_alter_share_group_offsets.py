"""AlterShareGroupOffsets (91), v0 to v0.

v0      sets the start offsets of a share group without members (KIP-932)

A group that does not exist is created. The share partitions get a new state with the start offset,
and without records in flight.

Left out: nothing.
"""

from __future__ import annotations

from ...messages.alter_share_group_offsets_request import AlterShareGroupOffsetsRequest
from ...messages.alter_share_group_offsets_response import (
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from ...wire.errors import BrokerResponseError
from ...wire.uuid import Uuid
from ..api_error import api_error
from ..authorization import allows, check
from ..authorizer import Operation, ResourceType
from ..context import Context
from ..groups import ShareGroup
from ..groups.share import ShareStateInitialization
from ..registry import handles
from ..share import SharePartitionKey
from ..topics import Topic


@handles(AlterShareGroupOffsetsRequest, versions=range(1))
def alter_share_group_offsets(
    context: Context, request: AlterShareGroupOffsetsRequest, version: int
) -> AlterShareGroupOffsetsResponse:
    """Sets start offsets, and returns an error code for each partition."""
    now = context.now
    try:
        context.check_share_groups()
        check(context, Operation.READ, ResourceType.GROUP, request.group_id)
        if not request.group_id:
            raise api_error("INVALID_GROUP_ID", "")
        group = context.group_coordinator.get_or_create_share_group(
            context.node_id, request.group_id, now
        )
        if group.members:
            raise api_error("NON_EMPTY_GROUP", "The group is not empty.")
    except BrokerResponseError as error:
        return AlterShareGroupOffsetsResponse(
            error_code=error.code, error_message=error.detail or None
        )
    starting: dict[Uuid, frozenset[int]] = {}
    for requested in request.topics:
        topic = context.cluster.topics.get(requested.topic_name)
        if topic is None or not allows(
            context, Operation.READ, ResourceType.TOPIC, requested.topic_name
        ):
            continue
        indexes = frozenset(it.partition_index for it in requested.partitions)
        # As in Kafka, the record has only the last partitions of a topic that is named twice.
        starting[topic.topic_id] = indexes & frozenset(range(len(topic.partitions)))
    if any(starting.values()):
        group.start_initialization(starting, now)
    response = AlterShareGroupOffsetsResponse()
    done: list[ShareStateInitialization] = []
    failed: list[ShareStateInitialization] = []
    for requested in request.topics:
        topic = context.cluster.topics.get(requested.topic_name)
        result = AlterShareGroupOffsetsResponseTopic(topic_name=requested.topic_name)
        if topic is not None:
            result.topic_id = topic.topic_id
        response.responses.append(result)
        for it in requested.partitions:
            part = AlterShareGroupOffsetsResponsePartition(partition_index=it.partition_index)
            result.partitions.append(part)
            try:
                check(context, Operation.READ, ResourceType.TOPIC, requested.topic_name)
                done.append(_altered(context, group, topic, it.partition_index, it.start_offset))
            except BrokerResponseError as error:
                part.error_code, part.error_message = error.code, error.detail or None
                index = frozenset({it.partition_index})
                if topic is not None and index <= starting.get(topic.topic_id, frozenset()):
                    failed.append(ShareStateInitialization(topic.topic_id, index, 0, 0))
    if done:
        group.on_initialized(done, now)
    if failed:
        group.on_initialization_failed(failed, now)
    return response


def _altered(
    context: Context, group: ShareGroup, topic: Topic | None, index: int, offset: int
) -> ShareStateInitialization:
    """Creates a new share state; raises the errors of the share coordinator."""
    if topic is None or not 0 <= index < len(topic.partitions):
        raise api_error(
            "UNKNOWN_TOPIC_OR_PARTITION", "This server does not host this topic-partition."
        )
    key = SharePartitionKey(group.group_id, topic.topic_id, index)
    epoch = group.persisted.epoch
    context.cluster.share_coordinator.initialize(key, epoch, offset, context.now)
    return ShareStateInitialization(topic.topic_id, frozenset({index}), epoch, offset)
