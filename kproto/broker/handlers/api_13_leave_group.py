"""LeaveGroup (13), v0 to v5.

v0      one member leaves
v1      throttle time
v3      many members, also by instance id (KIP-345)
v4      flexible
v5      reason (KIP-800), which is logged

Left out: nothing.
"""

from __future__ import annotations

from typing import Final

from ...messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from ...messages.leave_group_response import LeaveGroupResponse, MemberResponse
from ...protocol.error_codes import code_of
from ...wire.errors import BrokerResponseError
from ..authorization import check_group_request
from ..context import Context
from ..groups import AnyGroup, ConsumerGroup, LeavingMember, ShareGroup
from ..groups.consumer import classic_protocol
from ..registry import handles

_FIRST_VERSION_OF_MANY: Final = 3


@handles(LeaveGroupRequest, versions=range(6))
def leave_group(context: Context, request: LeaveGroupRequest, version: int) -> LeaveGroupResponse:
    """Removes members from a group, and returns an error code for each."""
    try:
        check_group_request(context, request.group_id)
        group = context.group_coordinator.find(context.node_id, request.group_id, context.now)
    except BrokerResponseError as error:
        return LeaveGroupResponse(error_code=error.code)
    many = version >= _FIRST_VERSION_OF_MANY
    members = request.members if many else [MemberIdentity(member_id=request.member_id)]
    codes = [code_of(error) for error in _errors(context, group, members)]
    if not many:
        return LeaveGroupResponse(error_code=codes[0])
    return LeaveGroupResponse(
        members=[
            MemberResponse(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                error_code=code,
            )
            for member, code in zip(members, codes, strict=True)
        ]
    )


def _errors(context: Context, group: AnyGroup | None, members: list[MemberIdentity]) -> list[str]:
    if group is None or isinstance(group, ShareGroup):
        return ["UNKNOWN_MEMBER_ID"] * len(members)
    leaving = [LeavingMember(it.member_id, it.group_instance_id, it.reason or "") for it in members]
    if isinstance(group, ConsumerGroup):
        return classic_protocol.leave(group, leaving, context.now)
    return group.leave(leaving, context.now)
