"""Implements the group coordinator: creates, stores, loads and expires the groups of a cluster.

A group id hashes to a partition of `__consumer_offsets`, and the leader of that partition is the
group's coordinator. `GroupCoordinator` finds the coordinator, and writes the records of a change to
the partition before the change takes effect. When the leader epoch of a partition changes, the
groups of the partition are unloaded, and the next request loads these groups from the log.
`group_metadata_manager` has the loaded groups by id.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final, NamedTuple

from ...records import Record
from ...stored.coordinator_records import CoordinatorRecord
from ...stored.transaction_markers import txn_marker_of
from ...wire.errors import BrokerResponseError, KprotoError
from ..api_error import api_error
from ..coordinator_log import BATCH_TOO_LARGE, append_to_coordinator_log
from ..coordinators import partition_of
from ..leader_and_isr import NO_LEADER
from ..log_escaping import log_safe
from ..storage.partition import Partition
from ..topics import Topic, Topics
from .classic_group_state import ClassicGroupState
from .clock_reading import ClockReading
from .committed_offsets import TopicPartition, expired_offsets
from .consumer import ConsumerGroup
from .coordinator_records import (
    OFFSETS_TOPIC,
    TransactionalRecord,
    TransactionEnd,
    group_tombstone,
    load,
    offset_tombstone,
)
from .group_metadata_manager import AnyGroup, GroupMetadataManager, OffsetsGroup
from .migration import group_tombstones_of
from .share import ShareGroup
from .share.share_group_records import group_tombstones as share_group_tombstones

__all__ = [
    "OFFSETS_TOPIC",
    "OFFSETS_TOPIC_CONFIGS",
    "GroupCoordinator",
]

logger = logging.getLogger("kproto.broker")

#: The topic configs with which Kafka creates `__consumer_offsets`. segment.bytes is the default of
#: offsets.topic.segment.bytes.
OFFSETS_TOPIC_CONFIGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }
)


class _Loaded(NamedTuple):
    """Holds a partition of `__consumer_offsets` whose groups are loaded.

    `partitions` is the number of partitions of the topic. A change of the partition's leader epoch
    calls `unload`, which unloads the groups.
    """

    partition: Partition
    partitions: int
    unload: Callable[[], None]


class GroupCoordinator:
    """Finds the groups that a node coordinates, and writes records of groups.

    `retention_ms` is the retention time of committed offsets (offsets.retention.minutes). A group
    that has neither members nor offsets is kept for `check_interval_ms`
    (offsets.retention.check.interval.ms).
    """

    def __init__(
        self,
        topics: Topics,
        groups: GroupMetadataManager,
        *,
        retention_ms: int,
        check_interval_ms: int,
    ) -> None:
        self._topics = topics
        self._groups = groups
        self._retention_ms = retention_ms
        self._check_interval_ms = check_interval_ms
        self._loaded: dict[int, _Loaded] = {}
        groups.write = self.append

    # Coordinators

    @property
    def topic(self) -> Topic | None:
        """Returns the topic `__consumer_offsets`; None before it is created."""
        return self._topics.get(OFFSETS_TOPIC)

    def partition(self, group_id: str) -> Partition | None:
        """Returns a group's partition of `__consumer_offsets`; None before the topic is created.

        `Partition.moved` notifies watchers when the coordinator changes.
        """
        topic = self.topic
        if topic is None:
            return None
        return topic.partitions[partition_of(group_id, len(topic.partitions))]

    def coordinator(self, group_id: str) -> int:
        """Returns the node id of the coordinator of a group; NO_LEADER if there is none."""
        partition = self.partition(group_id)
        return NO_LEADER if partition is None else partition.leader_and_isr.leader

    def check_coordinator(self, node_id: int, group_id: str) -> Partition:
        """Returns the partition of `__consumer_offsets` that stores the group.

        Raises NOT_COORDINATOR if the node does not lead this partition.
        """
        partition = self.partition(group_id)
        if partition is None or partition.leader_and_isr.leader != node_id:
            raise api_error(
                "NOT_COORDINATOR", f"broker {node_id} is not the coordinator of the group"
            )
        return partition

    # Groups

    def find(self, node_id: int, group_id: str, now: ClockReading) -> AnyGroup | None:
        """Handles the expired timeouts of a group, then returns the group.

        Also removes expired offsets. If the group itself has expired, deletes it. Returns None if
        the group does not exist, or was deleted. Raises NOT_COORDINATOR if the node is not the
        coordinator of the group.
        """
        self._load(self.check_coordinator(node_id, group_id), now)
        group = self._groups.find(group_id, now)
        return None if group is None or self._remove_expired(group, now) else group

    def find_with_offsets(
        self, node_id: int, group_id: str, now: ClockReading
    ) -> OffsetsGroup | None:
        """Returns a group that commits offsets, as `find` does.

        Raises NOT_COORDINATOR, and GROUP_ID_NOT_FOUND for a share group.
        """
        group = self.find(node_id, group_id, now)
        if isinstance(group, ShareGroup):
            raise api_error("GROUP_ID_NOT_FOUND", f"Group {group_id} is not a consumer group.")
        return group

    def find_share_group(self, node_id: int, group_id: str, now: ClockReading) -> ShareGroup:
        """Returns a share group, as `find` does.

        Raises NOT_COORDINATOR, and GROUP_ID_NOT_FOUND for a missing group or a group of another
        type.
        """
        group = self.find(node_id, group_id, now)
        if not isinstance(group, ShareGroup):
            what = "not found" if group is None else "is not a share group"
            raise api_error("GROUP_ID_NOT_FOUND", f"Group {group_id} {what}.")
        return group

    def get_or_create(self, node_id: int, group_id: str, now: ClockReading) -> OffsetsGroup:
        """Returns a group, or a new empty classic group that is not stored yet.

        Raises NOT_COORDINATOR, and GROUP_ID_NOT_FOUND for a share group.
        """
        return self.find_with_offsets(node_id, group_id, now) or self._groups.get_or_create(
            group_id, now, persist=False
        )

    def get_or_create_share_group(
        self, node_id: int, group_id: str, now: ClockReading
    ) -> ShareGroup:
        """Returns the share group that a member joins; creates it if necessary.

        Raises NOT_COORDINATOR, and GROUP_ID_NOT_FOUND for a group of another type.
        """
        self.find(node_id, group_id, now)
        return self._groups.get_or_create_share_group(group_id, now)

    def get_or_create_classic_group(
        self, node_id: int, group_id: str, now: ClockReading
    ) -> OffsetsGroup:
        """Returns the group that a new member of the classic protocol joins.

        Creates a group if necessary. Raises NOT_COORDINATOR, INCONSISTENT_GROUP_PROTOCOL for a
        share group, and the errors of `append`.
        """
        self.find(node_id, group_id, now)
        return self._groups.get_or_create_classic_group(group_id, now)

    def get_or_create_consumer_group(
        self, node_id: int, group_id: str, now: ClockReading
    ) -> ConsumerGroup:
        """Returns the group that a member of the consumer protocol joins; creates it if necessary.

        Raises NOT_COORDINATOR, and the errors of
        `GroupMetadataManager.get_or_create_consumer_group`.
        """
        self.find(node_id, group_id, now)
        return self._groups.get_or_create_consumer_group(group_id, now)

    def groups_of(self, node_id: int, now: ClockReading) -> list[AnyGroup]:
        """Returns all groups that a node coordinates.

        First handles expired timeouts of the groups, and removes expired offsets and groups.
        """
        topic = self.topic
        for partition in () if topic is None else topic.partitions:
            if partition.leader_and_isr.leader == node_id:
                self._load(partition, now)
        return [
            group
            for group in self._groups.all(now)
            if self.coordinator(group.group_id) == node_id and not self._remove_expired(group, now)
        ]

    # Records

    def append(
        self,
        group_id: str,
        records: Sequence[CoordinatorRecord],
        now: ClockReading,
        producer: tuple[int, int] | None = None,
    ) -> None:
        """Appends the records of a change to a group as one batch; appends nothing without records.

        `producer` is the producer id and epoch of a transaction that the records belong to.

        Callers append before the change takes effect, so that a change that cannot be stored has no
        effect. The only exception is a classic group without members: it becomes Empty even if the
        records cannot be stored.

        Raises Kafka's errors:
        - NOT_COORDINATOR if the storage is full, or if `__consumer_offsets` does not exist. If the
          topic does not exist, the error is raised even without records.
        - COORDINATOR_NOT_AVAILABLE if too few replicas are in sync.
        - UNKNOWN_SERVER_ERROR if the batch is larger than max.message.bytes.
        """
        topic = self.topic
        partition = self.partition(group_id)
        if topic is None or partition is None:
            raise api_error("NOT_COORDINATOR", f"there is no {OFFSETS_TOPIC}")
        if not records:
            return
        append_to_coordinator_log(topic, partition, records, now.timestamp_ms, producer)

    def on_topic_deleted(self, deleted: Topic, now: ClockReading) -> None:
        """Removes the offsets that groups have committed for a deleted topic.

        As in Kafka, groups without a coordinator at this time keep their offsets.
        """
        topic = self.topic
        for partition in () if topic is None else topic.partitions:
            if partition.leader_and_isr.leader != NO_LEADER:
                self._load(partition, now)
        for group in self._groups.all(now):
            if self.coordinator(group.group_id) != NO_LEADER:
                if isinstance(group, ShareGroup):
                    self._remove_share_topic(group, deleted, now)
                    continue
                partitions = group.offsets.of_deleted_topic(deleted.name, deleted.topic_id)
                self._remove_offsets(group, partitions, now)

    @staticmethod
    def _remove_share_topic(group: ShareGroup, deleted: Topic, now: ClockReading) -> None:
        """Removes a deleted topic from the partitions of a share group that have a share state."""
        state = group.persisted
        if deleted.topic_id not in {*state.initialized, *state.initializing, *state.deleting}:
            return
        try:
            group.remove_topics([deleted.topic_id], now)
        except BrokerResponseError as error:
            safe_id = log_safe(group.group_id)
            logger.warning("the topics of group %s are not removed: %s", safe_id, error)

    def end_transaction(self, partition: Partition, producer_id: int, *, is_commit: bool) -> None:
        """Commits or drops the pending offsets of a producer, in the groups of a partition.

        The caller has appended the marker to the partition. Does nothing if the groups of the
        partition are not loaded, because loading reads the marker from the log.
        """
        loaded = self._loaded.get(partition.index)
        if loaded is None:
            return
        for group_id in self._groups.ids:
            if partition_of(group_id, loaded.partitions) == partition.index:
                self._groups.end_transaction(group_id, producer_id, is_commit=is_commit)

    def delete(self, group: AnyGroup, now: ClockReading) -> None:
        """Deletes a group with its committed and pending offsets. Raises the errors of `append`."""
        records = [offset_tombstone(group.group_id, *tp) for tp in group.offsets.partitions]
        if isinstance(group, ShareGroup):
            records = share_group_tombstones(group.group_id, group.persisted)
        elif isinstance(group, ConsumerGroup):
            records += group_tombstones_of(group.persisted, group.group_id)
        else:
            records.append(group_tombstone(group.group_id))
        self.append(group.group_id, records, now)
        self._groups.delete(group)

    def _remove_expired(self, group: AnyGroup, now: ClockReading) -> bool:
        """Removes expired offsets; returns True if the group was deleted, too.

        An Empty group is deleted if its last offsets have expired. An Empty group without offsets
        is deleted if it has been empty for the check interval, or if the time at which it became
        empty is unknown. Share groups do not expire.
        """
        if isinstance(group, ShareGroup):
            return False
        partitions = expired_offsets(group, now.timestamp_ms, self._retention_ms)
        if (
            group.state == ClassicGroupState.EMPTY
            and len(partitions) == len(group.offsets)
            and not group.offsets.has_pending
        ):
            since = group.last_empty_at
            if partitions or since is None or now.timestamp_ms - since >= self._check_interval_ms:
                return self._delete_expired_group(group, partitions, now)
        self._remove_offsets(group, partitions, now)
        return False

    def _delete_expired_group(
        self, group: AnyGroup, partitions: Sequence[TopicPartition], now: ClockReading
    ) -> bool:
        """Deletes an Empty group whose offsets (`partitions`) have all expired.

        Returns False if the tombstones cannot be stored; then the group remains.
        """
        try:
            self.delete(group, now)
        except BrokerResponseError as error:
            if (
                partitions
                and error.name == BATCH_TOO_LARGE
                and self._remove_offsets(group, partitions, now)
            ):
                return self._delete_expired_group(group, (), now)
            safe_id = log_safe(group.group_id)
            logger.warning("the expired group %s is not deleted: %s", safe_id, error)
            return False
        return True

    def _remove_offsets(
        self, group: AnyGroup, partitions: Sequence[TopicPartition], now: ClockReading
    ) -> bool:
        """Stores tombstones for the offsets of `partitions`, and removes the offsets.

        If the batch of tombstones is too large, stores several batches, as Kafka does. Returns
        False if a batch could not be stored; then the offsets of this batch and of all later
        batches remain.
        """
        try:
            records = [offset_tombstone(group.group_id, *tp) for tp in partitions]
            self.append(group.group_id, records, now)
        except BrokerResponseError as error:
            if error.name == BATCH_TOO_LARGE and len(partitions) > 1:
                half = len(partitions) // 2
                first, second = partitions[:half], partitions[half:]
                return self._remove_offsets(group, first, now) and self._remove_offsets(
                    group, second, now
                )
            safe_id = log_safe(group.group_id)
            logger.warning("the offsets of group %s are not removed: %s", safe_id, error)
            return False
        for tp in partitions:
            group.offsets.remove(*tp)
        return True

    def unload(self) -> None:
        """Unloads all groups: delayed requests get NOT_COORDINATOR."""
        for index in tuple(self._loaded):
            self._unload(index)

    def _load(self, partition: Partition, now: ClockReading) -> None:
        """Loads the groups of a partition from its log, unless they are loaded already."""
        topic = self.topic
        assert topic is not None
        index = partition.index
        if index in self._loaded:
            return
        unload = partial(self._unload, index)
        self._loaded[index] = _Loaded(partition, len(topic.partitions), unload)
        partition.moved.watchers.add(unload)
        found = load(_records(partition))
        for group_id, stored in found.items():
            self._groups.restore(group_id, stored, now)
        if found:
            logger.info("%s-%d: loaded %d groups", OFFSETS_TOPIC, index, len(found))

    def _unload(self, index: int) -> None:
        loaded = self._loaded.pop(index)
        loaded.partition.moved.watchers.discard(loaded.unload)
        for group_id in self._groups.ids:
            if partition_of(group_id, loaded.partitions) == index:
                self._groups.unload(group_id)


def _records(
    partition: Partition,
) -> Iterator[Record | TransactionalRecord | TransactionEnd]:
    """Yields the records of a partition's log, and the ends of transactions.

    Skips batches that cannot be decoded, and logs a warning: an admin client may have written
    invalid batches.
    """
    for batch in partition.log:
        try:
            if batch.is_control:
                marker = txn_marker_of(batch)
                if marker is not None:
                    yield TransactionEnd(marker.producer_id, marker.is_commit)
                continue
            records = list(batch.records(from_offset=partition.log.start_offset))
        except KprotoError as error:
            logger.warning("%s-%d: skipped a batch: %s", OFFSETS_TOPIC, partition.index, error)
            continue
        if batch.is_transactional:
            yield from (TransactionalRecord(record, batch.producer_id) for record in records)
        else:
            yield from records
