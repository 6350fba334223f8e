"""EndTxn (26), v0 to v5.

v0      commits or aborts the transaction of a producer (KIP-98)
v2      PRODUCER_FENCED; older versions get INVALID_PRODUCER_EPOCH in its place
v3      flexible
v4      TRANSACTION_ABORTABLE (KIP-890)
v5      the response has the bumped epoch for the next transaction (KIP-890)

Kafka responds before it writes the markers; this broker writes the markers before it responds.

Left out: nothing.
"""

from __future__ import annotations

from typing import Final

from ...messages.end_txn_request import EndTxnRequest
from ...messages.end_txn_response import EndTxnResponse
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import check
from ..authorizer import Operation, ResourceType
from ..context import Context
from ..registry import handles
from ..transactions.transaction_decisions import ProducerIdAndEpoch
from ..transactions.transaction_errors import code_known_to

_FIRST_VERSION_OF_FENCED: Final = 2
_FIRST_VERSION_OF_EPOCH_BUMP: Final = 5


@handles(EndTxnRequest, versions=range(6))
def end_txn(context: Context, request: EndTxnRequest, version: int) -> EndTxnResponse:
    """Commits or aborts the producer's transaction.

    Since v5 the response has the producer id and epoch of the next transaction.
    """
    transactional_id = request.transactional_id
    bumps = version >= _FIRST_VERSION_OF_EPOCH_BUMP
    try:
        check(context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        if not transactional_id:
            raise api_error("INVALID_REQUEST", "the transactional id is empty")
        coordinator = context.transaction_coordinator
        coordinator.check_coordinator(context.node_id, transactional_id)
        producer = coordinator.end_transaction(
            transactional_id,
            ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
            context.now,
            is_commit=request.committed,
            client_version=2 if bumps else 0,
        )
    except BrokerResponseError as error:
        return EndTxnResponse(error_code=code_known_to(error, version, _FIRST_VERSION_OF_FENCED))
    if not bumps:
        return EndTxnResponse()
    return EndTxnResponse(producer_id=producer.producer_id, producer_epoch=producer.epoch)
