"""ReadShareGroupStateSummary (87), v0 to v1.

v0      the epochs and start offset of share partitions (KIP-932)
v1      the delivery complete count (KIP-1226)

Brokers send this request to the share coordinator. The client needs CLUSTER_ACTION. A request with
an empty group id, or with a topic without partitions, gets an empty response, as in Kafka.

Left out: nothing.
"""

from __future__ import annotations

from ...messages.read_share_group_state_summary_request import ReadShareGroupStateSummaryRequest
from ...messages.read_share_group_state_summary_response import (
    PartitionResult,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
)
from ...wire.errors import BrokerResponseError
from ..authorization import check_cluster
from ..authorizer import Operation
from ..context import Context
from ..registry import handles
from ..share import SharePartitionKey


@handles(ReadShareGroupStateSummaryRequest, versions=range(2))
def read_share_group_state_summary(
    context: Context, request: ReadShareGroupStateSummaryRequest, version: int
) -> ReadShareGroupStateSummaryResponse:
    """Returns epochs and start offset of share partitions."""
    response = ReadShareGroupStateSummaryResponse()
    try:
        check_cluster(context, Operation.CLUSTER_ACTION)
    except BrokerResponseError as error:
        response.results = [
            ReadStateSummaryResult(
                topic_id=topic.topic_id,
                partitions=[
                    PartitionResult(
                        partition=it.partition, error_code=error.code, error_message=None
                    )
                    for it in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return response
    if not request.group_id or not all(topic.partitions for topic in request.topics):
        return response
    coordinator = context.cluster.share_coordinator
    for topic in request.topics:
        result = ReadStateSummaryResult(topic_id=topic.topic_id)
        response.results.append(result)
        for it in topic.partitions:
            part = PartitionResult(partition=it.partition)
            result.partitions.append(part)
            key = SharePartitionKey(request.group_id, topic.topic_id, it.partition)
            try:
                coordinator.check_coordinator(context.node_id, key)
                state = coordinator.summary(key)
                part.state_epoch, part.leader_epoch = state.state_epoch, state.leader_epoch
                part.start_offset = state.start_offset
                part.delivery_complete_count = state.complete_count
            except BrokerResponseError as error:
                part.error_code, part.error_message = error.code, error.detail
    return response
