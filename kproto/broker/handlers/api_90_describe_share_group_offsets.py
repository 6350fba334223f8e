"""DescribeShareGroupOffsets (90), v0 to v1.

v0      the start offsets of share groups (KIP-932)
v1      the lag: records from the start offset on whose delivery is not complete (KIP-1226)

The start offset is the one that the share coordinator stores. The leader of a partition moves it
with the next acknowledgement only, so it can be behind. Without a list of topics, the response has
the topics of the group that the client may describe.

Left out: nothing.
"""

from __future__ import annotations

from typing import Final

from ...messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from ...messages.describe_share_group_offsets_response import (
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import allows, check
from ..authorizer import Operation, ResourceType
from ..context import Context
from ..groups import ShareGroup
from ..registry import handles
from ..share import SharePartitionKey

_NO_OFFSET: Final = -1


@handles(DescribeShareGroupOffsetsRequest, versions=range(2))
def describe_share_group_offsets(
    context: Context, request: DescribeShareGroupOffsetsRequest, version: int
) -> DescribeShareGroupOffsetsResponse:
    """Returns the start offset and the lag of the share partitions of each group."""
    return DescribeShareGroupOffsetsResponse(
        groups=[_described(context, it) for it in request.groups]
    )


def _described(
    context: Context, requested: DescribeShareGroupOffsetsRequestGroup
) -> DescribeShareGroupOffsetsResponseGroup:
    group_id = requested.group_id
    response = DescribeShareGroupOffsetsResponseGroup(group_id=group_id)
    try:
        context.check_share_groups()
        check(context, Operation.DESCRIBE, ResourceType.GROUP, group_id)
        context.group_coordinator.check_coordinator(context.node_id, group_id)
        for node in context.cluster.alive:
            context.cluster.share_partitions_of(node).advance(context.now, group_id)
        if requested.topics is None:
            wanted = _all_topics(context, group_id)
        else:
            wanted = {it.topic_name: list(it.partitions) for it in requested.topics}
    except BrokerResponseError as error:
        response.error_code, response.error_message = error.code, error.detail or None
        return response
    for name, indexes in wanted.items():
        response.topics.append(_topic(context, group_id, name, indexes))
    return response


def _all_topics(context: Context, group_id: str) -> dict[str, list[int]]:
    group = context.group_coordinator.find(context.node_id, group_id, context.now)
    if not isinstance(group, ShareGroup):
        return {}
    return {
        it.name: sorted(it.partitions)
        for it in group.persisted.initialized.values()
        if allows(context, Operation.DESCRIBE, ResourceType.TOPIC, it.name)
    }


def _topic(
    context: Context, group_id: str, name: str, indexes: list[int]
) -> DescribeShareGroupOffsetsResponseTopic:
    response = DescribeShareGroupOffsetsResponseTopic(topic_name=name)
    topic = None
    failure: BrokerResponseError | None = None
    try:
        check(context, Operation.DESCRIBE, ResourceType.TOPIC, name)
        topic = context.cluster.topics.get(name)
        if topic is None:
            raise api_error(
                "UNKNOWN_TOPIC_OR_PARTITION", "This server does not host this topic-partition."
            )
        response.topic_id = topic.topic_id
    except BrokerResponseError as error:
        failure = error
    for index in indexes:
        part = DescribeShareGroupOffsetsResponsePartition(
            partition_index=index, start_offset=_NO_OFFSET if failure is None else 0
        )
        response.partitions.append(part)
        try:
            if failure is not None:
                raise failure
            assert topic is not None
            key = SharePartitionKey(group_id, topic.topic_id, index)
            state = context.cluster.share_coordinator.summary(key)
            part.start_offset, part.leader_epoch = state.start_offset, state.leader_epoch
            if state.start_offset >= 0:
                end = topic.partition(index).high_watermark
                part.lag = end - state.start_offset - max(0, state.complete_count)
        except BrokerResponseError as error:
            part.error_code, part.error_message = error.code, error.detail or None
    return response
