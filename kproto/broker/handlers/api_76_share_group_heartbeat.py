"""ShareGroupHeartbeat (76), v1 to v1.

v1      a member joins a share group, sends heartbeats, and leaves (KIP-932)

A broker without share groups returns UNSUPPORTED_VERSION. A member id that is empty or has more
than 36 characters gets INVALID_REQUEST. A subscribed topic that the member may not describe gets
TOPIC_AUTHORIZATION_FAILED. The first heartbeat for a topic creates the state of its share
partitions; the next heartbeat assigns the partitions.

Left out: nothing. Kafka creates the state after it has sent the response; this broker creates the
state before.
"""

from __future__ import annotations

import logging

from ...messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from ...messages.share_group_heartbeat_response import (
    Assignment,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import check
from ..authorizer import Operation, ResourceType
from ..context import Context
from ..groups import ShareGroup
from ..groups.consumer.consumer_group_member import JOIN_EPOCH
from ..groups.share import (
    ShareHeartbeat,
    ShareHeartbeatResult,
    ShareStateInitialization,
    validate_share_heartbeat,
)
from ..log_escaping import log_safe
from ..registry import handles
from ..share import SharePartitionKey
from .share_request_checks import check_member_id

logger = logging.getLogger("kproto.broker")


@handles(ShareGroupHeartbeatRequest, versions=range(1, 2))
def share_group_heartbeat(
    context: Context, request: ShareGroupHeartbeatRequest, version: int
) -> ShareGroupHeartbeatResponse:
    """Returns the member epoch, and in some cases the assignment.

    The response has the assignment if the member joins, if the request has a subscription, or if
    the assignment has changed.
    """
    try:
        context.check_share_groups()
        check(context, Operation.READ, ResourceType.GROUP, request.group_id)
        check_member_id(request.member_id)
        for topic in request.subscribed_topic_names or ():
            check(context, Operation.DESCRIBE, ResourceType.TOPIC, topic)
        names = request.subscribed_topic_names
        heartbeat = ShareHeartbeat(
            request.member_id,
            request.member_epoch,
            request.rack_id,
            None if names is None else frozenset(names),
            client_id=context.client_id or "",
            client_host=f"/{context.host}",
        )
        validate_share_heartbeat(request.group_id, heartbeat)
        answer = _answer(context, request.group_id, heartbeat)
    except BrokerResponseError as error:
        return ShareGroupHeartbeatResponse(
            error_code=error.code, error_message=error.detail or None
        )
    return _response(answer)


def _answer(context: Context, group_id: str, heartbeat: ShareHeartbeat) -> ShareHeartbeatResult:
    now, coordinator = context.now, context.group_coordinator
    if heartbeat.epoch < JOIN_EPOCH:
        group = coordinator.find_share_group(context.node_id, group_id, now)
        return group.leave(heartbeat, now)
    if heartbeat.epoch > JOIN_EPOCH and coordinator.find(context.node_id, group_id, now) is None:
        raise api_error("GROUP_ID_NOT_FOUND", f"Share group {group_id} not found.")
    group = coordinator.get_or_create_share_group(context.node_id, group_id, now)
    answer = group.heartbeat(heartbeat, now)
    _initialize_states(context, group)
    return answer


def _initialize_states(context: Context, group: ShareGroup) -> None:
    """Creates the states of share partitions that the group needs.

    If a state cannot be created, logs a warning; the next heartbeat tries again.
    """
    now = context.now
    done: list[ShareStateInitialization] = []
    failed: list[ShareStateInitialization] = []
    for each in group.pending_initializations():
        try:
            for index in sorted(each.partitions):
                key = SharePartitionKey(group.group_id, each.topic_id, index)
                context.cluster.share_coordinator.initialize(
                    key, each.state_epoch, each.start_offset, now
                )
        except BrokerResponseError as error:
            logger.warning(
                "the share states of group %s are not created: %s", log_safe(group.group_id), error
            )
            failed.append(each)
        else:
            done.append(each)
    try:
        if done:
            group.on_initialized(done, now)
        if failed:
            group.on_initialization_failed(failed, now)
    except BrokerResponseError as error:
        logger.warning("group %s is not stored: %s", log_safe(group.group_id), error)


def _response(answer: ShareHeartbeatResult) -> ShareGroupHeartbeatResponse:
    response = ShareGroupHeartbeatResponse(
        member_id=answer.member_id,
        member_epoch=answer.epoch,
        heartbeat_interval_ms=answer.heartbeat_interval_ms,
    )
    if answer.assigned is not None:
        response.assignment = Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic_id, partitions=sorted(its))
                for topic_id, its in answer.assigned.items()
            ]
        )
    return response
