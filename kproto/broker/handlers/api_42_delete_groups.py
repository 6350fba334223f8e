"""DeleteGroups (42), v0 to v3.

v0      deletes empty groups with their offsets (KIP-229)
v1      throttle time
v2      flexible
v3      error message (KIP-1043)

The states of the share partitions of a share group are deleted, too. A group that is named twice
is deleted once. In the response, groups that the client may not delete come last.

Left out: nothing.
"""

from __future__ import annotations

from ...messages.delete_groups_request import DeleteGroupsRequest
from ...messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import allows, check
from ..authorizer import Operation, ResourceType
from ..context import Context
from ..groups import ShareGroup
from ..registry import handles
from .api_92_delete_share_group_offsets import delete_states


@handles(DeleteGroupsRequest, versions=range(4))
def delete_groups(
    context: Context, request: DeleteGroupsRequest, version: int
) -> DeleteGroupsResponse:
    """Deletes groups with their offsets, and returns an error code for each."""
    # `sorted` keeps the order of the request, and False comes before True.
    requested = sorted(dict.fromkeys(request.groups_names), key=lambda it: not _may(context, it))
    return DeleteGroupsResponse(results=[_deleted(context, group_id) for group_id in requested])


def _may(context: Context, group_id: str) -> bool:
    return allows(context, Operation.DELETE, ResourceType.GROUP, group_id)


def _deleted(context: Context, group_id: str) -> DeletableGroupResult:
    try:
        check(context, Operation.DELETE, ResourceType.GROUP, group_id)
        _delete(context, group_id)
    except BrokerResponseError as error:
        return DeletableGroupResult(group_id=group_id, error_code=error.code)
    return DeletableGroupResult(group_id=group_id)


def _delete(context: Context, group_id: str) -> None:
    now = context.now
    group = context.group_coordinator.find(context.node_id, group_id, context.now)
    if group is None:
        raise api_error("GROUP_ID_NOT_FOUND", f"there is no group {group_id!r}")
    group.check_deletable(now)
    if isinstance(group, ShareGroup):
        known = group.partitions_with_state()
        if known:
            for error in delete_states(context, group, known).values():
                raise error
    context.group_coordinator.delete(group, now)
