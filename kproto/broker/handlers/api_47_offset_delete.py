"""OffsetDelete (47), v0 to v0.

v0      deletes offsets of a group by partition (KIP-496)

A topic to which a member subscribes gets GROUP_SUBSCRIBED_TO_TOPIC. A missing topic or partition
gets UNKNOWN_TOPIC_OR_PARTITION. For a partition without a committed offset, the response has no
error. If the group has members that are not consumers, the whole request gets NON_EMPTY_GROUP.

Left out: nothing.
"""

from __future__ import annotations

from typing import Final

from ...messages.offset_delete_request import OffsetDeleteRequest
from ...messages.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from ...protocol.error_codes import code_of
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import check
from ..authorizer import Operation, ResourceType
from ..context import Context
from ..groups.committed_offsets import TopicPartition
from ..groups.coordinator_records import offset_tombstone
from ..groups.offset_commit_checks import validate_offset_delete
from ..registry import handles

_SUBSCRIBED: Final = code_of("GROUP_SUBSCRIBED_TO_TOPIC")


@handles(OffsetDeleteRequest, versions=range(1))
def offset_delete(
    context: Context, request: OffsetDeleteRequest, version: int
) -> OffsetDeleteResponse:
    """Deletes committed offsets, and returns an error code for each partition."""
    group_id = request.group_id
    now = context.now
    coordinator = context.group_coordinator
    answer = OffsetDeleteResponse()
    partitions: list[TopicPartition] = []
    try:
        check(context, Operation.DELETE, ResourceType.GROUP, group_id)
        if not group_id:
            raise api_error("INVALID_GROUP_ID", "the group id is empty")
        group = context.group_coordinator.find_with_offsets(context.node_id, group_id, context.now)
        validate_offset_delete(group)
        assert group is not None
        for topic in request.topics:
            for partition in topic.partitions:
                tp = TopicPartition(topic.name, partition.partition_index)
                try:
                    _check_topic(context, tp)
                except BrokerResponseError as error:
                    _add(answer, tp, error.code)
                else:
                    partitions.append(tp)
        subscribed = {tp for tp in partitions if group.is_subscribed_to(tp.topic)}
        stored = set(group.offsets.partitions)
        committed = [tp for tp in partitions if tp in stored - subscribed]
        coordinator.append(group_id, [offset_tombstone(group_id, *tp) for tp in committed], now)
    except BrokerResponseError as error:
        return OffsetDeleteResponse(error_code=error.code)
    for tp in committed:
        group.offsets.remove(*tp)
    for tp in partitions:
        _add(answer, tp, _SUBSCRIBED if tp in subscribed else 0)
    return answer


def _check_topic(context: Context, tp: TopicPartition) -> None:
    check(context, Operation.READ, ResourceType.TOPIC, tp.topic)
    context.cluster.topics.named(tp.topic).partition(tp.partition)


def _add(answer: OffsetDeleteResponse, tp: TopicPartition, code: int) -> None:
    topic = answer.topics.find(name=tp.topic)
    if topic is None:
        topic = OffsetDeleteResponseTopic(name=tp.topic)
        answer.topics.append(topic)
    topic.partitions.append(
        OffsetDeleteResponsePartition(partition_index=tp.partition, error_code=code)
    )
