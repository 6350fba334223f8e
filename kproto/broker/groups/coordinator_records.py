"""Converts classic groups and committed offsets to records, and loads all groups from records.

The records are those of `__consumer_offsets`. `consumer.consumer_group_records` creates the records
of groups of the consumer protocol, and `share.share_group_records` those of share groups. Keys and
values have the versions that Kafka 4.4's GroupCoordinatorRecordHelpers writes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ...messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from ...messages.group_metadata_key import GroupMetadataKey
from ...messages.group_metadata_value import GroupMetadataValue
from ...messages.group_metadata_value import MemberMetadata as MemberValue
from ...messages.legacy_offset_commit_key import LegacyOffsetCommitKey
from ...messages.legacy_offset_commit_value import LegacyOffsetCommitValue
from ...messages.offset_commit_key import OffsetCommitKey
from ...messages.offset_commit_value import OffsetCommitValue
from ...messages.share_group_metadata_key import ShareGroupMetadataKey
from ...records import Record
from ...stored.coordinator_records import (
    CoordinatorRecord,
    UnknownCoordinatorRecord,
    decode_coordinator_record,
)
from ...wire.errors import DecodeError
from .committed_offsets import CommittedOffset, CommittedOffsets
from .consumer.persisted_state import ConsumerKey, PersistedState
from .group_metadata import GroupMetadata, MemberMetadata
from .share.share_group_state import ShareKey, SharePersistedState

__all__ = [
    "OFFSETS_TOPIC",
    "StoredGroup",
    "TransactionEnd",
    "TransactionalRecord",
    "group_record",
    "group_tombstone",
    "load",
    "offset_record",
    "offset_tombstone",
]

logger = logging.getLogger("kproto.broker")

OFFSETS_TOPIC: Final = "__consumer_offsets"

#: The versions of OffsetCommitValue: the first for a commit with an expiration time, the second for
#: other commits. Only version 4 has the topic id (KIP-848).
_OFFSET_WITH_EXPIRY: Final = 1
_OFFSET: Final = 4
_GROUP: Final = 3

_NO_TIME: Final = -1


@dataclass(slots=True)
class StoredGroup:
    """Holds a group that was read from its records.

    `metadata` is set for a classic group, `consumer` for a group of the consumer protocol, `share`
    for a share group. If all are None, the group has only committed offsets.
    """

    metadata: GroupMetadata | None = None
    consumer: PersistedState | None = None
    share: SharePersistedState | None = None
    offsets: CommittedOffsets = field(default_factory=CommittedOffsets)


class TransactionalRecord(NamedTuple):
    """Holds a record of a transaction, with the producer id of the transaction."""

    record: Record
    producer_id: int


class TransactionEnd(NamedTuple):
    """Describes the commit or abort marker of a producer's transaction."""

    producer_id: int
    is_commit: bool


def offset_record(
    group_id: str, topic: str, partition: int, committed: CommittedOffset
) -> CoordinatorRecord:
    """Returns the record of a committed offset."""
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_ms,
        topic_id=committed.topic_id,
    )
    version = _OFFSET
    if committed.expire_ms is not None:
        value.expire_timestamp = committed.expire_ms
        version = _OFFSET_WITH_EXPIRY
    key = OffsetCommitKey(group=group_id, topic=topic, partition=partition)
    return CoordinatorRecord(key, value, version)


def offset_tombstone(group_id: str, topic: str, partition: int) -> CoordinatorRecord:
    """Returns the tombstone of a committed offset."""
    return CoordinatorRecord(OffsetCommitKey(group=group_id, topic=topic, partition=partition))


def group_record(group_id: str, metadata: GroupMetadata) -> CoordinatorRecord:
    """Returns the record of a classic group's metadata."""
    value = GroupMetadataValue(
        protocol_type=metadata.protocol_type or "",
        generation=metadata.generation,
        protocol=metadata.protocol,
        leader=metadata.leader,
        current_state_timestamp=_NO_TIME if metadata.state_ms is None else metadata.state_ms,
        members=[
            MemberValue(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.subscription,
                assignment=member.assignment,
            )
            for member in metadata.members
        ],
    )
    return CoordinatorRecord(GroupMetadataKey(group=group_id), value, _GROUP)


def group_tombstone(group_id: str) -> CoordinatorRecord:
    """Returns the tombstone of a classic group's metadata."""
    return CoordinatorRecord(GroupMetadataKey(group=group_id))


def load(
    records: Iterable[Record | TransactionalRecord | TransactionEnd],
) -> dict[str, StoredGroup]:
    """Replays the log of a partition of `__consumer_offsets`; returns the groups by group id.

    Skips records of streams groups. Skips records that cannot be decoded, and logs a warning.
    """
    groups: dict[str, StoredGroup] = {}
    for entry in records:
        if isinstance(entry, TransactionEnd):
            for group in groups.values():
                group.offsets.end_transaction(entry.producer_id, is_commit=entry.is_commit)
            continue
        producer_id = None
        record = entry
        if isinstance(entry, TransactionalRecord):
            record, producer_id = entry
        assert isinstance(record, Record)
        try:
            found = decode_coordinator_record(record, topic=OFFSETS_TOPIC)
        except DecodeError as error:
            logger.warning("%s: offset %d is skipped: %s", OFFSETS_TOPIC, record.offset, error)
            continue
        if isinstance(found, UnknownCoordinatorRecord):
            continue
        if producer_id is None:
            _replay(groups, found)
        else:
            _replay_pending(groups, found, producer_id)
    return groups


def _replay_pending(
    groups: dict[str, StoredGroup], record: CoordinatorRecord, producer_id: int
) -> None:
    """Adds the offset of an open transaction to its group, if `record` is a committed offset.

    Ignores any other record: Kafka writes only committed offsets under a transaction's producer id.
    """
    key, value = record.key, record.value
    if isinstance(key, OffsetCommitKey) and isinstance(value, OffsetCommitValue):
        group = groups.setdefault(key.group, StoredGroup())
        group.offsets.put_pending(producer_id, key.topic, key.partition, _committed(value))


def _replay(groups: dict[str, StoredGroup], record: CoordinatorRecord) -> None:
    key, value = record.key, record.value
    if isinstance(key, OffsetCommitKey | LegacyOffsetCommitKey):
        if value is None:
            group = groups.get(key.group)
            if group is not None:
                group.offsets.remove(key.topic, key.partition)
        else:
            assert isinstance(value, OffsetCommitValue | LegacyOffsetCommitValue)
            group = groups.setdefault(key.group, StoredGroup())
            group.offsets.put(key.topic, key.partition, _committed(value))
    elif isinstance(key, GroupMetadataKey):
        if value is not None:
            assert isinstance(value, GroupMetadataValue)
            groups.setdefault(key.group, StoredGroup()).metadata = _metadata(value)
        elif key.group in groups:
            groups[key.group].metadata = None
            _drop_empty(groups, key.group)
    elif isinstance(key, ConsumerKey):
        _replay_consumer_group(groups, key, record)
    elif isinstance(key, ShareKey):
        _replay_share_group(groups, key, record)


def _replay_consumer_group(
    groups: dict[str, StoredGroup], key: ConsumerKey, record: CoordinatorRecord
) -> None:
    """Replays a record of a consumer-protocol group; ignores tombstones of an unknown group."""
    group_id = key.group_id
    if record.value is not None:
        group = groups.setdefault(group_id, StoredGroup())
        group.consumer = group.consumer or PersistedState()
    elif group_id not in groups or groups[group_id].consumer is None:
        return
    elif isinstance(key, ConsumerGroupMetadataKey):
        groups[group_id].consumer = None
        _drop_empty(groups, group_id)
        return
    state = groups[group_id].consumer
    assert state is not None
    state.replay(record)


def _replay_share_group(
    groups: dict[str, StoredGroup], key: ShareKey, record: CoordinatorRecord
) -> None:
    """Replays a record of a share group; ignores tombstones of an unknown group."""
    group_id = key.group_id
    if record.value is not None:
        group = groups.setdefault(group_id, StoredGroup())
        group.share = group.share or SharePersistedState()
    elif group_id not in groups or groups[group_id].share is None:
        return
    elif isinstance(key, ShareGroupMetadataKey):
        groups[group_id].share = None
        _drop_empty(groups, group_id)
        return
    state = groups[group_id].share
    assert state is not None
    state.replay(record)


def _drop_empty(groups: dict[str, StoredGroup], group_id: str) -> None:
    """Removes a group if it has neither state nor offsets."""
    group = groups[group_id]
    states = group.metadata, group.consumer, group.share
    if states == (None, None, None) and not group.offsets.partitions:
        del groups[group_id]


def _committed(value: OffsetCommitValue | LegacyOffsetCommitValue) -> CommittedOffset:
    if isinstance(value, LegacyOffsetCommitValue):
        return CommittedOffset(
            value.offset, metadata=value.metadata, commit_ms=value.commit_timestamp
        )
    return CommittedOffset(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        None if value.expire_timestamp == _NO_TIME else value.expire_timestamp,
        value.topic_id,
    )


def _metadata(value: GroupMetadataValue) -> GroupMetadata:
    return GroupMetadata(
        value.protocol_type or None,
        value.generation,
        value.protocol,
        value.leader,
        None if value.current_state_timestamp == _NO_TIME else value.current_state_timestamp,
        tuple(
            MemberMetadata(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                # Records of v0 have no rebalance timeout; the session timeout applies instead.
                member.session_timeout
                if member.rebalance_timeout == _NO_TIME
                else member.rebalance_timeout,
                member.session_timeout,
                member.subscription,
                member.assignment,
            )
            for member in value.members
        ),
    )
