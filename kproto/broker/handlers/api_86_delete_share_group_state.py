"""DeleteShareGroupState (86), v0 to v0.

v0      deletes the state of share partitions (KIP-932)

`share_state_results` has the needed rights, and the requests that get an empty response.

Left out: nothing.
"""

from __future__ import annotations

from ...messages.delete_share_group_state_request import (
    DeleteShareGroupStateRequest,
    PartitionData,
)
from ...messages.delete_share_group_state_response import (
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    PartitionResult,
)
from ..context import Context
from ..registry import handles
from ..share import ShareCoordinator, SharePartitionKey
from .share_state_results import share_state_results


@handles(DeleteShareGroupStateRequest, versions=range(1))
def delete_share_group_state(
    context: Context, request: DeleteShareGroupStateRequest, version: int
) -> DeleteShareGroupStateResponse:
    """Deletes the states of share partitions, and returns an error code for each."""
    now = context.now

    def delete(
        coordinator: ShareCoordinator,
        key: SharePartitionKey,
        requested: PartitionData,
        result: PartitionResult,
    ) -> None:
        coordinator.delete(key, now)

    results = share_state_results(context, request, DeleteStateResult, PartitionResult, delete)
    return DeleteShareGroupStateResponse(results=results)
