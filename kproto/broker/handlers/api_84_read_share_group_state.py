"""ReadShareGroupState (84), v0 to v0.

v0      the state of share partitions, for the leaders of the partitions (KIP-932)

`share_state_results` has the needed rights, and the requests that get an empty response.

Left out: nothing.
"""

from __future__ import annotations

from ...messages.read_share_group_state_request import (
    PartitionData,
    ReadShareGroupStateRequest,
)
from ...messages.read_share_group_state_response import (
    PartitionResult,
    ReadShareGroupStateResponse,
    ReadStateResult,
    StateBatch,
)
from ..context import Context
from ..registry import handles
from ..share import ShareCoordinator, SharePartitionKey, structs_of_batches
from .share_state_results import share_state_results


@handles(ReadShareGroupStateRequest, versions=range(1))
def read_share_group_state(
    context: Context, request: ReadShareGroupStateRequest, version: int
) -> ReadShareGroupStateResponse:
    """Returns the states of share partitions, and stores the leader epochs."""
    now = context.now

    def read(
        coordinator: ShareCoordinator,
        key: SharePartitionKey,
        requested: PartitionData,
        result: PartitionResult,
    ) -> None:
        state = coordinator.read(key, requested.leader_epoch, now)
        result.state_epoch, result.start_offset = state.state_epoch, state.start_offset
        result.state_batches = structs_of_batches(StateBatch, state.batches)

    results = share_state_results(context, request, ReadStateResult, PartitionResult, read)
    return ReadShareGroupStateResponse(results=results)
