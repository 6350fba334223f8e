"""DescribeTopicPartitions (75), v0 to v0.

v0      topics with their partitions, sorted by name, in responses of limited length (KIP-966)

A request without topics gets all topics. If the topics have more partitions than the limit of the
request or of the broker, the response has a cursor from which the next request goes on. The
request requires DESCRIBE on each topic.

Left out: eligible leader replicas.
"""

from __future__ import annotations

from typing import Final

from ...messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest
from ...messages.describe_topic_partitions_response import (
    Cursor,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    DescribeTopicPartitionsResponseTopicCollection,
)
from ...protocol.error_codes import code_of
from ...wire.errors import BrokerResponseError
from ..authorization import allows, authorized_operations
from ..authorizer import AUTHORIZATION_ERRORS, Operation, ResourceType
from ..context import Context
from ..leader_and_isr import NO_LEADER
from ..registry import handles
from ..storage.partition import Partition
from ..topics import check_topic_name

#: Kafka's default of max.request.partition.size.limit.
_MOST_PARTITIONS: Final = 2000


@handles(DescribeTopicPartitionsRequest, versions=range(1))
def describe_topic_partitions(
    context: Context, request: DescribeTopicPartitionsRequest, version: int
) -> DescribeTopicPartitionsResponse:
    """Returns topics with their partitions, from the cursor of the request on."""
    cursor, topics = request.cursor, context.cluster.topics
    first = "" if cursor is None else cursor.topic_name
    all_names = {topic.name for topic in topics}
    requested = {topic.name for topic in request.topics} or all_names
    response = DescribeTopicPartitionsResponse(next_cursor=None)
    left = max(1, min(request.response_partition_limit, _MOST_PARTITIONS))
    denied = []
    for name in sorted(name for name in requested if name >= first):
        if not allows(context, Operation.DESCRIBE, ResourceType.TOPIC, name):
            if request.topics:
                denied.append(name)
            continue
        if left == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        start = 0 if cursor is None or name != first else cursor.partition_index
        described = _described(context, name, start, left)
        response.topics.append(described)
        left -= len(described.partitions)
        topic = topics.get(name)
        stop = start + len(described.partitions)
        if topic is not None and stop < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=stop)
            break
    error = code_of(AUTHORIZATION_ERRORS[ResourceType.TOPIC])
    refused = [DescribeTopicPartitionsResponseTopic(name=name, error_code=error) for name in denied]
    response.topics = DescribeTopicPartitionsResponseTopicCollection([*response.topics, *refused])
    return response


def _described(
    context: Context, name: str, start: int, most: int
) -> DescribeTopicPartitionsResponseTopic:
    described = DescribeTopicPartitionsResponseTopic(
        name=name,
        topic_authorized_operations=authorized_operations(context, ResourceType.TOPIC, name),
    )
    try:
        check_topic_name(name)
        topic = context.cluster.topics.named(name)
    except BrokerResponseError as error:
        described.error_code = error.code
        return described
    described.topic_id, described.is_internal = topic.topic_id, topic.is_internal
    described.partitions = [
        _partition(context, partition) for partition in topic.partitions[start : start + most]
    ]
    return described


def _partition(context: Context, partition: Partition) -> DescribeTopicPartitionsResponsePartition:
    state = partition.leader_and_isr
    return DescribeTopicPartitionsResponsePartition(
        error_code=code_of("LEADER_NOT_AVAILABLE") if state.leader == NO_LEADER else 0,
        partition_index=partition.index,
        leader_id=state.leader,
        leader_epoch=partition.log.epochs.current,
        replica_nodes=state.replicas,
        isr_nodes=state.in_sync,
        eligible_leader_replicas=[],
        last_known_elr=[],
        offline_replicas=[node for node in state.replicas if not context.cluster.is_alive(node)],
    )
