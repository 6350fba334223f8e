"""WriteShareGroupState (85), v0 to v1.

v0      changes the state of share partitions (KIP-932)
v1      the delivery complete count, from which the lag follows (KIP-1226)

`share_state_results` has the needed rights, and the requests that get an empty response.

Left out: nothing.
"""

from __future__ import annotations

from ...messages.write_share_group_state_request import (
    PartitionData,
    WriteShareGroupStateRequest,
)
from ...messages.write_share_group_state_response import (
    PartitionResult,
    WriteShareGroupStateResponse,
    WriteStateResult,
)
from ..context import Context
from ..registry import handles
from ..share import ShareCoordinator, SharePartitionKey, ShareStateWrite, unpacked_batches
from .share_state_results import share_state_results


@handles(WriteShareGroupStateRequest, versions=range(2))
def write_share_group_state(
    context: Context, request: WriteShareGroupStateRequest, version: int
) -> WriteShareGroupStateResponse:
    """Changes the states of share partitions, and returns an error code for each."""
    now = context.now

    def write(
        coordinator: ShareCoordinator,
        key: SharePartitionKey,
        requested: PartitionData,
        result: PartitionResult,
    ) -> None:
        change = ShareStateWrite(
            requested.state_epoch,
            requested.leader_epoch,
            requested.start_offset,
            requested.delivery_complete_count,
            unpacked_batches(requested.state_batches),
        )
        coordinator.write(key, change, now)

    results = share_state_results(context, request, WriteStateResult, PartitionResult, write)
    return WriteShareGroupStateResponse(results=results)
