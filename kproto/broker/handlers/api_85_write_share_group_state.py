"""WriteShareGroupState (85), v0 to v1.

v0      changes the state of share partitions (KIP-932)
v1      the delivery complete count, from which the lag follows (KIP-1226)

Brokers send this request to the share coordinator. The client needs CLUSTER_ACTION. A request with
an empty group id, or with a topic without partitions, gets an empty response, as in Kafka.

Left out: nothing.
"""

from __future__ import annotations

from ...messages.write_share_group_state_request import WriteShareGroupStateRequest
from ...messages.write_share_group_state_response import (
    PartitionResult,
    WriteShareGroupStateResponse,
    WriteStateResult,
)
from ...wire.errors import BrokerResponseError
from ..authorization import check_cluster
from ..authorizer import Operation
from ..context import Context
from ..registry import handles
from ..share import SharePartitionKey, ShareStateWrite, StateBatch


@handles(WriteShareGroupStateRequest, versions=range(2))
def write_share_group_state(
    context: Context, request: WriteShareGroupStateRequest, version: int
) -> WriteShareGroupStateResponse:
    """Changes the states of share partitions, and returns an error code for each."""
    response = WriteShareGroupStateResponse()
    try:
        check_cluster(context, Operation.CLUSTER_ACTION)
    except BrokerResponseError as error:
        response.results = [
            WriteStateResult(
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
        result = WriteStateResult(topic_id=topic.topic_id)
        response.results.append(result)
        for it in topic.partitions:
            part = PartitionResult(partition=it.partition)
            result.partitions.append(part)
            key = SharePartitionKey(request.group_id, topic.topic_id, it.partition)
            try:
                coordinator.check_coordinator(context.node_id, key)
                batches = tuple(
                    StateBatch(
                        each.first_offset,
                        each.last_offset,
                        each.delivery_state,
                        each.delivery_count,
                    )
                    for each in it.state_batches
                )
                write = ShareStateWrite(
                    it.state_epoch,
                    it.leader_epoch,
                    it.start_offset,
                    it.delivery_complete_count,
                    batches,
                )
                coordinator.write(key, write, now)
            except BrokerResponseError as error:
                part.error_code, part.error_message = error.code, error.detail
    return response
