"""ReadShareGroupState (84), v0 to v0.

v0      the state of share partitions, for the leaders of the partitions (KIP-932)

Brokers send this request to the share coordinator. The client needs CLUSTER_ACTION. A request with
an empty group id, or with a topic without partitions, gets an empty response, as in Kafka.

Left out: nothing.
"""

from __future__ import annotations

from ...messages.read_share_group_state_request import ReadShareGroupStateRequest
from ...messages.read_share_group_state_response import (
    PartitionResult,
    ReadShareGroupStateResponse,
    ReadStateResult,
    StateBatch,
)
from ...wire.errors import BrokerResponseError
from ..authorization import check_cluster
from ..authorizer import Operation
from ..context import Context
from ..registry import handles
from ..share import SharePartitionKey


@handles(ReadShareGroupStateRequest, versions=range(1))
def read_share_group_state(
    context: Context, request: ReadShareGroupStateRequest, version: int
) -> ReadShareGroupStateResponse:
    """Returns the states of share partitions, and stores the leader epochs."""
    response = ReadShareGroupStateResponse()
    try:
        check_cluster(context, Operation.CLUSTER_ACTION)
    except BrokerResponseError as error:
        response.results = [
            ReadStateResult(
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
    coordinator, now = context.cluster.share_coordinator, context.now
    for topic in request.topics:
        result = ReadStateResult(topic_id=topic.topic_id)
        response.results.append(result)
        for it in topic.partitions:
            part = PartitionResult(partition=it.partition)
            result.partitions.append(part)
            key = SharePartitionKey(request.group_id, topic.topic_id, it.partition)
            try:
                coordinator.check_coordinator(context.node_id, key)
                state = coordinator.read(key, it.leader_epoch, now)
                part.state_epoch, part.start_offset = state.state_epoch, state.start_offset
                part.state_batches = [
                    StateBatch(
                        first_offset=each.first,
                        last_offset=each.last,
                        delivery_state=each.state,
                        delivery_count=each.deliveries,
                    )
                    for each in state.batches
                ]
            except BrokerResponseError as error:
                part.error_code, part.error_message = error.code, error.detail
    return response
