"""DescribeTransactions (65), v0 to v0.

v0      the state of transactional ids (KIP-664)

The response omits topics that the client may not describe.

Left out: nothing.
"""

from __future__ import annotations

from ...messages.describe_transactions_request import DescribeTransactionsRequest
from ...messages.describe_transactions_response import (
    DescribeTransactionsResponse,
    TopicData,
    TopicDataCollection,
    TransactionState,
)
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import allows, check
from ..authorizer import Operation, ResourceType
from ..context import Context
from ..registry import handles


@handles(DescribeTransactionsRequest, versions=range(1))
def describe_transactions(
    context: Context, request: DescribeTransactionsRequest, _version: int
) -> DescribeTransactionsResponse:
    """Returns the state of each transactional id that the node coordinates."""
    return DescribeTransactionsResponse(
        transaction_states=[_described(context, each) for each in request.transactional_ids]
    )


def _described(context: Context, transactional_id: str) -> TransactionState:
    try:
        check(context, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        if not transactional_id:
            raise api_error("INVALID_REQUEST", "the transactional id is empty")
        coordinator = context.transaction_coordinator
        coordinator.check_coordinator(context.node_id, transactional_id)
        metadata = coordinator.find(transactional_id, context.now)
        if metadata is None:
            raise api_error(
                "TRANSACTIONAL_ID_NOT_FOUND", f"there is no transactional id {transactional_id!r}"
            )
    except BrokerResponseError as error:
        return TransactionState(transactional_id=transactional_id, error_code=error.code)
    by_topic: dict[str, list[int]] = {}
    for tp in sorted(metadata.partitions):
        if allows(context, Operation.DESCRIBE, ResourceType.TOPIC, tp.topic):
            by_topic.setdefault(tp.topic, []).append(tp.partition)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=metadata.state.label,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_start_time_ms=metadata.start_ms,
        producer_id=metadata.producer_id,
        producer_epoch=metadata.epoch,
        topics=TopicDataCollection(
            TopicData(topic=topic, partitions=partitions) for topic, partitions in by_topic.items()
        ),
    )
