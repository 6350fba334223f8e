"""InitializeShareGroupState (83), v0 to v0.

v0      creates the state of share partitions (KIP-932)

`share_state_results` has the needed rights, and the requests that get an empty response.

Left out: nothing.
"""

from __future__ import annotations

from ...messages.initialize_share_group_state_request import (
    InitializeShareGroupStateRequest,
    PartitionData,
)
from ...messages.initialize_share_group_state_response import (
    InitializeShareGroupStateResponse,
    InitializeStateResult,
    PartitionResult,
)
from ..context import Context
from ..registry import handles
from ..share import ShareCoordinator, SharePartitionKey
from .share_state_results import share_state_results


@handles(InitializeShareGroupStateRequest, versions=range(1))
def initialize_share_group_state(
    context: Context, request: InitializeShareGroupStateRequest, version: int
) -> InitializeShareGroupStateResponse:
    """Creates the states of share partitions, and returns an error code for each."""
    now = context.now

    def initialize(
        coordinator: ShareCoordinator,
        key: SharePartitionKey,
        requested: PartitionData,
        result: PartitionResult,
    ) -> None:
        coordinator.initialize(key, requested.state_epoch, requested.start_offset, now)

    results = share_state_results(
        context, request, InitializeStateResult, PartitionResult, initialize
    )
    return InitializeShareGroupStateResponse(results=results)
