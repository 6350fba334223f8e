"""Creates the records of a share group in `__consumer_offsets` (KIP-932).

The keys (types 10 to 15) and values have the versions that Kafka 4.4's
GroupCoordinatorRecordHelpers writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ....messages.share_group_current_member_assignment_key import (
    ShareGroupCurrentMemberAssignmentKey,
)
from ....messages.share_group_current_member_assignment_value import (
    ShareGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from ....messages.share_group_member_metadata_key import ShareGroupMemberMetadataKey
from ....messages.share_group_member_metadata_value import ShareGroupMemberMetadataValue
from ....messages.share_group_metadata_key import ShareGroupMetadataKey
from ....messages.share_group_metadata_value import ShareGroupMetadataValue
from ....messages.share_group_state_partition_metadata_key import (
    ShareGroupStatePartitionMetadataKey,
)
from ....messages.share_group_state_partition_metadata_value import (
    ShareGroupStatePartitionMetadataValue,
    TopicInfo,
    TopicPartitionsInfo,
)
from ....messages.share_group_target_assignment_member_key import (
    ShareGroupTargetAssignmentMemberKey,
)
from ....messages.share_group_target_assignment_member_value import (
    ShareGroupTargetAssignmentMemberValue,
    TopicPartition,
)
from ....messages.share_group_target_assignment_metadata_key import (
    ShareGroupTargetAssignmentMetadataKey,
)
from ....messages.share_group_target_assignment_metadata_value import (
    ShareGroupTargetAssignmentMetadataValue,
)
from ....stored.coordinator_records import CoordinatorRecord
from ....wire.uuid import Uuid
from ..consumer.consumer_group_member import Partitions
from .share_group_state import ShareGroupMember, SharePersistedState, TopicInitialization

__all__ = [
    "current_assignment",
    "group_epoch",
    "group_tombstones",
    "member_metadata",
    "member_tombstones",
    "partition_metadata",
    "target_assignment",
    "target_epoch",
]

_VERSION: Final = 0


def member_metadata(group_id: str, member: ShareGroupMember) -> CoordinatorRecord:
    """Returns the record of a member's subscription."""
    value = ShareGroupMemberMetadataValue(
        rack_id=member.rack,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
    )
    key = ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(key, value, _VERSION)


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """Returns the record of a group's epoch, and of the hash of its subscribed topics."""
    value = ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return CoordinatorRecord(ShareGroupMetadataKey(group_id=group_id), value, _VERSION)


def target_assignment(group_id: str, member_id: str, partitions: Partitions) -> CoordinatorRecord:
    """Returns the record of a member's target assignment."""
    value = ShareGroupTargetAssignmentMemberValue(
        topic_partitions=[
            TopicPartition(topic_id=topic_id, partitions=sorted(its))
            for topic_id, its in partitions.items()
        ]
    )
    key = ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return CoordinatorRecord(key, value, _VERSION)


def target_epoch(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    """Returns the record of the target assignments' epoch.

    `timestamp_ms` is the time at which the assignor computed the target assignments, in ms since
    1970; 0 if no assignor has computed any.
    """
    value = ShareGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=timestamp_ms
    )
    key = ShareGroupTargetAssignmentMetadataKey(group_id=group_id)
    return CoordinatorRecord(key, value, _VERSION)


def current_assignment(group_id: str, member: ShareGroupMember) -> CoordinatorRecord:
    """Returns the record of a member's current assignment; its state is always Stable, 0."""
    value = ShareGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=0,
        assigned_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=sorted(its))
            for topic_id, its in member.assigned.items()
        ],
    )
    key = ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(key, value, _VERSION)


def partition_metadata(
    group_id: str,
    initializing: Mapping[Uuid, TopicInitialization],
    initialized: Mapping[Uuid, TopicInitialization],
    deleting: Mapping[Uuid, str],
) -> CoordinatorRecord:
    """Returns the record of the partitions whose share state exists, or is created or deleted."""
    value = ShareGroupStatePartitionMetadataValue(
        initializing_topics=_infos(initializing),
        initialized_topics=_infos(initialized),
        deleting_topics=[
            TopicInfo(topic_id=topic_id, topic_name=name) for topic_id, name in deleting.items()
        ],
    )
    key = ShareGroupStatePartitionMetadataKey(group_id=group_id)
    return CoordinatorRecord(key, value, _VERSION)


def _infos(topics: Mapping[Uuid, TopicInitialization]) -> list[TopicPartitionsInfo]:
    return [
        TopicPartitionsInfo(topic_id=topic_id, topic_name=it.name, partitions=sorted(it.partitions))
        for topic_id, it in topics.items()
    ]


# Tombstones


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """Returns all tombstones of a member, in the order in which Kafka writes them."""
    return [
        CoordinatorRecord(
            ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
        ),
        CoordinatorRecord(
            ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
        ),
        CoordinatorRecord(ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id)),
    ]


def group_tombstones(group_id: str, state: SharePersistedState) -> list[CoordinatorRecord]:
    """Returns all tombstones of a group, in the order in which Kafka writes them."""
    return [
        *_of_members(ShareGroupCurrentMemberAssignmentKey, group_id, state.members),
        *_of_members(ShareGroupTargetAssignmentMemberKey, group_id, state.members),
        CoordinatorRecord(ShareGroupTargetAssignmentMetadataKey(group_id=group_id)),
        *_of_members(ShareGroupMemberMetadataKey, group_id, state.members),
        CoordinatorRecord(ShareGroupStatePartitionMetadataKey(group_id=group_id)),
        CoordinatorRecord(ShareGroupMetadataKey(group_id=group_id)),
    ]


def _of_members(
    key: type[
        ShareGroupCurrentMemberAssignmentKey
        | ShareGroupTargetAssignmentMemberKey
        | ShareGroupMemberMetadataKey
    ],
    group_id: str,
    members: Iterable[str],
) -> list[CoordinatorRecord]:
    return [CoordinatorRecord(key(group_id=group_id, member_id=it)) for it in members]
