"""ConsumerGroupHeartbeat (68), v0 to v1.

v0      a member joins, sends heartbeats, acknowledges revoked partitions, and leaves (KIP-848); if
        the first request has no member id, the response has a member id
v1      members generate their ids (KIP-1082); subscriptions by regular expressions

A broker without the consumer protocol returns UNSUPPORTED_VERSION. INVALID_REQUEST and
UNSUPPORTED_ASSIGNOR are checked before NOT_COORDINATOR. A subscribed topic name that the member may
not describe gets TOPIC_AUTHORIZATION_FAILED; a regular expression does not match such topics.

Left out: nothing.
"""

from __future__ import annotations

from functools import partial

from ...messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from ...messages.consumer_group_heartbeat_response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from ...wire.errors import BrokerResponseError
from ...wire.uuid import Uuid
from ..api_error import api_error
from ..authorization import allows, check
from ..authorizer import Operation, ResourceType
from ..context import Context
from ..groups import ConsumerGroup
from ..groups.consumer import ConsumerHeartbeat, ConsumerHeartbeatResult, validate_heartbeat
from ..groups.consumer.consumer_group_member import JOIN_EPOCH
from ..registry import handles


@handles(ConsumerGroupHeartbeatRequest, versions=range(2))
def consumer_group_heartbeat(
    context: Context, request: ConsumerGroupHeartbeatRequest, version: int
) -> ConsumerGroupHeartbeatResponse:
    """Returns the member epoch, and in some cases the assignment.

    The response has the assignment if the assignment has changed, if the member joins, or if the
    request has all fields of a joining member.
    """
    try:
        context.check_consumer_protocol()
        check(context, Operation.READ, ResourceType.GROUP, request.group_id)
        for topic in request.subscribed_topic_names or ():
            check(context, Operation.DESCRIBE, ResourceType.TOPIC, topic)
        heartbeat = _heartbeat(context, request)
        validate_heartbeat(
            request.group_id, heartbeat, version, context.settings.group_consumer_assignors
        )
        answer = _answer(context, request.group_id, heartbeat)
    except BrokerResponseError as error:
        return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.detail)
    return _response(answer)


def _heartbeat(context: Context, request: ConsumerGroupHeartbeatRequest) -> ConsumerHeartbeat:
    names, owned = request.subscribed_topic_names, request.topic_partitions
    return ConsumerHeartbeat(
        request.member_id,
        request.member_epoch,
        request.instance_id,
        request.rack_id,
        request.rebalance_timeout_ms,
        None if names is None else frozenset(names),
        request.subscribed_topic_regex,
        request.server_assignor,
        None if owned is None else {it.topic_id: frozenset(it.partitions) for it in owned},
        client_id=context.client_id or "",
        client_host=f"/{context.host}",
    )


def _answer(
    context: Context, group_id: str, heartbeat: ConsumerHeartbeat
) -> ConsumerHeartbeatResult:
    now = context.now
    if heartbeat.epoch == JOIN_EPOCH:
        found = context.group_coordinator.get_or_create_consumer_group(
            context.node_id, group_id, now
        )
    else:
        found = _group(context, group_id)
    if heartbeat.epoch < JOIN_EPOCH:
        return found.leave(heartbeat, now)
    may_describe = partial(allows, context, Operation.DESCRIBE, ResourceType.TOPIC)
    return found.heartbeat(heartbeat, str(Uuid.random()), now, may_describe)


def _group(context: Context, group_id: str) -> ConsumerGroup:
    group = context.group_coordinator.find(context.node_id, group_id, context.now)
    if not isinstance(group, ConsumerGroup):
        what = "not found" if group is None else "not a consumer group"
        raise api_error("GROUP_ID_NOT_FOUND", f"Group {group_id} is {what}.")
    return group


def _response(answer: ConsumerHeartbeatResult) -> ConsumerGroupHeartbeatResponse:
    response = ConsumerGroupHeartbeatResponse(
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
