"""InitializeShareGroupState (83), v0 to v0.

v0      creates the state of share partitions (KIP-932)

Brokers send this request to the share coordinator. The client needs CLUSTER_ACTION. A request with
an empty group id, or with a topic without partitions, gets an empty response, as in Kafka.

Left out: nothing.
"""

from __future__ import annotations

from ...messages.initialize_share_group_state_request import InitializeShareGroupStateRequest
from ...messages.initialize_share_group_state_response import (
    InitializeShareGroupStateResponse,
    InitializeStateResult,
    PartitionResult,
)
from ...wire.errors import BrokerResponseError
from ..authorization import check_cluster
from ..authorizer import Operation
from ..context import Context
from ..registry import handles
from ..share import SharePartitionKey


@handles(InitializeShareGroupStateRequest, versions=range(1))
def initialize_share_group_state(
    context: Context, request: InitializeShareGroupStateRequest, version: int
) -> InitializeShareGroupStateResponse:
    """Creates the states of share partitions, and returns an error code for each."""
    response = InitializeShareGroupStateResponse()
    try:
        check_cluster(context, Operation.CLUSTER_ACTION)
    except BrokerResponseError as error:
        response.results = [
            InitializeStateResult(
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
        result = InitializeStateResult(topic_id=topic.topic_id)
        response.results.append(result)
        for it in topic.partitions:
            part = PartitionResult(partition=it.partition)
            result.partitions.append(part)
            key = SharePartitionKey(request.group_id, topic.topic_id, it.partition)
            try:
                coordinator.check_coordinator(context.node_id, key)
                coordinator.initialize(key, it.state_epoch, it.start_offset, now)
            except BrokerResponseError as error:
                part.error_code, part.error_message = error.code, error.detail
    return response
