"""InitProducerId (22), v0 to v6.

v0      a producer id for an idempotent or transactional producer (KIP-98)
v2      flexible
v3      the request of a producer that recovers from an error has its id and epoch (KIP-360)
v4      PRODUCER_FENCED
v5      TRANSACTION_ABORTABLE (KIP-890)
v6      two-phase commit (KIP-939); unstable

A producer without a transactional id gets a new producer id with epoch 0, even if the request has
the producer's current id and epoch. A request with only one of the two gets INVALID_REQUEST.

Left out: transactions; a transactional id gets INVALID_REQUEST.
"""

from __future__ import annotations

from ...messages.init_producer_id_request import InitProducerIdRequest
from ...messages.init_producer_id_response import InitProducerIdResponse
from ...protocol.error_codes import code_of
from ..authorization import allows, allows_any, allows_cluster
from ..authorizer import AUTHORIZATION_ERRORS, Operation, ResourceType
from ..context import Context
from ..registry import handles

_NONE = -1


@handles(InitProducerIdRequest, versions=range(7))
def init_producer_id(
    context: Context, request: InitProducerIdRequest, version: int
) -> InitProducerIdResponse:
    """Returns a new producer id with epoch 0, or an error code."""
    denied = _missing_right(context, request)
    if denied is not None:
        return InitProducerIdResponse(
            error_code=code_of(AUTHORIZATION_ERRORS[denied]),
            producer_id=_NONE,
            producer_epoch=_NONE,
        )
    half_known = (request.producer_id == _NONE) != (request.producer_epoch == _NONE)
    if request.transactional_id is not None or half_known:
        return InitProducerIdResponse(
            error_code=code_of("INVALID_REQUEST"), producer_id=_NONE, producer_epoch=_NONE
        )
    return InitProducerIdResponse(producer_id=context.cluster.new_producer_id(), producer_epoch=0)


def _missing_right(context: Context, request: InitProducerIdRequest) -> ResourceType | None:
    """Returns the resource type on which an operation is denied; None if the request is allowed.

    Without a transactional id, IDEMPOTENT_WRITE on the cluster or WRITE on at least one topic is
    enough (KIP-679).
    """
    name = request.transactional_id
    if name is None:
        may = allows_cluster(context, Operation.IDEMPOTENT_WRITE) or allows_any(
            context, Operation.WRITE, ResourceType.TOPIC
        )
        return None if may else ResourceType.CLUSTER
    requested = [Operation.WRITE]
    if request.enable_2pc:
        requested.append(Operation.TWO_PHASE_COMMIT)
    may = all(
        allows(context, operation, ResourceType.TRANSACTIONAL_ID, name) for operation in requested
    )
    return None if may else ResourceType.TRANSACTIONAL_ID
