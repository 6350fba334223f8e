"""ShareAcknowledge (79), v1 to v2.

v1      a member of a share group accepts, releases or rejects records (KIP-932)
v2      renewals of acquisition locks (KIP-1222), the lock duration in the response

The share session epoch -1 ends the share session, and releases the records that the member still
holds. The checks and their order are those of Kafka 4.4.0.

Left out: nothing.
"""

from __future__ import annotations

from ...messages.share_acknowledge_request import ShareAcknowledgeRequest
from ...messages.share_acknowledge_response import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import check
from ..authorizer import Operation, ResourceType
from ..context import Context
from ..registry import handles
from ..share import FINAL_EPOCH, INITIAL_EPOCH, TopicIdPartition
from .share_acknowledgements import acknowledge, current_leader
from .share_request_checks import LEADER_ERRORS, check_member_id, leader_endpoints


@handles(ShareAcknowledgeRequest, versions=range(1, 3))
def share_acknowledge(
    context: Context, request: ShareAcknowledgeRequest, version: int
) -> ShareAcknowledgeResponse:
    """Applies acknowledgements, and returns an error code for each partition."""
    group_id, member_id = request.group_id, request.member_id
    sessions = context.share_partitions.sessions
    try:
        context.check_share_groups()
        if group_id is None:
            raise api_error("INVALID_REQUEST", "")
        check(context, Operation.READ, ResourceType.GROUP, group_id)
        check_member_id(member_id)
        assert member_id is not None
        epoch = request.share_session_epoch
        if epoch == INITIAL_EPOCH:
            raise api_error("INVALID_SHARE_SESSION_EPOCH", "")
        session = (
            sessions.find(group_id, member_id)
            if epoch == FINAL_EPOCH
            else sessions.at_epoch(group_id, member_id, epoch)
        )
        if epoch != FINAL_EPOCH:
            session.advance()
        batches = {
            TopicIdPartition(topic.topic_id, it.partition_index): it.acknowledgement_batches
            for topic in request.topics
            for it in topic.partitions
        }
        is_renew = request.is_renew_ack
        results = acknowledge(context, group_id, member_id, batches, version, is_renew=is_renew)
    except BrokerResponseError as error:
        return ShareAcknowledgeResponse(error_code=error.code, error_message=None)
    if request.share_session_epoch == FINAL_EPOCH:
        context.share_partitions.end_session(session, context.now)
    response = ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=context.share_partitions.config_of(group_id).lock_duration_ms
    )
    for tp, failure in results.items():
        topic = response.responses.find(topic_id=tp.topic_id)
        if topic is None:
            topic = ShareAcknowledgeTopicResponse(topic_id=tp.topic_id)
            response.responses.append(topic)
        topic.partitions.append(_partition(context, tp, failure, response))
    return response


def _partition(
    context: Context,
    tp: TopicIdPartition,
    error: BrokerResponseError | None,
    response: ShareAcknowledgeResponse,
) -> PartitionData:
    data = PartitionData(partition_index=tp.partition)
    if error is None:
        return data
    data.error_code, data.error_message = error.code, None
    leader = current_leader(context, tp.topic_id, tp.partition)
    if error.name in LEADER_ERRORS and leader is not None:
        data.current_leader = LeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1])
        for it in leader_endpoints(context, leader[0]):
            if response.node_endpoints.find(node_id=it.node_id) is None:
                response.node_endpoints.append(
                    NodeEndpoint(node_id=it.node_id, host=it.host, port=it.port, rack=it.rack)
                )
    return data
