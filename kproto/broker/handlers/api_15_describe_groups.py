"""DescribeGroups (15), v0 to v6.

v0      state, protocol and members of groups
v1      throttle time
v3      authorized operations (KIP-430)
v4      group instance id (KIP-345)
v5      flexible
v6      GROUP_ID_NOT_FOUND for a missing group (KIP-1043), which has the state Dead in all versions

Metadata of members and the protocol are returned only for stable groups. In the response, groups
that the client may not describe come first.

As in Kafka since 4.0, groups of the consumer protocol count as missing: ConsumerGroupDescribe
describes them.

Left out: nothing.
"""

from __future__ import annotations

from typing import Final

from ...messages.describe_groups_request import DescribeGroupsRequest
from ...messages.describe_groups_response import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import allows, authorized_operations, check
from ..authorizer import Operation, ResourceType
from ..context import Context
from ..groups import ClassicGroup, ClassicGroupState
from ..registry import handles

_FIRST_VERSION_OF_NOT_FOUND: Final = 6


@handles(DescribeGroupsRequest, versions=range(7))
def describe_groups(
    context: Context, request: DescribeGroupsRequest, version: int
) -> DescribeGroupsResponse:
    """Returns the state and members of each group, or an error code."""
    # `sorted` keeps the order of the request, and False comes before True.
    requested = sorted(request.groups, key=lambda it: _may_describe(context, it))
    found = [_described(context, group_id, version) for group_id in requested]
    if request.include_authorized_operations:
        for group in found:
            if not group.error_code:
                group.authorized_operations = authorized_operations(
                    context, ResourceType.GROUP, group.group_id
                )
    return DescribeGroupsResponse(groups=found)


def _may_describe(context: Context, group_id: str) -> bool:
    return allows(context, Operation.DESCRIBE, ResourceType.GROUP, group_id)


def _described(context: Context, group_id: str, version: int) -> DescribedGroup:
    try:
        check(context, Operation.DESCRIBE, ResourceType.GROUP, group_id)
        group = context.group_coordinator.find(context.node_id, group_id, context.now)
    except BrokerResponseError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code)
    if isinstance(group, ClassicGroup):
        return _described_group(group)
    missing = DescribedGroup(group_id=group_id, group_state=ClassicGroupState.DEAD)
    if version >= _FIRST_VERSION_OF_NOT_FOUND:
        what = "not found" if group is None else "not a classic group"
        absent = api_error("GROUP_ID_NOT_FOUND", f"Group {group_id} is {what}.")
        missing.error_code, missing.error_message = absent.code, absent.detail
    return missing


def _described_group(group: ClassicGroup) -> DescribedGroup:
    is_stable = group.state is ClassicGroupState.STABLE
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if is_stable else "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol) if is_stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )
