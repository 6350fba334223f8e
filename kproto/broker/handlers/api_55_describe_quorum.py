"""DescribeQuorum (55), v0 to v2.

v0      the leader and the voters of the controllers' log (KIP-595)
v1      the times of the last fetches (KIP-836)
v2      directory ids and the endpoints of the voters (KIP-853)

Every node is a voter, and the controller is the leader. All voters have the same log end offset,
which is the number of changes of topics and features. The request requires DESCRIBE on the cluster.

Left out: the log of the controllers; observers; voters that lag behind.
"""

from __future__ import annotations

from typing import Final

from ...messages.describe_quorum_request import DescribeQuorumRequest
from ...messages.describe_quorum_response import (
    DescribeQuorumResponse,
    Listener,
    ListenerCollection,
    Node,
    NodeCollection,
    PartitionData,
    ReplicaState,
    TopicData,
)
from ...protocol.error_codes import code_of
from ...wire.errors import BrokerResponseError
from ..authorization import check_cluster
from ..authorizer import Operation
from ..context import Context
from ..listeners import Endpoint
from ..registry import handles
from ..topics import METADATA_LOG

_CONTROLLER_LISTENER: Final = "CONTROLLER"
_FIRST_VERSION_OF_NODES: Final = 2


@handles(DescribeQuorumRequest, versions=range(3))
def describe_quorum(
    context: Context, request: DescribeQuorumRequest, version: int
) -> DescribeQuorumResponse:
    """Returns the state of the controllers' quorum.

    As in Kafka, a request for any other partition than `__cluster_metadata-0` gets
    UNKNOWN_TOPIC_OR_PARTITION for each of its partitions.
    """
    try:
        check_cluster(context, Operation.DESCRIBE)
    except BrokerResponseError as error:
        return DescribeQuorumResponse(error_code=error.code, error_message=error.detail)
    requested = [
        (topic.topic_name, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    ]
    if requested != [(METADATA_LOG, 0)]:
        return DescribeQuorumResponse(
            topics=[
                TopicData(
                    topic_name=topic.topic_name,
                    partitions=[
                        PartitionData(
                            partition_index=partition.partition_index,
                            error_code=code_of("UNKNOWN_TOPIC_OR_PARTITION"),
                            error_message="This server does not host this topic-partition.",
                        )
                        for partition in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )
    response = DescribeQuorumResponse(
        topics=[TopicData(topic_name=METADATA_LOG, partitions=[_quorum(context)])]
    )
    if version >= _FIRST_VERSION_OF_NODES:
        response.nodes = NodeCollection([_voter(it) for it in _endpoints(context)])
    return response


def _endpoints(context: Context) -> list[Endpoint]:
    return context.cluster.endpoints(context.endpoint.listener, stopped_too=True)


def _voter(endpoint: Endpoint) -> Node:
    listener = Listener(name=_CONTROLLER_LISTENER, host=endpoint.host, port=endpoint.port)
    return Node(node_id=endpoint.node_id, listeners=ListenerCollection([listener]))


def _quorum(context: Context) -> PartitionData:
    cluster, now_ms = context.cluster, context.clock.now_ms()
    offset = cluster.metadata_offset
    return PartitionData(
        leader_id=cluster.controller_id,
        leader_epoch=cluster.controller_epoch,
        high_watermark=offset,
        current_voters=[
            ReplicaState(
                replica_id=node,
                log_end_offset=offset,
                last_fetch_timestamp=now_ms,
                last_caught_up_timestamp=now_ms,
            )
            for node in cluster.nodes
        ],
    )
