"""Lists, alters and deletes offsets of groups: requests and results as plain data.

OffsetFetch (9), OffsetCommit (8), OffsetDelete (47, KIP-496), DescribeShareGroupOffsets (90),
AlterShareGroupOffsets (91) and DeleteShareGroupOffsets (92, KIP-932).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from ...messages.alter_share_group_offsets_request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from ...messages.alter_share_group_offsets_response import AlterShareGroupOffsetsResponse
from ...messages.delete_share_group_offsets_request import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from ...messages.delete_share_group_offsets_response import DeleteShareGroupOffsetsResponse
from ...messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from ...messages.describe_share_group_offsets_response import DescribeShareGroupOffsetsResponse
from ...messages.offset_commit_request import OffsetCommitRequest
from ...messages.offset_commit_response import OffsetCommitResponse
from ...messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ...messages.offset_delete_response import OffsetDeleteResponse
from ...messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ...messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from ...wire.errors import KprotoError
from ...wire.uuid import ZERO_UUID, Uuid
from ..commits.offset_requests import (
    CommittedOffset,
    OffsetAndMetadata,
    commit_answers,
    commit_requests,
)
from ..commits.topic_labels import split_label
from ..metadata.cluster import TopicPartition
from .calls import PartCall, by_topic, error_in, is_retried, outcome
from .errors import AdminError

__all__ = [
    "PartitionLag",
    "Partitions",
    "SharePartitionOffset",
    "alter_offsets_call",
    "alter_share_offsets_call",
    "delete_offsets_call",
    "delete_share_offsets_call",
    "lag_of",
    "list_offsets_call",
    "list_share_offsets_call",
]

#: The partitions to list of a group; None for all that have offsets.
Partitions: TypeAlias = Sequence[TopicPartition] | None

#: A partition, with the name or the id of its topic.
NamedOrId: TypeAlias = tuple[str | Uuid, int]


class SharePartitionOffset(NamedTuple):
    """The start offset of a partition in a share group.

    `lag` is the number of records from the start offset on that are not processed yet; None before
    Kafka 4.2, and if it is unknown.
    """

    start_offset: int
    leader_epoch: int
    lag: int | None


class PartitionLag(NamedTuple):
    """The committed offset of a partition, the ends of its log, and the lag between them.

    `committed` and `lag` are None if the group has committed no offset. With offsets before the log
    start, `lag` counts from the log start.
    """

    committed: CommittedOffset | None
    log_start: int
    log_end: int
    lag: int | None


def lag_of(committed: CommittedOffset | None, log_start: int, log_end: int) -> PartitionLag:
    """Returns the lag of a partition from its committed offset and the ends of its log."""
    if committed is None:
        return PartitionLag(None, log_start, log_end, None)
    lag = max(0, log_end - max(committed.offset, log_start))
    return PartitionLag(committed, log_start, log_end, lag)


# Committed offsets


def list_offsets_call(
    groups: Mapping[str, Partitions], *, require_stable: bool
) -> PartCall[str, dict[NamedOrId, CommittedOffset | None]]:
    """Returns the call that lists the committed offsets of groups, by group id.

    The result of a group maps partitions to offsets, or to None if there is none; a partition has
    the id of its topic instead of the name if the response has no names (v10).
    """

    def build(group_ids: Sequence[str], left_ms: int) -> OffsetFetchRequest:
        return OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(group_id=each, topics=_topics(groups[each]))
                for each in group_ids
            ],
            require_stable=require_stable,
        )

    def build_older(group_ids: Sequence[str], left_ms: int) -> OffsetFetchRequest:
        tps = groups[group_ids[0]]
        topics = None
        if tps is not None:
            topics = [
                OffsetFetchRequestTopic(name=topic, partition_indexes=partitions)
                for topic, partitions in by_topic(tps).items()
            ]
        return OffsetFetchRequest(
            group_id=group_ids[0], topics=topics, require_stable=require_stable
        )

    def read(
        response: OffsetFetchResponse, group_ids: Sequence[str]
    ) -> dict[str, dict[NamedOrId, CommittedOffset | None] | KprotoError]:
        if not response.groups:
            return {
                each: _offsets_in(each, response.error_code, response.topics)
                for each in group_ids[:1]
            }
        return {
            each.group_id: _offsets_in(each.group_id, each.error_code, each.topics)
            for each in response.groups
        }

    return PartCall(
        "listing offsets of groups",
        build,
        read,
        parts_of=lambda request: [each.group_id for each in request.groups] or [request.group_id],
        build_older=build_older,
    )


def _topics(tps: Partitions) -> list[OffsetFetchRequestTopics] | None:
    if tps is None:
        return None
    return [
        OffsetFetchRequestTopics(name=topic, partition_indexes=partitions)
        for topic, partitions in by_topic(tps).items()
    ]


def _offsets_in(
    group_id: str,
    code: int,
    topics: Sequence[OffsetFetchResponseTopic] | Sequence[OffsetFetchResponseTopics],
) -> dict[NamedOrId, CommittedOffset | None] | KprotoError:
    """Returns the offsets of a group; AdminError by partition if some of them failed.

    Returns an error that is retried, such as UNSTABLE_OFFSET_COMMIT, itself.
    """
    action = f"listing offsets of group {group_id!r}"
    error = error_in(code, action)
    if error is not None:
        return error
    found: dict[NamedOrId, CommittedOffset | None] = {}
    errors: dict[NamedOrId, KprotoError] = {}
    for topic in topics:
        topic_id = getattr(topic, "topic_id", ZERO_UUID)
        for part in topic.partitions:
            tp = (topic.name or topic_id, part.partition_index)
            error = error_in(part.error_code, f"{action}, of {tp[0]}[{tp[1]}]")
            if error is not None:
                if is_retried(error, awaits_topics=False):
                    return error
                errors[tp] = error
                continue
            known = CommittedOffset(
                part.committed_offset,
                part.committed_leader_epoch,
                split_label(part.metadata or "")[1],
            )
            found[tp] = known if known.offset >= 0 else None
    return AdminError(action, found, errors) if errors else found


def alter_offsets_call(
    group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]
) -> PartCall[TopicPartition, None]:
    """Returns the call that commits offsets for a group without members, by partition (KIP-396)."""

    def build(tps: Sequence[TopicPartition], left_ms: int) -> OffsetCommitRequest:
        wanted = {tp: offsets[tp]._replace(topic_id=ZERO_UUID) for tp in tps}
        *_, by_name = commit_requests(group_id, None, wanted, lambda its: its.metadata)
        return by_name

    def read(
        response: OffsetCommitResponse, tps: Sequence[TopicPartition]
    ) -> dict[TopicPartition, KprotoError | None]:
        return dict(commit_answers(response, {tp: offsets[tp] for tp in tps}))

    return PartCall(f"altering offsets of group {group_id!r}", build, read, changes=True)


def delete_offsets_call(group_id: str) -> PartCall[TopicPartition, None]:
    """Returns the call that deletes committed offsets of a group, by partition (KIP-496)."""
    action = f"deleting offsets of group {group_id!r}"

    def build(tps: Sequence[TopicPartition], left_ms: int) -> OffsetDeleteRequest:
        return OffsetDeleteRequest(
            group_id=group_id,
            topics=[
                OffsetDeleteRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetDeleteRequestPartition(partition_index=each) for each in partitions
                    ],
                )
                for topic, partitions in by_topic(tps).items()
            ],
        )

    def read(
        response: OffsetDeleteResponse, tps: Sequence[TopicPartition]
    ) -> dict[TopicPartition, KprotoError | None]:
        whole = error_in(response.error_code, action)
        if whole is not None:
            return dict.fromkeys(tps, whole)
        return {
            (topic.name, each.partition_index): error_in(
                each.error_code, f"{action}, of {topic.name}[{each.partition_index}]"
            )
            for topic in response.topics
            for each in topic.partitions
        }

    return PartCall(action, build, read, changes=True)


# Share groups


def list_share_offsets_call(
    groups: Mapping[str, Partitions],
) -> PartCall[str, dict[TopicPartition, SharePartitionOffset | None]]:
    """Returns the call that lists the start offsets of share groups, by group id."""

    def build(group_ids: Sequence[str], left_ms: int) -> DescribeShareGroupOffsetsRequest:
        return DescribeShareGroupOffsetsRequest(
            groups=[
                DescribeShareGroupOffsetsRequestGroup(
                    group_id=each, topics=_share_topics(groups[each])
                )
                for each in group_ids
            ]
        )

    def read(
        response: DescribeShareGroupOffsetsResponse, group_ids: Sequence[str]
    ) -> dict[str, dict[TopicPartition, SharePartitionOffset | None] | KprotoError]:
        found: dict[str, dict[TopicPartition, SharePartitionOffset | None] | KprotoError] = {}
        for group in response.groups:
            action = f"listing offsets of share group {group.group_id!r}"
            error = error_in(group.error_code, action, group.error_message)
            if error is not None:
                found[group.group_id] = error
                continue
            offsets: dict[TopicPartition, SharePartitionOffset | None] = {}
            errors: dict[TopicPartition, KprotoError] = {}
            for topic in group.topics:
                for each in topic.partitions:
                    tp = (topic.topic_name, each.partition_index)
                    failed = error_in(
                        each.error_code, f"{action}, of {tp[0]}[{tp[1]}]", each.error_message
                    )
                    if failed is not None:
                        errors[tp] = failed
                        continue
                    known = SharePartitionOffset(
                        each.start_offset, each.leader_epoch, each.lag if each.lag >= 0 else None
                    )
                    offsets[tp] = known if known.start_offset >= 0 else None
            found[group.group_id] = AdminError(action, offsets, errors) if errors else offsets
        return found

    return PartCall(
        "listing offsets of share groups",
        build,
        read,
        parts_of=lambda request: [each.group_id for each in request.groups],
    )


def _share_topics(tps: Partitions) -> list[DescribeShareGroupOffsetsRequestTopic] | None:
    if tps is None:
        return None
    return [
        DescribeShareGroupOffsetsRequestTopic(topic_name=topic, partitions=partitions)
        for topic, partitions in by_topic(tps).items()
    ]


def alter_share_offsets_call(
    group_id: str, offsets: Mapping[TopicPartition, int]
) -> PartCall[TopicPartition, None]:
    """Returns the call that sets the start offsets of a share group without members."""
    action = f"altering offsets of share group {group_id!r}"

    def build(tps: Sequence[TopicPartition], left_ms: int) -> AlterShareGroupOffsetsRequest:
        return AlterShareGroupOffsetsRequest(
            group_id=group_id,
            topics=[
                AlterShareGroupOffsetsRequestTopic(
                    topic_name=topic,
                    partitions=[
                        AlterShareGroupOffsetsRequestPartition(
                            partition_index=partition, start_offset=offsets[topic, partition]
                        )
                        for partition in partitions
                    ],
                )
                for topic, partitions in by_topic(tps).items()
            ],
        )

    def read(
        response: AlterShareGroupOffsetsResponse, tps: Sequence[TopicPartition]
    ) -> dict[TopicPartition, KprotoError | None]:
        whole = error_in(response.error_code, action, response.error_message)
        if whole is not None:
            return dict.fromkeys(tps, whole)
        return {
            (topic.topic_name, each.partition_index): error_in(
                each.error_code,
                f"{action}, of {topic.topic_name}[{each.partition_index}]",
                each.error_message,
            )
            for topic in response.responses
            for each in topic.partitions
        }

    return PartCall(action, build, read, changes=True)


def delete_share_offsets_call(group_id: str) -> PartCall[str, None]:
    """Returns the call that deletes the offsets of a share group, by topic."""
    action = f"deleting offsets of share group {group_id!r}"

    def build(topics: Sequence[str], left_ms: int) -> DeleteShareGroupOffsetsRequest:
        return DeleteShareGroupOffsetsRequest(
            group_id=group_id,
            topics=[DeleteShareGroupOffsetsRequestTopic(topic_name=each) for each in topics],
        )

    def read(
        response: DeleteShareGroupOffsetsResponse, topics: Sequence[str]
    ) -> dict[str, KprotoError | None]:
        whole = error_in(response.error_code, action, response.error_message)
        if whole is not None:
            return dict.fromkeys(topics, whole)
        return {
            each.topic_name: outcome(
                each.error_code, f"{action}, of topic {each.topic_name!r}", each.error_message, None
            )
            for each in response.responses
        }

    return PartCall(action, build, read, changes=True)
