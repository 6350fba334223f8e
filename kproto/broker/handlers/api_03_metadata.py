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

Left out: racks; more than one broker; who may do what: everybody may do everything.
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
from ..log import LEADER_EPOCH
from ..refusal import refusal
from ..registry import handles
from ..state import BrokerState
from ..topics import Topic, check_topic_name

#: Bits of AclOperation: what may be done with a topic and with the cluster at all.
_TOPIC_OPERATIONS: Final = sum(1 << bit for bit in (3, 4, 5, 6, 7, 8, 10, 11))
_CLUSTER_OPERATIONS: Final = sum(1 << bit for bit in (5, 7, 8, 9, 10, 11, 12))
_NOT_ASKED: Final = -0x8000_0000

_FIRST_VERSION_ASKED_BY_ID: Final = 12


@handles(MetadataRequest, versions=range(14))
def metadata(state: BrokerState, request: MetadataRequest, version: int) -> MetadataResponse:
    """Describe this broker and the topics asked for."""
    response = MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=state.node_id, host=state.host, port=state.port)],
        cluster_id=state.cluster_id,
        controller_id=state.node_id,
        topics=_topics(state, request, version),
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = _CLUSTER_OPERATIONS
    return response


def _topics(
    state: BrokerState, request: MetadataRequest, version: int
) -> Iterable[MetadataResponseTopic]:
    operations = _TOPIC_OPERATIONS if request.include_topic_authorized_operations else _NOT_ASKED
    if request.topics is None or (version == 0 and not request.topics):
        return [_described(state, topic, operations) for topic in state.topics]
    return [_asked(state, request, wanted, version, operations) for wanted in request.topics]


def _asked(
    state: BrokerState,
    request: MetadataRequest,
    wanted: MetadataRequestTopic,
    version: int,
    operations: int,
) -> MetadataResponseTopic:
    try:
        return _described(state, _find(state, request, wanted, version), operations)
    except BrokerResponseError as error:
        return MetadataResponseTopic(
            error_code=error.code,
            name=_name_of_unknown(wanted, version),
            topic_id=wanted.topic_id,
            topic_authorized_operations=operations,
        )


def _find(
    state: BrokerState, request: MetadataRequest, wanted: MetadataRequestTopic, version: int
) -> Topic:
    by_id = wanted.topic_id != ZERO_UUID
    if version < _FIRST_VERSION_ASKED_BY_ID and (by_id or wanted.name is None):
        raise refusal("INVALID_REQUEST", f"Metadata v{version} names topics by name alone")
    if by_id:
        return state.topics.with_id(wanted.topic_id)
    name = wanted.name or ""
    check_topic_name(name)
    try:
        return state.topics.named(name)
    except BrokerResponseError:
        if not (request.allow_auto_topic_creation and state.settings.auto_create_topics):
            raise
    topic = state.plan_topic(name)
    state.topics.add(topic)
    return topic


def _name_of_unknown(wanted: MetadataRequestTopic, version: int) -> str | None:
    """An unknown id has no name, which a response can say only since topics are found by id."""
    if version < _FIRST_VERSION_ASKED_BY_ID:
        return wanted.name or ""
    return wanted.name if wanted.topic_id == ZERO_UUID else None


def _described(state: BrokerState, topic: Topic, operations: int) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[
            MetadataResponsePartition(
                partition_index=partition.index,
                leader_id=state.node_id,
                leader_epoch=LEADER_EPOCH,
                replica_nodes=[state.node_id],
                isr_nodes=[state.node_id],
            )
            for partition in topic.partitions
        ],
        topic_authorized_operations=operations,
    )
