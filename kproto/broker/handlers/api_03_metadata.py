"""Metadata (3), v0 to v13.

v0      an empty list of topics requests all topics
v1      null requests all topics, an empty list requests none; controller id, racks, internal topics
v2      cluster id (KIP-78)
v3      throttle time
v4      whether missing topics may be created
v5      offline replicas (KIP-112)
v7      leader epoch (KIP-320)
v8-v10  authorized operations (KIP-430); v11 removed the operations on the cluster (KIP-700)
v9      flexible
v10     topic ids in the response (KIP-516)
v12     requests may have topic ids
v13     an error code for the whole response (KIP-1102)

A response with all topics omits topics that the client may not describe. If the request names a
topic that the client may not describe, the error is TOPIC_AUTHORIZATION_FAILED, even if the topic
does not exist. A partition without a leader gets LEADER_NOT_AVAILABLE. v0 omits stopped replicas,
and a partition with a stopped replica gets REPLICA_NOT_AVAILABLE.

Left out: nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from ...messages.metadata_request import MetadataRequest, MetadataRequestTopic
from ...messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ...protocol.error_codes import code_of
from ...wire.errors import BrokerResponseError
from ...wire.uuid import ZERO_UUID
from ..api_error import api_error
from ..authorization import allows, allows_cluster, authorized_operations, check, cluster_operations
from ..authorizer import AUTHORIZATION_ERRORS, Operation, ResourceType
from ..context import Context
from ..leader_and_isr import NO_LEADER
from ..registry import handles
from ..storage.partition import Partition
from ..topics import Topic, check_topic_name

_OPERATIONS_OMITTED: Final = -0x8000_0000

_FIRST_VERSION_BY_ID: Final = 12


@handles(MetadataRequest, versions=range(14))
def metadata(context: Context, request: MetadataRequest, version: int) -> MetadataResponse:
    """Returns the brokers and the requested topics; creates missing topics if this is allowed."""
    cluster = context.cluster
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=each.node_id, host=each.host, port=each.port, rack=each.rack
            )
            for each in cluster.endpoints(context.endpoint.listener)
        ],
        cluster_id=cluster.cluster_id,
        controller_id=cluster.controller_id,
        topics=_topics(context, request, version),
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(context)
    return response


def _topics(
    context: Context, request: MetadataRequest, version: int
) -> Iterable[MetadataResponseTopic]:
    if request.topics is None or (version == 0 and not request.topics):
        return [
            _described(context, topic, version, _operations(context, request, topic.name))
            for topic in context.cluster.topics
            if allows(context, Operation.DESCRIBE, ResourceType.TOPIC, topic.name)
        ]
    return [_requested_topic(context, request, requested, version) for requested in request.topics]


def _operations(context: Context, request: MetadataRequest, name: str) -> int:
    if not request.include_topic_authorized_operations:
        return _OPERATIONS_OMITTED
    return authorized_operations(context, ResourceType.TOPIC, name)


def _requested_topic(
    context: Context,
    request: MetadataRequest,
    requested: MetadataRequestTopic,
    version: int,
) -> MetadataResponseTopic:
    try:
        topic = _find(context, request, requested, version)
        return _described(context, topic, version, _operations(context, request, topic.name))
    except BrokerResponseError as error:
        return MetadataResponseTopic(
            error_code=error.code,
            name=_name_of_unknown(requested, version),
            topic_id=requested.topic_id,
            topic_authorized_operations=_operations_of_failed(context, request, requested, error),
        )


def _operations_of_failed(
    context: Context,
    request: MetadataRequest,
    requested: MetadataRequestTopic,
    error: BrokerResponseError,
) -> int:
    """Returns the authorized operations of a topic with an error.

    The operations are omitted if the request does not ask for them, or if the request has only the
    id of the topic. As in Kafka, the operations are also omitted after an authorization error.
    """
    if error.name == AUTHORIZATION_ERRORS[ResourceType.TOPIC] or requested.name is None:
        return _OPERATIONS_OMITTED
    return _operations(context, request, requested.name)


def _find(
    context: Context, request: MetadataRequest, requested: MetadataRequestTopic, version: int
) -> Topic:
    topics = context.cluster.topics
    by_id = requested.topic_id != ZERO_UUID
    if version < _FIRST_VERSION_BY_ID and (by_id or requested.name is None):
        raise api_error("INVALID_REQUEST", f"Metadata v{version} names topics by name alone")
    if by_id:
        found = topics.with_id(requested.topic_id)
        check(context, Operation.DESCRIBE, ResourceType.TOPIC, found.name)
        return found
    name = requested.name or ""
    check(context, Operation.DESCRIBE, ResourceType.TOPIC, name)
    try:
        return topics.named(name)
    except BrokerResponseError:
        may_create = request.allow_auto_topic_creation and context.settings.auto_create_topics
        if may_create and not allows_cluster(context, Operation.CREATE):
            check(context, Operation.CREATE, ResourceType.TOPIC, name)
        check_topic_name(name)
        if not may_create:
            raise
    topic = context.cluster.plan_automatic_topic(name)
    topics.add(topic)
    return topic


def _name_of_unknown(requested: MetadataRequestTopic, version: int) -> str | None:
    """Returns the topic name for a response with an error.

    Returns None (null) if the request has the topic id, and the version allows a null name.
    """
    if version < _FIRST_VERSION_BY_ID:
        return requested.name or ""
    return requested.name if requested.topic_id == ZERO_UUID else None


def _described(
    context: Context, topic: Topic, version: int, operations: int
) -> MetadataResponseTopic:
    reachable = {each.node_id for each in context.cluster.endpoints(context.endpoint.listener)}
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[_partition(partition, reachable, version) for partition in topic.partitions],
        topic_authorized_operations=operations,
    )


def _partition(
    partition: Partition, reachable: Collection[int], version: int
) -> MetadataResponsePartition:
    """Returns the metadata of a partition.

    `reachable` are the ids of the live nodes that have the client's listener.
    """
    leader_and_isr = partition.leader_and_isr
    replicas, in_sync = leader_and_isr.replicas, leader_and_isr.in_sync
    offline = [node for node in replicas if node not in reachable]
    if version == 0 and offline:
        replicas = tuple(node for node in replicas if node in reachable)
        in_sync = tuple(node for node in in_sync if node in reachable)
    if leader_and_isr.leader not in reachable:
        error = "LEADER_NOT_AVAILABLE"
    elif (replicas, in_sync) != (leader_and_isr.replicas, leader_and_isr.in_sync):
        error = "REPLICA_NOT_AVAILABLE"
    else:
        error = "NONE"
    return MetadataResponsePartition(
        error_code=code_of(error),
        partition_index=partition.index,
        leader_id=leader_and_isr.leader if leader_and_isr.leader in reachable else NO_LEADER,
        leader_epoch=partition.log.epochs.current,
        replica_nodes=list(replicas),
        isr_nodes=list(in_sync),
        offline_replicas=offline,
    )
