"""Heartbeat (12), v0 to v4.

v0      resets the session timeout of a member
v1      throttle time
v3      group instance id (KIP-345)
v4      flexible

Left out: COORDINATOR_LOAD_IN_PROGRESS, because a new coordinator loads its groups at once.
"""

from __future__ import annotations

from ...messages.heartbeat_request import HeartbeatRequest
from ...messages.heartbeat_response import HeartbeatResponse
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import check_group_request
from ..context import Context
from ..groups import ConsumerGroup, ShareGroup
from ..groups.consumer import classic_protocol
from ..registry import handles


@handles(HeartbeatRequest, versions=range(5))
def heartbeat(context: Context, request: HeartbeatRequest, version: int) -> HeartbeatResponse:
    """Resets a member's session timeout; REBALANCE_IN_PROGRESS tells the member to join again."""
    try:
        check_group_request(context, request.group_id)
        _heartbeat(context, request)
    except BrokerResponseError as error:
        return HeartbeatResponse(error_code=error.code)
    return HeartbeatResponse()


def _heartbeat(context: Context, request: HeartbeatRequest) -> None:
    now = context.now
    group = context.group_coordinator.find(context.node_id, request.group_id, context.now)
    if group is None or isinstance(group, ShareGroup):
        raise api_error("UNKNOWN_MEMBER_ID", f"{request.group_id!r} has no such member")
    if isinstance(group, ConsumerGroup):
        instance_id = request.group_instance_id
        classic_protocol.heartbeat(
            group, request.member_id, instance_id, request.generation_id, now
        )
        return
    group.heartbeat(request.member_id, request.group_instance_id, request.generation_id, now)
