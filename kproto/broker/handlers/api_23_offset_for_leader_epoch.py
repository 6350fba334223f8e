"""OffsetForLeaderEpoch (23), v0 to v4.

v0      the end offset of a leader epoch (KIP-101)
v1      the leader epoch of the returned offset, which may differ from the requested epoch (KIP-279)
v2      the client's current leader epoch; throttle time (KIP-320)
v3      replica id, so that consumers can send the request, too (KIP-320)
v4      flexible

If the requested epoch is missing in the log, the response has the largest lower epoch. If there is
no lower epoch, the response has the requested epoch and the start offset of the first epoch. If the
requested epoch is above the current epoch, the response has epoch -1 and offset -1. Nodes other
than the leader return NOT_LEADER_OR_FOLLOWER.

Left out: nothing.
"""

from __future__ import annotations

from ...messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
)
from ...messages.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from ...wire.errors import BrokerResponseError
from ..authorization import allows_cluster, check
from ..authorizer import Operation, ResourceType
from ..context import Context
from ..registry import handles


@handles(OffsetForLeaderEpochRequest, versions=range(5))
def offset_for_leader_epoch(
    context: Context, request: OffsetForLeaderEpochRequest, version: int
) -> OffsetForLeaderEpochResponse:
    """Returns the end offset of a leader epoch for each partition."""
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_partition(context, topic.topic, each) for each in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _partition(context: Context, name: str, requested: OffsetForLeaderPartition) -> EpochEndOffset:
    answer = EpochEndOffset(partition=requested.partition)
    try:
        if not allows_cluster(context, Operation.CLUSTER_ACTION):
            check(context, Operation.DESCRIBE, ResourceType.TOPIC, name)
        topic = context.cluster.topics.named(name)
        log = topic.after_cleanup(requested.partition, context.clock.now_ms()).log
        topic.check_leader(requested.partition, context.node_id, requested.current_leader_epoch)
    except BrokerResponseError as error:
        answer.error_code = error.code
        return answer
    found = log.epochs.end_of(requested.leader_epoch, log.end_offset)
    if found is not None:
        answer.leader_epoch, answer.end_offset = found
    return answer
