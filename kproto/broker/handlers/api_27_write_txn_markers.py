"""WriteTxnMarkers (27), v0 to v2.

v0      commit and abort markers from a transaction coordinator (KIP-98)
v1      flexible
v2      the transaction version, by which the epoch of a marker is checked (KIP-1228)

The client needs CLUSTER_ACTION, or ALTER on the cluster (KIP-664: an admin client aborts a hanging
transaction). This broker's own coordinator writes markers without this request.

Left out: nothing.
"""

from __future__ import annotations

from ...messages.write_txn_markers_request import WritableTxnMarker, WriteTxnMarkersRequest
from ...messages.write_txn_markers_response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from ...protocol.error_codes import code_of
from ...stored.transaction_markers import TxnMarker
from ...wire.errors import BrokerResponseError
from ..authorization import allows_cluster
from ..authorizer import AUTHORIZATION_ERRORS, Operation, ResourceType
from ..context import Context
from ..registry import handles


@handles(WriteTxnMarkersRequest, versions=range(3))
def write_txn_markers(
    context: Context, request: WriteTxnMarkersRequest, _version: int
) -> WriteTxnMarkersResponse:
    """Appends each marker to its partitions, and returns an error code for each partition."""
    may = allows_cluster(context, Operation.CLUSTER_ACTION) or allows_cluster(
        context, Operation.ALTER
    )
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(
                                partition_index=index,
                                error_code=_write(context, marker, topic.name, index)
                                if may
                                else code_of(AUTHORIZATION_ERRORS[ResourceType.CLUSTER]),
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


def _write(context: Context, marker: WritableTxnMarker, topic: str, index: int) -> int:
    """Appends a marker to one partition; returns the error code."""
    try:
        found = context.cluster.topics.named(topic)
        found.check_leader(index, context.node_id)
        context.cluster.write_txn_marker(
            found,
            index,
            TxnMarker(
                marker.producer_id,
                marker.producer_epoch,
                marker.transaction_result,
                marker.coordinator_epoch,
                marker.transaction_version,
            ),
            context.now,
        )
    except BrokerResponseError as error:
        return error.code
    return code_of("NONE")
