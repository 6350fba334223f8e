"""FindCoordinator (10), v0 to v6.

v0      the coordinator of a group
v1      key types: also transactional ids (KIP-98); error message, throttle time
v3      flexible
v4      many keys in one request (KIP-699)
v5      TRANSACTION_ABORTABLE (KIP-890)
v6      share partitions as keys, `group:topicId:partition` (KIP-932)

A key hashes to a partition of __consumer_offsets, __transaction_state or __share_group_state, and
the leader of that partition is the coordinator of the key. If there is no leader, the error is
COORDINATOR_NOT_AVAILABLE.

The first lookup of a group creates __consumer_offsets. The first lookup of a transactional id
creates __transaction_state, and that of a share partition __share_group_state.

Left out: COORDINATOR_NOT_AVAILABLE at the first lookup, which Kafka returns while it creates the
topic.
"""

from __future__ import annotations

from typing import Final

from ...messages.find_coordinator_request import FindCoordinatorRequest
from ...messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import check, check_cluster
from ..authorizer import Operation, ResourceType
from ..context import Context
from ..coordinators import CoordinatorType, check_share_key
from ..listeners import Endpoint
from ..registry import handles

_FIRST_VERSION_OF_MANY: Final = 4
_FIRST_VERSION_OF_SHARES: Final = 6
#: The error message of a successful response in v1 to v3; later versions have no message.
_NO_ERROR: Final = "NONE"


@handles(FindCoordinatorRequest, versions=range(7))
def find_coordinator(
    context: Context, request: FindCoordinatorRequest, version: int
) -> FindCoordinatorResponse:
    """Returns the coordinator of each key."""
    many = version >= _FIRST_VERSION_OF_MANY
    keys = request.coordinator_keys if many else [request.key]
    found = [_found(context, request.key_type, key, version) for key in keys]
    if many:
        return FindCoordinatorResponse(coordinators=found)
    (only,) = found
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message or _NO_ERROR,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


def _found(context: Context, key_type: int, key: str, version: int) -> Coordinator:
    try:
        endpoint = _coordinator(context, key_type, key, version)
    except BrokerResponseError as error:
        return Coordinator(
            key=key, error_code=error.code, error_message=error.detail, node_id=-1, port=-1
        )
    return Coordinator(key=key, node_id=endpoint.node_id, host=endpoint.host, port=endpoint.port)


def _coordinator(context: Context, key_type: int, key: str, version: int) -> Endpoint:
    if key_type == CoordinatorType.GROUP:
        check(context, Operation.DESCRIBE, ResourceType.GROUP, key)
    elif key_type == CoordinatorType.TRANSACTION:
        check(context, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key)
    elif key_type == CoordinatorType.SHARE and version >= _FIRST_VERSION_OF_SHARES:
        check_cluster(context, Operation.CLUSTER_ACTION)
        check_share_key(key)
    else:
        raise api_error("INVALID_REQUEST", f"FindCoordinator v{version} has no key type {key_type}")
    node = context.cluster.coordinator(CoordinatorType(key_type), key)
    endpoint = context.cluster.endpoint_of(node, context.endpoint.listener)
    if endpoint is None:
        raise api_error("COORDINATOR_NOT_AVAILABLE", "the partition of the key has no leader")
    return endpoint
