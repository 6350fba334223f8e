"""InitProducerId (22), v0 to v6.

v0      a producer id for an idempotent or transactional producer (KIP-98)
v2      flexible
v3      a producer that recovers from an error sends its current id and epoch (KIP-360)
v4      PRODUCER_FENCED; older versions get INVALID_PRODUCER_EPOCH in its place
v5      TRANSACTION_ABORTABLE (KIP-890)
v6      two-phase commit (KIP-939); unstable

A producer without a transactional id gets a new producer id with epoch 0, even if the request has
the producer's current id and epoch. A request with a producer id but no epoch, or the reverse, gets
INVALID_REQUEST.

A transactional id gets its producer id with a bumped epoch. The bumped epoch fences the former
producer. If a transaction is ongoing, it is aborted, and the response is CONCURRENT_TRANSACTIONS:
the client repeats the request.

A producer with two-phase commit gets TRANSACTIONAL_ID_AUTHORIZATION_FAILED unless the broker has
transaction.two.phase.commit.enable. With keepPreparedTxn the ongoing transaction is not aborted;
the response has the producer id and epoch of the transaction. Without
transaction.two.phase.commit.enable, keepPreparedTxn gets UNSUPPORTED_VERSION, as from each broker
of Kafka 4.4.0.

Left out: nothing.
"""

from __future__ import annotations

from typing import Final

from ...messages.init_producer_id_request import InitProducerIdRequest
from ...messages.init_producer_id_response import InitProducerIdResponse
from ...protocol.error_codes import code_of
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import allows_any, allows_cluster, check
from ..authorizer import AUTHORIZATION_ERRORS, Operation, ResourceType
from ..context import Context
from ..registry import handles
from ..transactions.transaction_coordinator import InitializedProducer
from ..transactions.transaction_decisions import ProducerIdAndEpoch
from ..transactions.transaction_errors import code_known_to

_NONE: Final = -1
_FIRST_VERSION_OF_FENCED: Final = 4


@handles(InitProducerIdRequest, versions=range(7))
def init_producer_id(
    context: Context, request: InitProducerIdRequest, version: int
) -> InitProducerIdResponse:
    """Returns the producer id and epoch of a producer, or an error code."""
    try:
        producer, ongoing = _producer(context, request)
    except BrokerResponseError as error:
        return InitProducerIdResponse(
            error_code=code_known_to(error, version, _FIRST_VERSION_OF_FENCED),
            producer_id=_NONE,
            producer_epoch=_NONE,
        )
    return InitProducerIdResponse(
        error_code=code_of("NONE"),
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        ongoing_txn_producer_id=ongoing.producer_id,
        ongoing_txn_producer_epoch=ongoing.epoch,
    )


def _producer(context: Context, request: InitProducerIdRequest) -> InitializedProducer:
    transactional_id = request.transactional_id
    _check_rights(context, request)
    if (request.producer_id == _NONE) != (request.producer_epoch == _NONE):
        raise api_error("INVALID_REQUEST", "the request has only one of producer id and epoch")
    if transactional_id is None:
        return InitializedProducer(ProducerIdAndEpoch(context.cluster.new_producer_id(), 0))
    if not transactional_id:
        raise api_error("INVALID_REQUEST", "the transactional id is empty")
    coordinator = context.transaction_coordinator
    if request.enable_2pc and not coordinator.allows_two_phases:
        raise api_error(
            AUTHORIZATION_ERRORS[ResourceType.TRANSACTIONAL_ID],
            "two-phase commit is not enabled on the broker",
        )
    if request.keep_prepared_txn and not coordinator.keeps_prepared:
        raise api_error("UNSUPPORTED_VERSION", "the broker cannot keep prepared transactions")
    coordinator.check_coordinator(context.node_id, transactional_id)
    current = None
    if request.producer_id != _NONE:
        current = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    return coordinator.init_producer_id(
        transactional_id,
        request.transaction_timeout_ms,
        current,
        context.now,
        has_two_phases=request.enable_2pc,
        keeps_prepared=request.keep_prepared_txn,
    )


def _check_rights(context: Context, request: InitProducerIdRequest) -> None:
    """Raises TRANSACTIONAL_ID_AUTHORIZATION_FAILED or CLUSTER_AUTHORIZATION_FAILED.

    Without a transactional id, IDEMPOTENT_WRITE on the cluster or WRITE on at least one topic is
    enough (KIP-679).
    """
    name = request.transactional_id
    if name is None:
        if not allows_cluster(context, Operation.IDEMPOTENT_WRITE) and not allows_any(
            context, Operation.WRITE, ResourceType.TOPIC
        ):
            raise api_error(
                AUTHORIZATION_ERRORS[ResourceType.CLUSTER], "the client may write to no topic"
            )
        return
    check(context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, name)
    if request.enable_2pc:
        check(context, Operation.TWO_PHASE_COMMIT, ResourceType.TRANSACTIONAL_ID, name)
