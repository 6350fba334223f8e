"""SyncGroup (14), v0 to v5.

v0      the leader sends the assignments; responses to followers wait for the assignments
v1      throttle time
v3      group instance id (KIP-345)
v4      flexible
v5      protocol type and name, which must equal type and name of the generation (KIP-559)

Left out: nothing.
"""

from __future__ import annotations

from typing import Final

from ...messages.sync_group_request import SyncGroupRequest
from ...messages.sync_group_response import SyncGroupResponse
from ...protocol.error_codes import code_of
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import check_group_request
from ..context import Context
from ..groups import ConsumerGroup, ShareGroup, SyncRequest, SyncResult
from ..groups.consumer import classic_protocol
from ..registry import Decision, handles, respond_when_complete

_FIRST_VERSION_OF_PROTOCOL: Final = 5


@handles(SyncGroupRequest, versions=range(6))
def sync_group(context: Context, request: SyncGroupRequest, version: int) -> Decision:
    """Returns the member's assignment; if the leader has not sent it yet, delays the response."""
    try:
        if version >= _FIRST_VERSION_OF_PROTOCOL:
            _check_protocol(request)
        check_group_request(context, request.group_id)
        group = context.group_coordinator.find(context.node_id, request.group_id, context.now)
    except BrokerResponseError as error:
        return SyncGroupResponse(error_code=error.code)
    if group is None or isinstance(group, ShareGroup):
        return SyncGroupResponse(error_code=code_of("UNKNOWN_MEMBER_ID"))
    syncing = SyncRequest(
        request.member_id,
        request.generation_id,
        request.group_instance_id,
        request.protocol_type,
        request.protocol_name,
        {it.member_id: it.assignment for it in request.assignments},
    )
    if isinstance(group, ConsumerGroup):
        return _response(classic_protocol.sync(group, syncing, context.now))
    return respond_when_complete(context, group, group.sync(syncing, context.now), _response)


def _check_protocol(request: SyncGroupRequest) -> None:
    if request.protocol_type is None or request.protocol_name is None:
        raise api_error(
            "INCONSISTENT_GROUP_PROTOCOL", "SyncGroup has no protocol type or no protocol name"
        )


def _response(answer: SyncResult) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=code_of(answer.error),
        protocol_type=answer.protocol_type,
        protocol_name=answer.protocol,
        assignment=answer.assignment,
    )
