"""OffsetCommit (8), v0 to v10.

v0      Kafka stored commits of v0 in ZooKeeper; this broker stores them like commits of v1
v1      generation and member id; a commit may have its own timestamp
v2-v4   retention time of the offset; since v5 the broker's retention time applies (KIP-211)
v3      throttle time
v6      leader epoch (KIP-320)
v7      group instance id (KIP-345)
v8      flexible
v9      GROUP_ID_NOT_FOUND, STALE_MEMBER_EPOCH (KIP-848)
v10     topics by id (KIP-848, KIP-1191)

Only the coordinator accepts commits: other nodes return NOT_COORDINATOR. A missing topic or
partition gets UNKNOWN_TOPIC_OR_PARTITION or UNKNOWN_TOPIC_ID, and the other offsets are committed.
`groups.offset_commit_checks` decides whether a member of a classic group may commit,
`groups.consumer.offset_checks` does so for the consumer protocol. Each offset is a record of
`__consumer_offsets`; the records of one request are one batch.

Left out: nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ...messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ...protocol.error_codes import code_of
from ...wire.errors import BrokerResponseError
from ..authorization import authorized_topic, check
from ..authorizer import Operation, ResourceType
from ..context import Context
from ..groups import ConsumerGroup
from ..groups.committed_offsets import CommittedOffset, exceeds_max_length
from ..groups.consumer.offset_checks import validate_offset_commit as check_commit_of_epoch
from ..groups.coordinator_records import offset_record
from ..groups.offset_commit_checks import resets_session, validate_offset_commit
from ..registry import handles
from ..topics import Topic

_FIRST_VERSION_BY_ID: Final = 10
_NONE: Final = code_of("NONE")
_TOO_LARGE: Final = code_of("OFFSET_METADATA_TOO_LARGE")
#: The value of a retention time or commit timestamp if the request has none.
_UNSET: Final = -1

#: The latest timestamp that a record can have.
_LAST_MS: Final = (1 << 63) - 1

#: A topic of the request, the topic of the cluster, and a partition of the request.
_RequestedPartition = tuple[OffsetCommitRequestTopic, Topic, OffsetCommitRequestPartition]


@handles(OffsetCommitRequest, versions=range(11))
def offset_commit(
    context: Context, request: OffsetCommitRequest, version: int
) -> OffsetCommitResponse:
    """Commits the offsets that are valid, and returns an error code for each partition."""
    answer = _ResponseBuilder()
    try:
        check(context, Operation.READ, ResourceType.GROUP, request.group_id)
    except BrokerResponseError as error:
        for topic in request.topics:
            answer.add(topic, topic.partitions, error.code)
        return answer.response()
    requested: list[_RequestedPartition] = []
    for topic in request.topics:
        try:
            found = authorized_topic(
                context,
                Operation.READ,
                topic.name,
                topic.topic_id,
                by_id=version >= _FIRST_VERSION_BY_ID,
            )
        except BrokerResponseError as error:
            answer.add(topic, topic.partitions, error.code)
            continue
        for partition in topic.partitions:
            try:
                found.partition(partition.partition_index)
            except BrokerResponseError as error:
                answer.add(topic, [partition], error.code)
            else:
                requested.append((topic, found, partition))
    if requested:
        try:
            codes = _commit(context, request, requested, version)
        except BrokerResponseError as error:
            codes = [error.code] * len(requested)
        for (topic, _, partition), code in zip(requested, codes, strict=True):
            answer.add(topic, [partition], code)
    return answer.response()


def _commit(
    context: Context,
    request: OffsetCommitRequest,
    requested: list[_RequestedPartition],
    version: int,
) -> list[int]:
    """Commits offsets; returns the error code of each partition.

    Raises BrokerResponseError if the whole commit is refused, or if the offsets cannot be stored.
    """
    coordinator = context.group_coordinator
    group_id, now = request.group_id, context.now
    generation = request.generation_id_or_member_epoch
    member_id, instance_id = request.member_id, request.group_instance_id
    group = context.group_coordinator.find_with_offsets(context.node_id, group_id, context.now)
    if isinstance(group, ConsumerGroup):
        partitions = [
            (topic.topic_id, partition.partition_index) for _, topic, partition in requested
        ]
        check_commit_of_epoch(group, member_id, generation, version, partitions)
    else:
        validate_offset_commit(group, member_id, generation, instance_id, version)
        if group is not None and resets_session(group):
            group.reset_session(member_id, now)
    most = context.settings.offset_metadata_max_bytes
    expire_ms = None
    if request.retention_time_ms != _UNSET:
        expire_ms = min(now.timestamp_ms + request.retention_time_ms, _LAST_MS)
    codes: list[int] = []
    commits: list[tuple[str, int, CommittedOffset]] = []
    for _, topic, partition in requested:
        if exceeds_max_length(partition.committed_metadata, most):
            codes.append(_TOO_LARGE)
            continue
        codes.append(_NONE)
        committed = CommittedOffset(
            partition.committed_offset,
            partition.committed_leader_epoch,
            partition.committed_metadata or "",
            now.timestamp_ms
            if partition.commit_timestamp == _UNSET
            else partition.commit_timestamp,
            expire_ms,
            topic.topic_id,
        )
        commits.append((topic.name, partition.partition_index, committed))
    coordinator.append(group_id, [offset_record(group_id, *commit) for commit in commits], now)
    if group is None:
        group = context.group_coordinator.get_or_create(context.node_id, group_id, context.now)
    for commit in commits:
        group.offsets.put(*commit)
    return codes


class _ResponseBuilder:
    """Collects the partitions of a response by topic, in the order of `add`."""

    def __init__(self) -> None:
        self._topics: dict[tuple[str, bytes], OffsetCommitResponseTopic] = {}

    def add(
        self,
        topic: OffsetCommitRequestTopic,
        partitions: Iterable[OffsetCommitRequestPartition],
        code: int,
    ) -> None:
        key = topic.name, bytes(topic.topic_id)
        if key not in self._topics:
            self._topics[key] = OffsetCommitResponseTopic(
                name=topic.name, topic_id=topic.topic_id, partitions=[]
            )
        self._topics[key].partitions += [
            OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
            for each in partitions
        ]

    def response(self) -> OffsetCommitResponse:
        return OffsetCommitResponse(topics=self._topics.values())
