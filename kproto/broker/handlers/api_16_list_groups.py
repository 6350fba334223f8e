"""ListGroups (16), v0 to v5.

v0      the groups that the node coordinates
v1      throttle time
v3      flexible
v4      the state of each group, and a filter of states (KIP-518)
v5      the type of each group, and a filter of types (KIP-848)

Names of states and types are case-insensitive. A client that may describe the cluster gets all
groups. Any other client gets the groups that it may describe.

Left out: streams groups.
"""

from __future__ import annotations

from ...messages.list_groups_request import ListGroupsRequest
from ...messages.list_groups_response import ListedGroup, ListGroupsResponse
from ..authorization import allows, allows_cluster
from ..authorizer import Operation, ResourceType
from ..context import Context
from ..registry import handles


@handles(ListGroupsRequest, versions=range(6))
def list_groups(context: Context, request: ListGroupsRequest, version: int) -> ListGroupsResponse:
    """Returns the groups that this node coordinates and that the client may describe."""
    states = {state.strip().lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    node_id = context.node_id
    sees_all = allows_cluster(context, Operation.DESCRIBE)
    return ListGroupsResponse(
        groups=[
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type or "",
                group_state=group.state,
                group_type=group.type,
            )
            for group in context.group_coordinator.groups_of(node_id, context.now)
            if (not states or group.state.lower() in states)
            and (not types or group.type in types)
            and (
                sees_all or allows(context, Operation.DESCRIBE, ResourceType.GROUP, group.group_id)
            )
        ]
    )
