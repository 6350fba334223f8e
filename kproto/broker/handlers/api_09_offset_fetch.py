"""OffsetFetch (9), v0 to v10.

v0      Kafka read offsets for v0 from ZooKeeper; this broker reads them as for v1
v1      offsets are read from the coordinator
v2      null requests all topics (KIP-88); an error code for the group
v3      throttle time
v5      leader epoch (KIP-320)
v6      flexible
v7      `require_stable`: no offsets that an open transaction can still change (KIP-447)
v8      many groups in one request (KIP-709)
v9      member id and epoch (KIP-848)
v10     topics by id (KIP-848, KIP-1191)

The offset of a partition without a commit is -1, also if the group, topic or partition does not
exist; since v10, an unknown topic id gets UNKNOWN_TOPIC_ID. Before v2, an error of the group is
returned for each partition. The response to a request for all topics omits topics that the client
may not describe, and since v10 deleted topics, which have no topic id.

In a group of the consumer protocol, the member epoch in a request must be the member's current
epoch; the errors are STALE_MEMBER_EPOCH (ILLEGAL_GENERATION for a member of the classic protocol)
and UNKNOWN_MEMBER_ID. A request with neither member id nor epoch is not checked. As in Kafka,
classic groups do not check the epoch.

With `require_stable`, a partition with an offset of an open transaction gets
UNSTABLE_OFFSET_COMMIT.

Left out: nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeVar

from ...messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from ...messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from ...protocol.error_codes import code_of
from ...wire.errors import BrokerResponseError
from ...wire.uuid import ZERO_UUID, Uuid
from ..authorization import allows, check, check_topic_of_id
from ..authorizer import Operation, ResourceType
from ..context import Context
from ..groups import ConsumerGroup, OffsetsGroup, ShareGroup
from ..groups.committed_offsets import CommittedOffset
from ..groups.consumer.offset_checks import validate_offset_fetch
from ..registry import handles

#: A partition of a response: before v8, and since v8.
P = TypeVar("P", OffsetFetchResponsePartition, OffsetFetchResponsePartitions)

_FIRST_VERSION_WITH_GROUP_ERROR: Final = 2
_FIRST_VERSION_OF_MANY: Final = 8
_FIRST_VERSION_BY_ID: Final = 10
_NONE: Final = code_of("NONE")
_UNSTABLE: Final = code_of("UNSTABLE_OFFSET_COMMIT")

#: The values of a partition without a committed offset.
_NO_OFFSET: Final = CommittedOffset(-1)


class _RequestedTopic(NamedTuple):
    """Holds a requested topic, with its name or topic id, and the requested partitions."""

    name: str
    topic_id: Uuid
    partitions: Sequence[int]


class _TopicResult(NamedTuple):
    """Holds the result of a topic: for each partition its index, error code and offset."""

    name: str
    topic_id: Uuid
    partitions: list[tuple[int, int, CommittedOffset]]


@handles(OffsetFetchRequest, versions=range(11))
def offset_fetch(
    context: Context, request: OffsetFetchRequest, version: int
) -> OffsetFetchResponse:
    """Returns the committed offsets of each group."""
    if request.require_stable:
        context.transaction_coordinator.advance(context.now)
    if version >= _FIRST_VERSION_OF_MANY:
        return OffsetFetchResponse(
            groups=[
                _group(context, each, version, require_stable=request.require_stable)
                for each in request.groups
            ]
        )
    topics = None
    if request.topics is not None:
        topics = [
            _RequestedTopic(each.name, ZERO_UUID, each.partition_indexes) for each in request.topics
        ]
    requested = OffsetFetchRequestGroup(group_id=request.group_id)
    code, found = _fetch_group(
        context, requested, topics, version, require_stable=request.require_stable
    )
    return OffsetFetchResponse(
        error_code=code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name, partitions=_partitions(OffsetFetchResponsePartition, topic)
            )
            for topic in found
        ],
    )


def _group(
    context: Context, requested: OffsetFetchRequestGroup, version: int, *, require_stable: bool
) -> OffsetFetchResponseGroup:
    topics = None
    if requested.topics is not None:
        topics = [
            _RequestedTopic(each.name, each.topic_id, each.partition_indexes)
            for each in requested.topics
        ]
    code, found = _fetch_group(context, requested, topics, version, require_stable=require_stable)
    return OffsetFetchResponseGroup(
        group_id=requested.group_id,
        error_code=code,
        topics=[
            OffsetFetchResponseTopics(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=_partitions(OffsetFetchResponsePartitions, topic),
            )
            for topic in found
        ],
    )


def _partitions(kind: type[P], topic: _TopicResult) -> list[P]:
    return [
        kind(
            partition_index=index,
            committed_offset=committed.offset,
            committed_leader_epoch=committed.leader_epoch,
            metadata=committed.metadata,
            error_code=code,
        )
        for index, code, committed in topic.partitions
    ]


def _fetch_group(
    context: Context,
    requested: OffsetFetchRequestGroup,
    topics: list[_RequestedTopic] | None,
    version: int,
    *,
    require_stable: bool,
) -> tuple[int, list[_TopicResult]]:
    """Returns the error code of a group, and the results of `topics`.

    If `topics` is None, returns the results of all topics with committed offsets. With
    `require_stable`, a partition with a pending offset gets UNSTABLE_OFFSET_COMMIT (KIP-447).
    """
    try:
        check(context, Operation.DESCRIBE, ResourceType.GROUP, requested.group_id)
        group = context.group_coordinator.find(context.node_id, requested.group_id, context.now)
        if isinstance(group, ShareGroup):
            group = None  # as in Kafka, a share group has no offsets to fetch
        if isinstance(group, ConsumerGroup):
            validate_offset_fetch(group, requested.member_id, requested.member_epoch)
    except BrokerResponseError as error:
        if version >= _FIRST_VERSION_WITH_GROUP_ERROR:
            return error.code, []
        return _NONE, [_error_result(topic, error.code) for topic in topics or ()]
    found, refused = [], []
    if topics is None:
        found = [] if group is None else _fetch_all_topics(context, group, version)
    for topic in topics or ():
        try:
            found.append(_fetch_topic(context, group, topic, version))
        except BrokerResponseError as error:
            refused.append(_error_result(topic, error.code))
    if require_stable and group is not None and group.offsets.has_pending:
        found = [_without_unstable(group, topic) for topic in found]
    return _NONE, found + refused


def _without_unstable(group: OffsetsGroup, topic: _TopicResult) -> _TopicResult:
    """Returns the result of a topic, with an error for each partition with a pending offset."""
    return topic._replace(
        partitions=[
            (index, _UNSTABLE, _NO_OFFSET)
            if group.offsets.is_pending(topic.name, index)
            else (index, code, committed)
            for index, code, committed in topic.partitions
        ]
    )


def _fetch_all_topics(context: Context, group: OffsetsGroup, version: int) -> list[_TopicResult]:
    found = []
    for name in group.offsets.topics:
        if not allows(context, Operation.DESCRIBE, ResourceType.TOPIC, name):
            continue
        topic = context.cluster.topics.get(name)
        if topic is None and version >= _FIRST_VERSION_BY_ID:
            continue
        found.append(
            _TopicResult(
                name,
                ZERO_UUID if topic is None else topic.topic_id,
                [
                    (partition, _NONE, committed)
                    for partition, committed in group.offsets.of_topic(name).items()
                ],
            )
        )
    return found


def _fetch_topic(
    context: Context, group: OffsetsGroup | None, topic: _RequestedTopic, version: int
) -> _TopicResult:
    """Returns the committed offsets of a topic.

    Raises UNKNOWN_TOPIC_ID and TOPIC_AUTHORIZATION_FAILED.
    """
    name = topic.name
    if version >= _FIRST_VERSION_BY_ID:
        known = context.cluster.topics.with_id(topic.topic_id)
        check_topic_of_id(context, Operation.DESCRIBE, known)
        name = known.name
    else:
        check(context, Operation.DESCRIBE, ResourceType.TOPIC, name)
    partitions = []
    for index in topic.partitions:
        committed = None if group is None else group.offsets.get(name, index)
        if committed is None or not committed.is_of(topic.topic_id):
            committed = _NO_OFFSET
        partitions.append((index, _NONE, committed))
    return _TopicResult(name, topic.topic_id, partitions)


def _error_result(topic: _RequestedTopic, code: int) -> _TopicResult:
    return _TopicResult(
        topic.name, topic.topic_id, [(index, code, _NO_OFFSET) for index in topic.partitions]
    )
