"""Creates the records of a consumer-protocol group in `__consumer_offsets`.

The keys (types 3 to 8 and 16, of which 4 is only in tombstones) and values have the versions that
Kafka 4.4's GroupCoordinatorRecordHelpers writes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ....messages.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from ....messages.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from ....messages.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from ....messages.consumer_group_member_metadata_value import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataValue,
)
from ....messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from ....messages.consumer_group_metadata_value import ConsumerGroupMetadataValue
from ....messages.consumer_group_partition_metadata_key import ConsumerGroupPartitionMetadataKey
from ....messages.consumer_group_regular_expression_key import ConsumerGroupRegularExpressionKey
from ....messages.consumer_group_regular_expression_value import ConsumerGroupRegularExpressionValue
from ....messages.consumer_group_target_assignment_member_key import (
    ConsumerGroupTargetAssignmentMemberKey,
)
from ....messages.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue,
    TopicPartition,
)
from ....messages.consumer_group_target_assignment_metadata_key import (
    ConsumerGroupTargetAssignmentMetadataKey,
)
from ....messages.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue,
)
from ....stored.coordinator_records import CoordinatorRecord
from .consumer_group_member import Assigned, ConsumerGroupMember, Partitions
from .regex_resolution import ResolvedRegex

__all__ = [
    "current_assignment",
    "current_assignment_tombstone",
    "group_epoch",
    "group_epoch_tombstone",
    "group_tombstones",
    "member_metadata",
    "member_metadata_tombstone",
    "member_tombstones",
    "regex",
    "regex_tombstone",
    "target_assignment",
    "target_assignment_tombstone",
    "target_epoch",
    "target_epoch_tombstone",
]

_VERSION: Final = 0


def member_metadata(group_id: str, member: ConsumerGroupMember) -> CoordinatorRecord:
    """Returns the record of a member's subscription."""
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=None,
    )
    if member.classic is not None:
        value.classic_member_metadata = ClassicMemberMetadata(
            session_timeout_ms=member.classic.session_timeout_ms,
            supported_protocols=[
                ClassicProtocol(name=it.name, metadata=it.metadata)
                for it in member.classic.protocols
            ],
        )
    key = ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(key, value, _VERSION)


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """Returns the record of a group's epoch and `metadata_hash`.

    `metadata_hash` is the hash of the topics to which at least one member subscribes.
    """
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return CoordinatorRecord(ConsumerGroupMetadataKey(group_id=group_id), value, _VERSION)


def target_assignment(group_id: str, member_id: str, partitions: Partitions) -> CoordinatorRecord:
    """Returns the record of a member's target assignment."""
    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            TopicPartition(topic_id=topic_id, partitions=sorted(its))
            for topic_id, its in partitions.items()
        ]
    )
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return CoordinatorRecord(key, value, _VERSION)


def target_epoch(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    """Returns the record of the target assignments' epoch.

    `timestamp_ms` is the time at which the assignor computed the target assignments, in ms since
    1970; 0 if no assignor has computed any.
    """
    value = ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=timestamp_ms
    )
    key = ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)
    return CoordinatorRecord(key, value, _VERSION)


def current_assignment(group_id: str, member: ConsumerGroupMember) -> CoordinatorRecord:
    """Returns the record of a member's current assignment."""
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=_with_epochs(member.assigned),
        partitions_pending_revocation=_with_epochs(member.revoking),
    )
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(key, value, _VERSION)


def _with_epochs(assigned: Assigned) -> list[TopicPartitions]:
    return [
        TopicPartitions(
            topic_id=topic_id,
            partitions=sorted(its),
            assignment_epochs=[its[index] for index in sorted(its)],
        )
        for topic_id, its in assigned.items()
    ]


def regex(group_id: str, expression: str, resolved: ResolvedRegex) -> CoordinatorRecord:
    """Returns the record of the topics that a regular expression matched."""
    value = ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
    )
    return CoordinatorRecord(_regex_key(group_id, expression), value, _VERSION)


def _regex_key(group_id: str, expression: str) -> ConsumerGroupRegularExpressionKey:
    return ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=expression)


# Tombstones


def regex_tombstone(group_id: str, expression: str) -> CoordinatorRecord:
    """Returns the tombstone of a regular expression that no member uses any more."""
    return CoordinatorRecord(_regex_key(group_id, expression))


def current_assignment_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    """Returns the tombstone of a member's current assignment."""
    return CoordinatorRecord(
        ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
    )


def target_assignment_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    """Returns the tombstone of a member's target assignment."""
    return CoordinatorRecord(
        ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    )


def member_metadata_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    """Returns the tombstone of a member's subscription."""
    return CoordinatorRecord(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id))


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """Returns all tombstones of a member, in the order in which Kafka writes them."""
    return [
        current_assignment_tombstone(group_id, member_id),
        target_assignment_tombstone(group_id, member_id),
        member_metadata_tombstone(group_id, member_id),
    ]


def target_epoch_tombstone(group_id: str) -> CoordinatorRecord:
    """Returns the tombstone of the target assignments' epoch."""
    return CoordinatorRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id))


def group_epoch_tombstone(group_id: str) -> CoordinatorRecord:
    """Returns the tombstone of the group epoch, for a group that is deleted or converted."""
    return CoordinatorRecord(ConsumerGroupMetadataKey(group_id=group_id))


def group_tombstones(
    group_id: str, member_ids: Iterable[str], expressions: Iterable[str]
) -> list[CoordinatorRecord]:
    """Returns all tombstones of a group, in the order in which Kafka writes them.

    Also returns the tombstone of the partition metadata, a record that only older brokers write.
    """
    members = list(member_ids)
    return [
        *(current_assignment_tombstone(group_id, it) for it in members),
        *(target_assignment_tombstone(group_id, it) for it in members),
        target_epoch_tombstone(group_id),
        *(member_metadata_tombstone(group_id, it) for it in members),
        *(regex_tombstone(group_id, it) for it in expressions),
        CoordinatorRecord(ConsumerGroupPartitionMetadataKey(group_id=group_id)),
        group_epoch_tombstone(group_id),
    ]
