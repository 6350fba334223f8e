"""ListPartitionReassignments (46), v0 to v0.

v0      lists the reassignments that are in progress (KIP-455)

A reassignment is in progress only while a node to which a replica moves is stopped. Partitions
without a reassignment, and unknown partitions, are omitted. The request requires DESCRIBE on the
cluster.

Left out: the timeout of the request.
"""

from __future__ import annotations

from ...messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from ...messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from ...wire.errors import BrokerResponseError
from ..authorization import check_cluster
from ..authorizer import Operation
from ..context import Context
from ..registry import handles
from ..topics import Topic


@handles(ListPartitionReassignmentsRequest, versions=range(1))
def list_partition_reassignments(
    context: Context, request: ListPartitionReassignmentsRequest, version: int
) -> ListPartitionReassignmentsResponse:
    """Returns the reassignments of the requested partitions, or of all partitions."""
    try:
        check_cluster(context, Operation.DESCRIBE)
    except BrokerResponseError as error:
        return ListPartitionReassignmentsResponse(error_code=error.code, error_message=error.detail)
    topics = context.cluster.topics
    if request.topics is None:
        requested = {topic.name: list(range(len(topic.partitions))) for topic in topics}
    else:
        requested = {topic.name: topic.partition_indexes for topic in request.topics}
    response = ListPartitionReassignmentsResponse(error_message=None)
    for name, indexes in requested.items():
        topic = topics.get(name)
        ongoing = [] if topic is None else _ongoing(topic, indexes)
        if ongoing:
            response.topics.append(OngoingTopicReassignment(name=name, partitions=ongoing))
    return response


def _ongoing(topic: Topic, indexes: list[int]) -> list[OngoingPartitionReassignment]:
    found = []
    for index in indexes:
        if not 0 <= index < len(topic.partitions):
            continue
        state = topic.partition(index).leader_and_isr
        if state.adding or state.removing:
            found.append(
                OngoingPartitionReassignment(
                    partition_index=index,
                    replicas=state.replicas,
                    adding_replicas=state.adding,
                    removing_replicas=state.removing,
                )
            )
    return found
