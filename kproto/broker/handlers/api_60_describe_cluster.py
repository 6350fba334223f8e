"""DescribeCluster (60), v0 to v2.

v0      brokers, controller and cluster id, which only Metadata returned before (KIP-700)
v1      endpoint type: brokers or controllers (KIP-919)
v2      fenced brokers (KIP-1073); this broker returns the stopped brokers as fenced

Left out: endpoints of controllers, which get MISMATCHED_ENDPOINT_TYPE, as from Kafka's brokers.
"""

from __future__ import annotations

from typing import Final

from ...messages.describe_cluster_request import DescribeClusterRequest
from ...messages.describe_cluster_response import DescribeClusterBroker, DescribeClusterResponse
from ...protocol.error_codes import code_of
from ..authorization import cluster_operations
from ..context import Context
from ..registry import handles

_BROKERS: Final = 1
_CONTROLLERS: Final = 2


@handles(DescribeClusterRequest, versions=range(3))
def describe_cluster(
    context: Context, request: DescribeClusterRequest, version: int
) -> DescribeClusterResponse:
    """Returns the brokers with their endpoints, the controller and the cluster id."""
    if request.endpoint_type != _BROKERS:
        return _refused(request.endpoint_type)
    cluster, listener = context.cluster, context.endpoint.listener
    response = DescribeClusterResponse(
        cluster_id=cluster.cluster_id,
        controller_id=cluster.controller_id,
        brokers=[
            DescribeClusterBroker(
                broker_id=each.node_id,
                host=each.host,
                port=each.port,
                rack=each.rack,
                is_fenced=not cluster.is_alive(each.node_id),
            )
            for each in cluster.endpoints(listener, stopped_too=request.include_fenced_brokers)
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(context)
    return response


def _refused(endpoint_type: int) -> DescribeClusterResponse:
    if endpoint_type == _CONTROLLERS:
        return DescribeClusterResponse(
            error_code=code_of("MISMATCHED_ENDPOINT_TYPE"),
            error_message="the request is for controllers, but this is a listener of a broker",
        )
    return DescribeClusterResponse(
        error_code=code_of("UNSUPPORTED_ENDPOINT_TYPE"),
        error_message=f"there are no endpoints of type {endpoint_type}",
    )
