"""AddOffsetsToTxn (25), v0 to v4.

v0      adds the partition of a group in `__consumer_offsets` to a transaction (KIP-98)
v2      PRODUCER_FENCED; older versions get INVALID_PRODUCER_EPOCH in its place
v3      flexible
v4      TRANSACTION_ABORTABLE (KIP-890)

Left out: nothing.
"""

from __future__ import annotations

from typing import Final

from ...messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from ...messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import check
from ..authorizer import Operation, ResourceType
from ..context import Context
from ..coordinators import CoordinatorType
from ..groups.committed_offsets import TopicPartition
from ..groups.group_coordinator import OFFSETS_TOPIC
from ..registry import handles
from ..transactions.transaction_decisions import ProducerIdAndEpoch
from ..transactions.transaction_errors import code_known_to

_FIRST_VERSION_OF_FENCED: Final = 2


@handles(AddOffsetsToTxnRequest, versions=range(5))
def add_offsets_to_txn(
    context: Context, request: AddOffsetsToTxnRequest, version: int
) -> AddOffsetsToTxnResponse:
    """Adds the group's partition of `__consumer_offsets` to the producer's transaction."""
    try:
        _add(context, request)
    except BrokerResponseError as error:
        return AddOffsetsToTxnResponse(
            error_code=code_known_to(error, version, _FIRST_VERSION_OF_FENCED)
        )
    return AddOffsetsToTxnResponse()


def _add(context: Context, request: AddOffsetsToTxnRequest) -> None:
    transactional_id, group_id = request.transactional_id, request.group_id
    check(context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
    check(context, Operation.READ, ResourceType.GROUP, group_id)
    if not transactional_id:
        raise api_error("INVALID_REQUEST", "the transactional id is empty")
    coordinator = context.transaction_coordinator
    coordinator.check_coordinator(context.node_id, transactional_id)
    context.cluster.coordinator(CoordinatorType.GROUP, group_id)  # creates the topic
    partition = context.group_coordinator.partition(group_id)
    assert partition is not None
    coordinator.add_partitions(
        transactional_id,
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
        frozenset({TopicPartition(OFFSETS_TOPIC, partition.index)}),
        context.now,
        0,
    )
