"""ListConfigResources (74), v0 to v1.

v0      the client metrics subscriptions that have configs (KIP-714, ListClientMetricsResources)
v1      resources of other types, such as topics and brokers (KIP-1142)

The response has all topics and brokers, even without configs of their own, and the groups and
client metrics subscriptions with configs. A request without types gets the resources of all types.
The request requires DESCRIBE_CONFIGS on the cluster.

Left out: nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from ...messages.list_config_resources_request import ListConfigResourcesRequest
from ...messages.list_config_resources_response import (
    ConfigResource,
    ListConfigResourcesResponse,
)
from ...protocol.config_types import ConfigResourceType
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import check_cluster
from ..authorizer import Operation
from ..cluster_state import ClusterState
from ..context import Context
from ..registry import handles

#: The names of the resources of each type, in the order of the response.
_NAMES: Final[Mapping[int, Callable[[ClusterState], list[str]]]] = MappingProxyType(
    {
        ConfigResourceType.GROUP: lambda cluster: cluster.group_configs.groups,
        ConfigResourceType.CLIENT_METRICS: lambda cluster: cluster.client_metrics_configs.names,
        ConfigResourceType.BROKER_LOGGER: lambda cluster: [str(node) for node in cluster.alive],
        ConfigResourceType.BROKER: lambda cluster: [str(node) for node in cluster.alive],
        ConfigResourceType.TOPIC: lambda cluster: sorted(topic.name for topic in cluster.topics),
    }
)


@handles(ListConfigResourcesRequest, versions=range(2))
def list_config_resources(
    context: Context, request: ListConfigResourcesRequest, version: int
) -> ListConfigResourcesResponse:
    """Returns the resources of the requested types."""
    requested = set(request.resource_types) or set(_NAMES)
    if version == 0:
        requested = {ConfigResourceType.CLIENT_METRICS}
    try:
        check_cluster(context, Operation.DESCRIBE_CONFIGS)
        if not requested <= set(_NAMES):
            raise api_error(
                "UNSUPPORTED_VERSION", f"there are resources of types {[*map(int, _NAMES)]}"
            )
    except BrokerResponseError as error:
        return ListConfigResourcesResponse(error_code=error.code)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=int(kind))
            for kind, names in _NAMES.items()
            if kind in requested
            for name in names(context.cluster)
        ]
    )
