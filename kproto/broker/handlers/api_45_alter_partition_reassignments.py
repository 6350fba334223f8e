"""AlterPartitionReassignments (45), v0 to v1.

v0      moves the replicas of partitions to other nodes (KIP-455)
v1      may refuse another replication factor (KIP-860)

A partition without replicas in the request cancels its reassignment. A reassignment is complete at
once, unless an added node is stopped: then it is complete when the node starts. The request
requires ALTER on the cluster.

Left out: the timeout of the request.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...messages.alter_partition_reassignments_request import AlterPartitionReassignmentsRequest
from ...messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import check_cluster
from ..authorizer import Operation
from ..context import Context
from ..reassignment import cancel_reassignment, reassign
from ..registry import handles
from ..replica_placement import check_replicas


@handles(AlterPartitionReassignmentsRequest, versions=range(2))
def alter_partition_reassignments(
    context: Context, request: AlterPartitionReassignmentsRequest, version: int
) -> AlterPartitionReassignmentsResponse:
    """Reassigns partitions, and returns an error code for each."""
    factor_may_change = request.allow_replication_factor_change
    response = AlterPartitionReassignmentsResponse(
        error_message=None, allow_replication_factor_change=factor_may_change
    )
    try:
        check_cluster(context, Operation.ALTER)
    except BrokerResponseError as error:
        response.error_code, response.error_message = error.code, error.detail
        return response
    for topic in request.topics:
        results = []
        for partition in topic.partitions:
            index = partition.partition_index
            result = ReassignablePartitionResponse(partition_index=index, error_message=None)
            try:
                _reassign(
                    context,
                    topic.name,
                    index,
                    partition.replicas,
                    factor_may_change=factor_may_change,
                )
            except BrokerResponseError as error:
                result.error_code = error.code
                if error.name != "NO_REASSIGNMENT_IN_PROGRESS":
                    result.error_message = error.detail
            results.append(result)
        response.responses.append(ReassignableTopicResponse(name=topic.name, partitions=results))
    return response


def _reassign(
    context: Context,
    name: str,
    index: int,
    replicas: Sequence[int] | None,
    *,
    factor_may_change: bool,
) -> None:
    cluster = context.cluster
    topic = cluster.topics.get(name)
    if topic is None:
        raise api_error("UNKNOWN_TOPIC_OR_PARTITION", f"Unable to find a topic named {name}.")
    if not 0 <= index < len(topic.partitions):
        raise api_error("UNKNOWN_TOPIC_OR_PARTITION", f"Unable to find partition {name}:{index}.")
    if replicas is None:
        cluster.update_leader_and_isr(topic, index, cancel_reassignment)
        return
    check_replicas(replicas, cluster.nodes)
    current = topic.partition(index).leader_and_isr
    before = len(current.replicas) - len(current.adding)
    if not factor_may_change and len(replicas) != before:
        raise api_error(
            "INVALID_REPLICATION_FACTOR",
            f"The replication factor is changed from {before} to {len(replicas)}",
        )
    target = tuple(replicas)
    cluster.update_leader_and_isr(topic, index, lambda state, alive: reassign(state, target, alive))
