"""ListTransactions (66), v0 to v2.

v0      the transactional ids of a coordinator, filtered by state and producer id (KIP-664)
v1      a filter by the duration of the transaction (KIP-994)
v2      a pattern of the transactional id (KIP-1152)

The response omits transactional ids that the client may not describe.

Left out: nothing.
"""

from __future__ import annotations

from typing import Final

from ...messages.list_transactions_request import ListTransactionsRequest
from ...messages.list_transactions_response import ListTransactionsResponse, TransactionState
from ...protocol.error_codes import code_of
from ..authorization import allows
from ..authorizer import Operation, ResourceType
from ..context import Context
from ..groups.consumer.re2 import InvalidExpressionError, Re2Pattern
from ..registry import handles
from ..transactions.transaction_metadata import TransactionMetadata
from ..transactions.transaction_state import state_names

_NO_DURATION: Final = -1


@handles(ListTransactionsRequest, versions=range(3))
def list_transactions(
    context: Context, request: ListTransactionsRequest, _version: int
) -> ListTransactionsResponse:
    """Returns the transactional ids of this coordinator that all filters accept."""
    known = state_names()
    unknown = [name for name in request.state_filters if name not in known]
    states = {known[name] for name in request.state_filters if name in known}
    try:
        pattern = Re2Pattern(request.transactional_id_pattern or "")
    except InvalidExpressionError:
        return ListTransactionsResponse(error_code=code_of("INVALID_REGULAR_EXPRESSION"))
    now = context.now

    def is_listed(metadata: TransactionMetadata) -> bool:
        duration = now.timestamp_ms - metadata.start_ms
        return (
            (not request.state_filters or metadata.state in states)
            and (
                not request.producer_id_filters
                or metadata.producer_id in request.producer_id_filters
            )
            and (request.duration_filter == _NO_DURATION or duration > request.duration_filter)
            and (not request.transactional_id_pattern or pattern.matches(metadata.transactional_id))
            and allows(
                context,
                Operation.DESCRIBE,
                ResourceType.TRANSACTIONAL_ID,
                metadata.transactional_id,
            )
        )

    return ListTransactionsResponse(
        unknown_state_filters=unknown,
        transaction_states=[
            TransactionState(
                transactional_id=metadata.transactional_id,
                producer_id=metadata.producer_id,
                transaction_state=metadata.state.label,
            )
            for metadata in context.transaction_coordinator.ids_of(context.node_id, now)
            if is_listed(metadata)
        ],
    )
