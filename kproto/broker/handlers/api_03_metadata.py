"""Metadata (3), v0 to v13.

v0      an empty list of topics asks for all
v1      null asks for all, an empty list for none; controller id, racks, internal topics
v2      cluster id (KIP-78)
v3      throttle time
v4      whether missing topics may be created (KIP-204)
v5      offline replicas (KIP-112)
v7      leader epoch (KIP-320)
v8-v10  authorized operations (KIP-430); those of the cluster left with v11 (KIP-700)
v9      flexible
v10     topic ids in the response (KIP-516)
v12     topics may be asked for by id
v13     an error code for the whole response (KIP-1102)

Left out: racks; who may do what: everybody may do everything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...messages.metadata_request import MetadataRequest, MetadataRequestTopic
from ...messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ...wire.errors import BrokerResponseError
from ...wire.uuid import ZERO_UUID
from ..context import Context
from ..refusal import refusal
from ..registry import handles
from ..storage.log import LEADER_EPOCH
from ..topics import Topic, check_topic_name

#: Bits of AclOperation: what may be done with a topic and with the cluster at all.
_TOPIC_OPERATIONS: Final = sum(1 << bit for bit in (3, 4, 5, 6, 7, 8, 10, 11))
_CLUSTER_OPERATIONS: Final = sum(1 << bit for bit in (5, 7, 8, 9, 10, 11, 12))
_NOT_ASKED: Final = -0x8000_0000

_FIRST_VERSION_ASKED_BY_ID: Final = 12


@handles(MetadataRequest, versions=range(14))
def metadata(context: Context, request: MetadataRequest, version: int) -> MetadataResponse:
    """Describe the brokers and the topics asked for."""
    cluster = context.cluster
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=each.node_id, host=each.host, port=each.port)
            for each in cluster.endpoints(context.endpoint.listener)
        ],
        cluster_id=cluster.cluster_id,
        controller_id=cluster.controller_id,
        topics=_topics(context, request, version),
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = _CLUSTER_OPERATIONS
    return response


def _topics(
    context: Context, request: MetadataRequest, version: int
) -> Iterable[MetadataResponseTopic]:
    operations = _TOPIC_OPERATIONS if request.include_topic_authorized_operations else _NOT_ASKED
    if request.topics is None or (version == 0 and not request.topics):
        return [_described(topic, operations) for topic in context.cluster.topics]
    return [_asked(context, request, wanted, version, operations) for wanted in request.topics]


def _asked(
    context: Context,
    request: MetadataRequest,
    wanted: MetadataRequestTopic,
    version: int,
    operations: int,
) -> MetadataResponseTopic:
    try:
        return _described(_find(context, request, wanted, version), operations)
    except BrokerResponseError as error:
        return MetadataResponseTopic(
            error_code=error.code,
            name=_name_of_unknown(wanted, version),
            topic_id=wanted.topic_id,
            topic_authorized_operations=operations,
        )


def _find(
    context: Context, request: MetadataRequest, wanted: MetadataRequestTopic, version: int
) -> Topic:
    topics = context.cluster.topics
    by_id = wanted.topic_id != ZERO_UUID
    if version < _FIRST_VERSION_ASKED_BY_ID and (by_id or wanted.name is None):
        raise refusal("INVALID_REQUEST", f"Metadata v{version} names topics by name alone")
    if by_id:
        return topics.with_id(wanted.topic_id)
    name = wanted.name or ""
    check_topic_name(name)
    try:
        return topics.named(name)
    except BrokerResponseError:
        if not (request.allow_auto_topic_creation and context.settings.auto_create_topics):
            raise
    topic = context.cluster.plan_topic(name)
    topics.add(topic)
    return topic


def _name_of_unknown(wanted: MetadataRequestTopic, version: int) -> str | None:
    """An unknown id has no name, which a response can say only since topics are found by id."""
    if version < _FIRST_VERSION_ASKED_BY_ID:
        return wanted.name or ""
    return wanted.name if wanted.topic_id == ZERO_UUID else None


def _described(topic: Topic, operations: int) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[
            MetadataResponsePartition(
                partition_index=index,
                leader_id=replicas[0],
                leader_epoch=LEADER_EPOCH,
                replica_nodes=list(replicas),
                isr_nodes=list(replicas),
            )
            for index, replicas in enumerate(topic.replicas)
        ],
        topic_authorized_operations=operations,
    )
