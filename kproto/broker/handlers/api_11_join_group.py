"""JoinGroup (11), v0 to v9.

v0      a member joins; the response is delayed until the next generation; the session timeout is
        also the rebalance timeout
v1      rebalance timeout (KIP-62)
v2      throttle time
v4      MEMBER_ID_REQUIRED returns the member id, with which a dynamic member then joins (KIP-394)
v5      group instance id (KIP-345)
v6      flexible
v7      protocol type; the protocol name is null if there is none (KIP-559)
v8      reason (KIP-800), which is logged
v9      a restarted static leader may skip the assignment (KIP-814)

In a group of the consumer protocol, the response is not delayed, and there is no leader
(`groups.consumer.classic_protocol`).

Left out: the order of Kafka's hash map. The leader gets the members in the order in which they
joined, and the member that joined first becomes the new leader.
"""

from __future__ import annotations

from typing import Final
from uuid import uuid4

from ...messages.join_group_request import JoinGroupRequest
from ...messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from ...protocol.error_codes import code_of
from ...wire.errors import BrokerResponseError
from ...wire.limits import MAX_STRING_BYTES
from ...wire.uuid import Uuid
from ..api_error import api_error
from ..authorization import check_group_request
from ..context import Context
from ..groups import ConsumerGroup, JoinRequest, JoinResult, MemberProtocol, ShareGroup
from ..groups.consumer import classic_protocol
from ..registry import Decision, handles, respond_when_complete

_FIRST_VERSION_OF_REBALANCE_TIMEOUT: Final = 1
_FIRST_VERSION_OF_REQUIRED_ID: Final = 4
_FIRST_VERSION_OF_NULL: Final = 7
_FIRST_VERSION_OF_SKIPPING: Final = 9


@handles(JoinGroupRequest, versions=range(10))
def join_group(context: Context, request: JoinGroupRequest, version: int) -> Decision:
    """Adds a member to a group, or lets a member join again.

    In a classic group, the response to a member that takes part in a rebalance is delayed until the
    next generation starts.
    """

    def respond(answer: JoinResult) -> JoinGroupResponse:
        return _response(answer, version)

    try:
        check_group_request(context, request.group_id)
    except BrokerResponseError as error:
        # The response to a client that may not read the group has no member id.
        member_id = "" if error.name == "GROUP_AUTHORIZATION_FAILED" else request.member_id
        return respond(JoinResult(member_id, error.name))
    try:
        _check_session_timeout(context, request)
        context.group_coordinator.check_coordinator(context.node_id, request.group_id)
    except BrokerResponseError as error:
        member_id = "" if error.name == "NOT_COORDINATOR" else request.member_id
        return respond(JoinResult(member_id, error.name))
    now, new_id = context.now, _new_id(context, request)
    if request.member_id:
        group = context.group_coordinator.find(context.node_id, request.group_id, context.now)
    elif len(new_id.encode()) > MAX_STRING_BYTES:
        return respond(
            JoinResult("", "UNKNOWN_SERVER_ERROR")
        )  # as in Kafka, whose response cannot hold the id
    else:
        try:
            group = context.group_coordinator.get_or_create_classic_group(
                context.node_id, request.group_id, context.now
            )
        except BrokerResponseError as error:
            return respond(JoinResult("", error.name))
    if group is None:
        return respond(JoinResult(request.member_id, "UNKNOWN_MEMBER_ID"))
    if isinstance(group, ShareGroup):
        return respond(JoinResult("", "INCONSISTENT_GROUP_PROTOCOL"))
    joining = _joining(context, request, version)
    if isinstance(group, ConsumerGroup):
        if not group.members:  # the member id is from a deleted group
            return respond(JoinResult(request.member_id, "UNKNOWN_MEMBER_ID"))
        return respond(classic_protocol.join(group, joining, _new_id_of_consumer_group(), now))
    pending = group.join(joining, new_id, now)
    return respond_when_complete(context, group, pending, respond)


def _check_session_timeout(context: Context, request: JoinGroupRequest) -> None:
    least = context.settings.group_min_session_timeout_ms
    most = context.settings.group_max_session_timeout_ms
    if not least <= request.session_timeout_ms <= most:
        raise api_error(
            "INVALID_SESSION_TIMEOUT",
            f"a session timeout of {request.session_timeout_ms} ms; the broker allows {least} to "
            f"{most} ms",
        )


def _joining(context: Context, request: JoinGroupRequest, version: int) -> JoinRequest:
    by_itself = version >= _FIRST_VERSION_OF_REBALANCE_TIMEOUT
    return JoinRequest(
        member_id=request.member_id,
        protocol_type=request.protocol_type,
        protocols=tuple(MemberProtocol(it.name, it.metadata) for it in request.protocols),
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=(
            request.rebalance_timeout_ms if by_itself else request.session_timeout_ms
        ),
        instance_id=request.group_instance_id,
        client_id=context.client_id or "",
        client_host=f"/{context.host}",
        reason=request.reason or "",
        requires_known_member_id=version >= _FIRST_VERSION_OF_REQUIRED_ID,
        supports_skipping_assignment=version >= _FIRST_VERSION_OF_SKIPPING,
    )


def _new_id(context: Context, request: JoinGroupRequest) -> str:
    start = request.group_instance_id
    if start is None:
        start = "null" if context.client_id is None else context.client_id  # as in Java
    return f"{start}-{uuid4()}"


def _new_id_of_consumer_group() -> str:
    return str(Uuid.random())


def _response(answer: JoinResult, version: int) -> JoinGroupResponse:
    protocol = answer.protocol
    if protocol is None and version < _FIRST_VERSION_OF_NULL:
        protocol = ""
    return JoinGroupResponse(
        error_code=code_of(answer.error),
        generation_id=answer.generation,
        protocol_type=answer.protocol_type,
        protocol_name=protocol,
        leader=answer.leader,
        skip_assignment=answer.skip_assignment,
        member_id=answer.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=it.member_id, group_instance_id=it.instance_id, metadata=it.metadata
            )
            for it in answer.members
        ],
    )
