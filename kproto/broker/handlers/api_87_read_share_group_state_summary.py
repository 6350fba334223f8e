"""ReadShareGroupStateSummary (87), v0 to v1.

v0      the epochs and start offset of share partitions (KIP-932)
v1      the delivery complete count (KIP-1226)

`share_state_results` has the needed rights, and the requests that get an empty response.

Left out: nothing.
"""

from __future__ import annotations

from ...messages.read_share_group_state_summary_request import (
    PartitionData,
    ReadShareGroupStateSummaryRequest,
)
from ...messages.read_share_group_state_summary_response import (
    PartitionResult,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
)
from ..context import Context
from ..registry import handles
from ..share import ShareCoordinator, SharePartitionKey
from .share_state_results import share_state_results


@handles(ReadShareGroupStateSummaryRequest, versions=range(2))
def read_share_group_state_summary(
    context: Context, request: ReadShareGroupStateSummaryRequest, version: int
) -> ReadShareGroupStateSummaryResponse:
    """Returns epochs and start offset of share partitions."""

    def summarize(
        coordinator: ShareCoordinator,
        key: SharePartitionKey,
        requested: PartitionData,
        result: PartitionResult,
    ) -> None:
        state = coordinator.summary(key)
        result.state_epoch, result.leader_epoch = state.state_epoch, state.leader_epoch
        result.start_offset = state.start_offset
        result.delivery_complete_count = state.complete_count

    results = share_state_results(
        context, request, ReadStateSummaryResult, PartitionResult, summarize
    )
    return ReadShareGroupStateSummaryResponse(results=results)
