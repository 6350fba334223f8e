"""Describes the cluster, and unregisters brokers: requests and results as plain data.

DescribeCluster (60, KIP-700), Metadata (3), UnregisterBroker (64) and UnregisterController (94).
"""

from __future__ import annotations

from typing import NamedTuple

from ...messages.describe_cluster_request import DescribeClusterRequest
from ...messages.describe_cluster_response import DescribeClusterResponse
from ...messages.metadata_request import MetadataRequest
from ...messages.metadata_response import MetadataResponse
from ...messages.unregister_broker_response import UnregisterBrokerResponse
from ...messages.unregister_controller_response import UnregisterControllerResponse
from ...wire.errors import KprotoError
from .acl_types import AclOperation, authorized_operations
from .calls import error_in, outcome

__all__ = [
    "BrokerDescription",
    "ClusterDescription",
    "cluster_of_metadata",
    "describe_cluster_request",
    "described_cluster",
    "metadata_request",
    "unregistered",
]

_ACTION = "describing the cluster"


class BrokerDescription(NamedTuple):
    """A broker of the cluster. A fenced broker is registered, but does not answer clients."""

    node: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool = False


class ClusterDescription(NamedTuple):
    """The cluster with its brokers by node id.

    `controller` is the node id of the broker to which requests for the controller are sent, None if
    there is none. `authorized_operations` is None unless it was requested (KIP-430).
    """

    cluster_id: str
    controller: int | None
    brokers: dict[int, BrokerDescription]
    authorized_operations: frozenset[AclOperation] | None


def describe_cluster_request(*, operations: bool, fenced: bool) -> DescribeClusterRequest:
    """Returns the request that describes the cluster; `fenced` needs Kafka 4.0 (KIP-1073)."""
    return DescribeClusterRequest(
        include_cluster_authorized_operations=operations, include_fenced_brokers=fenced
    )


def described_cluster(response: DescribeClusterResponse) -> ClusterDescription | KprotoError:
    """Returns the cluster of a response, or its error."""
    found = ClusterDescription(
        response.cluster_id,
        response.controller_id if response.controller_id >= 0 else None,
        {
            each.broker_id: BrokerDescription(
                each.broker_id, each.host, each.port, each.rack, each.is_fenced
            )
            for each in response.brokers
        },
        authorized_operations(response.cluster_authorized_operations),
    )
    return outcome(response.error_code, _ACTION, response.error_message, found)


def metadata_request(*, operations: bool) -> MetadataRequest:
    """Returns the request that describes the cluster at brokers before Kafka 2.8."""
    return MetadataRequest(
        topics=[], allow_auto_topic_creation=True, include_cluster_authorized_operations=operations
    )


def cluster_of_metadata(response: MetadataResponse) -> ClusterDescription | KprotoError:
    """Returns the cluster of a Metadata response."""
    found = ClusterDescription(
        response.cluster_id or "",
        response.controller_id if response.controller_id >= 0 else None,
        {
            each.node_id: BrokerDescription(each.node_id, each.host, each.port, each.rack)
            for each in response.brokers
        },
        authorized_operations(response.cluster_authorized_operations),
    )
    return outcome(response.error_code, _ACTION, None, found)


def unregistered(
    response: UnregisterBrokerResponse | UnregisterControllerResponse, what: str
) -> KprotoError | None:
    """Returns the error of a response that unregisters a node; `what` is "broker 3"."""
    return error_in(response.error_code, f"unregistering {what}", response.error_message)
