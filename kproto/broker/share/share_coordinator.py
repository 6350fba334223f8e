"""Implements the share coordinator, which stores the states of share partitions (KIP-932).

The key of a share partition hashes to a partition of `__share_group_state`, and the leader of that
partition is the coordinator of the share partition. The coordinator appends a record before a
change takes effect. When the leader epoch of a partition changes, its states are unloaded, and
loaded again from the log.

The checks and their order are those of Kafka 4.4.0. Kafka deletes records of `__share_group_state`
before the oldest ShareSnapshot that is still needed; this coordinator keeps all records.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Final, NamedTuple

from ...records import Record
from ...stored.coordinator_records import CoordinatorRecord
from ...wire.errors import BrokerResponseError, KprotoError
from ..api_error import api_error
from ..coordinator_log import append_to_coordinator_log
from ..coordinators import partition_of
from ..groups import ClockReading
from ..leader_and_isr import NO_LEADER
from ..storage.partition import Partition
from ..topics import Topic, Topics
from .share_state import (
    NO_COUNT,
    UNINITIALIZED_OFFSET,
    SharePartitionKey,
    ShareState,
    ShareStateWrite,
    combine_batches,
)
from .share_state_records import (
    SHARE_STATE_TOPIC,
    load,
    replay,
    snapshot_record,
    state_tombstone,
    update_record,
)

__all__ = ["SHARE_STATE_TOPIC", "SHARE_STATE_TOPIC_CONFIGS", "ShareCoordinator"]

logger = logging.getLogger("kproto.broker")

#: The topic configs with which Kafka creates `__share_group_state`.
SHARE_STATE_TOPIC_CONFIGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "min.insync.replicas": "2",
        "retention.ms": "-1",
        "segment.bytes": "104857600",
    }
)

#: The messages of FENCED_LEADER_EPOCH and FENCED_STATE_EPOCH.
_FENCED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "LEADER": "The leader epoch in the request is older than the epoch on the broker.",
        "STATE": "The coordinator rejected the request because the state epoch did not match.",
    }
)


class _Loaded(NamedTuple):
    """Holds the states of one partition of `__share_group_state`."""

    partition: Partition
    states: dict[SharePartitionKey, ShareState]
    unload: Callable[[], None]


class ShareCoordinator:
    """Stores the states of share partitions.

    `create_topic` creates `__share_group_state`. A ShareSnapshot record follows after
    `updates_per_snapshot` ShareUpdate records.
    """

    def __init__(
        self, topics: Topics, create_topic: Callable[[], None], *, updates_per_snapshot: int
    ) -> None:
        self._topics = topics
        self._create_topic = create_topic
        self._updates_per_snapshot = updates_per_snapshot
        self._loaded: dict[int, _Loaded] = {}

    # Coordinators

    @property
    def topic(self) -> Topic | None:
        """Returns the topic `__share_group_state`; None before it is created."""
        return self._topics.get(SHARE_STATE_TOPIC)

    def coordinator(self, key: str) -> int:
        """Returns the node id of the coordinator of `group:topicId:partition`, or NO_LEADER.

        The first lookup creates `__share_group_state`.
        """
        partition = self._partition(key)
        return NO_LEADER if partition is None else partition.leader_and_isr.leader

    def check_coordinator(self, node_id: int, key: SharePartitionKey) -> None:
        """Raises NOT_COORDINATOR if the node is not the coordinator of the share partition."""
        topic = self.topic
        if topic is not None:
            index = partition_of(key.coordinator_key, len(topic.partitions))
            if topic.partitions[index].leader_and_isr.leader == node_id:
                return
        raise api_error(
            "NOT_COORDINATOR", f"broker {node_id} is not the coordinator of the share partition"
        )

    def _partition(self, key: str) -> Partition | None:
        if self.topic is None:
            self._create_topic()
        topic = self.topic
        return None if topic is None else topic.partitions[partition_of(key, len(topic.partitions))]

    # Requests

    def initialize(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int, now: ClockReading
    ) -> None:
        """Creates the state of a share partition, or replaces it.

        Raises INVALID_REQUEST, FENCED_STATE_EPOCH, UNKNOWN_TOPIC_OR_PARTITION, and the errors of
        writing.
        """
        _check_partition(key)
        if state_epoch < 0:
            raise api_error("INVALID_REQUEST", "The state epoch cannot be a negative number.")
        former = self._states(key).get(key)
        if former is not None and former.state_epoch > state_epoch:
            raise _fenced("STATE")
        self._check_topic(key)
        state = ShareState(
            0 if former is None else former.snapshot_epoch + 1,
            state_epoch,
            0,
            start_offset,
            NO_COUNT if start_offset == UNINITIALIZED_OFFSET else 0,
            created_ms=now.timestamp_ms,
            written_ms=now.timestamp_ms,
        )
        self._append(key, snapshot_record(key, state), now)

    def read(self, key: SharePartitionKey, leader_epoch: int, now: ClockReading) -> ShareState:
        """Returns the state of a share partition, and stores its new leader epoch.

        Raises INVALID_REQUEST, FENCED_LEADER_EPOCH, UNKNOWN_TOPIC_OR_PARTITION, and the errors of
        writing.
        """
        _check_partition(key)
        if leader_epoch < 0:
            raise api_error("INVALID_REQUEST", "The leader epoch cannot be a negative number.")
        state = self._states(key).get(key)
        if state is None:
            raise api_error(
                "INVALID_REQUEST", "Read operation on uninitialized share partition not allowed."
            )
        if state.seen_leader_epoch > leader_epoch:
            raise _fenced("LEADER")
        self._check_topic(key)
        if state.seen_leader_epoch != leader_epoch:
            write = ShareStateWrite(
                state.state_epoch, leader_epoch, state.start_offset, state.complete_count, ()
            )
            self._write(key, state, write, leader_epoch, now)
        return state

    def summary(self, key: SharePartitionKey) -> ShareState:
        """Returns the state of a share partition; a state with start offset -1 if there is none.

        Raises INVALID_REQUEST, UNKNOWN_TOPIC_OR_PARTITION, COORDINATOR_NOT_AVAILABLE.
        """
        _check_partition(key)
        self._check_topic(key)
        return self._states(key).get(key, ShareState(0, 0, 0, UNINITIALIZED_OFFSET))

    def write(self, key: SharePartitionKey, write: ShareStateWrite, now: ClockReading) -> None:
        """Changes the state of a share partition.

        Raises INVALID_REQUEST, FENCED_LEADER_EPOCH, FENCED_STATE_EPOCH, UNKNOWN_TOPIC_OR_PARTITION,
        and the errors of writing.
        """
        _check_partition(key)
        for name, epoch in (("leader", write.leader_epoch), ("state", write.state_epoch)):
            if epoch < 0:
                raise api_error("INVALID_REQUEST", f"The {name} epoch cannot be a negative number.")
        state = self._states(key).get(key)
        if state is None:
            raise api_error(
                "INVALID_REQUEST", "Write operation on uninitialized share partition not allowed."
            )
        if state.seen_leader_epoch > write.leader_epoch:
            raise _fenced("LEADER")
        if state.state_epoch > write.state_epoch:
            raise _fenced("STATE")
        self._check_topic(key)
        self._write(key, state, write, state.leader_epoch, now)

    def delete(self, key: SharePartitionKey, now: ClockReading) -> None:
        """Deletes the state of a share partition; does nothing if there is none.

        Raises INVALID_REQUEST, UNKNOWN_TOPIC_OR_PARTITION, and the errors of writing.
        """
        _check_partition(key)
        self._check_topic(key)
        if key in self._states(key):
            self._append(key, state_tombstone(key), now)

    def on_topic_deleted(self, deleted: Topic, now: ClockReading) -> None:
        """Deletes the states of all share partitions of a deleted topic.

        Keeps the states of share partitions without a coordinator at this time.
        """
        topic = self.topic
        for partition in () if topic is None else topic.partitions:
            if partition.leader_and_isr.leader == NO_LEADER:
                continue
            for key in tuple(self._load(partition)):
                if key.topic_id == deleted.topic_id:
                    try:
                        self._append(key, state_tombstone(key), now)
                    except BrokerResponseError as error:
                        logger.warning("a share state is not deleted: %s", error)

    # Records

    def _write(
        self,
        key: SharePartitionKey,
        state: ShareState,
        write: ShareStateWrite,
        leader_epoch: int,
        now: ClockReading,
    ) -> None:
        """Appends a ShareUpdate record, or a ShareSnapshot record after many updates.

        The start offset never moves back. If a write has an earlier start offset, its delivery
        complete count is ignored.
        """
        start_offset = max(write.start_offset, state.start_offset)
        complete_count = write.complete_count
        if write.start_offset == state.start_offset:
            complete_count = max(complete_count, state.complete_count)
        elif write.start_offset < state.start_offset:
            complete_count = state.complete_count
        is_snapshot = state.updates >= self._updates_per_snapshot
        former = state.batches if is_snapshot else ()
        changed = replace(
            state,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            complete_count=complete_count,
            batches=combine_batches(former, write.batches, start_offset),
        )
        if is_snapshot:
            changed = replace(
                changed,
                snapshot_epoch=state.snapshot_epoch + 1,
                created_ms=now.timestamp_ms,
                written_ms=now.timestamp_ms,
            )
            self._append(key, snapshot_record(key, changed), now)
        else:
            self._append(key, update_record(key, changed), now)

    def _append(self, key: SharePartitionKey, record: CoordinatorRecord, now: ClockReading) -> None:
        """Appends a record, and then applies it.

        Raises the errors of `append_to_coordinator_log`.
        """
        states = self._states(key)
        topic, partition = self.topic, self._partition(key.coordinator_key)
        assert topic is not None
        assert partition is not None
        append_to_coordinator_log(topic, partition, [record], now.timestamp_ms)
        replay(states, record)

    def _check_topic(self, key: SharePartitionKey) -> None:
        name = self._topics.name_of(key.topic_id)
        topic = self._topics.get(name)
        if topic is None or key.partition >= len(topic.partitions):
            raise api_error(
                "UNKNOWN_TOPIC_OR_PARTITION", "This server does not host this topic-partition."
            )

    def _states(self, key: SharePartitionKey) -> dict[SharePartitionKey, ShareState]:
        """Returns the states in the partition of a key.

        Raises COORDINATOR_NOT_AVAILABLE if the partition has no leader.
        """
        partition = self._partition(key.coordinator_key)
        if partition is None or partition.leader_and_isr.leader == NO_LEADER:
            raise api_error("COORDINATOR_NOT_AVAILABLE", "the share partition has no coordinator")
        return self._load(partition)

    def _load(self, partition: Partition) -> dict[SharePartitionKey, ShareState]:
        """Returns the states of a partition; loads them from the log if necessary."""
        index = partition.index
        if index not in self._loaded:
            unload = partial(self._unload, index)
            self._loaded[index] = _Loaded(partition, load(_records(partition)), unload)
            partition.moved.watchers.add(unload)
        return self._loaded[index].states

    def _unload(self, index: int) -> None:
        loaded = self._loaded.pop(index)
        loaded.partition.moved.watchers.discard(loaded.unload)


def _records(partition: Partition) -> Iterator[Record]:
    """Yields the records of a partition's log; skips batches that cannot be decoded."""
    for batch in partition.log:
        if batch.is_control:
            continue
        try:
            yield from batch.records(from_offset=partition.log.start_offset)
        except KprotoError as error:
            logger.warning("%s-%d: skipped a batch: %s", SHARE_STATE_TOPIC, partition.index, error)


def _check_partition(key: SharePartitionKey) -> None:
    if key.partition < 0:
        raise api_error("INVALID_REQUEST", "The partition id cannot be a negative number.")


def _fenced(kind: str) -> BrokerResponseError:
    return api_error(f"FENCED_{kind}_EPOCH", _FENCED[kind])
