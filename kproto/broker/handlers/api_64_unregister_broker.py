"""UnregisterBroker (64), v0 to v0.

v0      removes the registration of a broker (KIP-631)

An unknown node id gets BROKER_ID_NOT_REGISTERED. A node of the cluster stays registered: a live
node of Kafka registers again at once. The request requires ALTER on the cluster.

Left out: the removal of stopped nodes.
"""

from __future__ import annotations

from ...messages.unregister_broker_request import UnregisterBrokerRequest
from ...messages.unregister_broker_response import UnregisterBrokerResponse
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import check_cluster
from ..authorizer import Operation
from ..context import Context
from ..registry import handles


@handles(UnregisterBrokerRequest, versions=range(1))
def unregister_broker(
    context: Context, request: UnregisterBrokerRequest, version: int
) -> UnregisterBrokerResponse:
    """Returns an error code for an unknown node."""
    try:
        check_cluster(context, Operation.ALTER)
        if request.broker_id not in context.cluster.nodes:
            raise api_error(
                "BROKER_ID_NOT_REGISTERED",
                f"Broker ID {request.broker_id} is not currently registered",
            )
    except BrokerResponseError as error:
        return UnregisterBrokerResponse(error_code=error.code, error_message=error.detail)
    return UnregisterBrokerResponse(error_message=None)
