"""Implements the transaction coordinator, which stores transactional ids and ends transactions.

A transactional id hashes to a partition of `__transaction_state`, and the leader of that partition
is the id's coordinator (KIP-98). `transaction_decisions` decides about requests. The coordinator
writes the record of a transition before the transition takes effect, and then writes the markers.
When the leader epoch of a partition changes, the ids of the partition are unloaded, and loaded
again from the log.

Kafka's coordinator sends the markers after it has responded to EndTxn; this coordinator writes them
before it responds. A marker waits only while its partition has no leader, or too small an ISR.
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
from ...stored.transaction_markers import TxnMarker
from ...wire.errors import BrokerResponseError, KprotoError
from ..api_error import api_error
from ..coordinator_log import append_to_coordinator_log
from ..coordinators import partition_of
from ..groups import ClockReading
from ..groups.committed_offsets import TopicPartition
from ..leader_and_isr import NO_LEADER
from ..log_escaping import log_safe
from ..storage.partition import Partition
from ..topics import Topic, Topics
from .transaction_decisions import (
    ProducerIdAndEpoch,
    decide_add_partitions,
    decide_end,
    decide_forced_abort,
    decide_init_producer_id,
    is_in_transaction,
)
from .transaction_metadata import (
    EPOCH_BUMP_VERSION,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMEOUT_MS,
    TransactionMetadata,
)
from .transaction_records import (
    FIRST_VERSION_OF_TAGS,
    TRANSACTION_TOPIC,
    load,
    transaction_record,
    transaction_tombstone,
)
from .transaction_state import TransactionState

__all__ = [
    "TRANSACTION_TOPIC",
    "TRANSACTION_TOPIC_CONFIGS",
    "InitializedProducer",
    "TransactionCoordinator",
]

logger = logging.getLogger("kproto.broker")

#: The topic configs with which Kafka creates `__transaction_state`.
TRANSACTION_TOPIC_CONFIGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "2",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    }
)

#: Appends a marker to a partition. Raises BrokerResponseError if the append must be retried.
WriteMarker = Callable[[Topic, int, TxnMarker, ClockReading], None]


class _Loaded(NamedTuple):
    """Holds a loaded partition and its metadata by transactional id.

    `unload` is called when the leader epoch of the partition changes.
    """

    partition: Partition
    metadata: dict[str, TransactionMetadata]
    unload: Callable[[], None]


class InitializedProducer(NamedTuple):
    """Holds a producer's id and epoch, and those of the transaction that it has taken over."""

    producer: ProducerIdAndEpoch
    ongoing: ProducerIdAndEpoch = ProducerIdAndEpoch(NO_PRODUCER_ID, NO_EPOCH)


class TransactionCoordinator:
    """Coordinates the transactional ids of a cluster.

    `new_producer_id` returns an unused producer id. `transaction_version` is the finalized level of
    the feature transaction.version. `max_timeout_ms` is the largest transaction timeout
    (transaction.max.timeout.ms). An idle transactional id is kept for `expiration_ms`
    (transactional.id.expiration.ms). `allows_two_phases` enables two-phase commit
    (transaction.two.phase.commit.enable).
    """

    def __init__(
        self,
        topics: Topics,
        write_marker: WriteMarker,
        new_producer_id: Callable[[], int],
        *,
        transaction_version: int,
        max_timeout_ms: int,
        expiration_ms: int,
        allows_two_phases: bool = False,
    ) -> None:
        self._topics = topics
        self._write_marker = write_marker
        self._new_producer_id = new_producer_id
        self.transaction_version = transaction_version
        self._max_timeout_ms = max_timeout_ms
        self._expiration_ms = expiration_ms
        self.allows_two_phases = allows_two_phases
        self._loaded: dict[int, _Loaded] = {}
        # The indexes of unloaded partitions that may have ongoing or prepared transactions.
        self._unloaded: set[int] = set()
        # The transactional ids with an ongoing or prepared transaction.
        self._active: set[str] = set()

    @property
    def keeps_prepared(self) -> bool:
        """Returns True if producers may take over transactions.

        Records of version 0 cannot store that a producer has taken over a transaction.
        """
        return self.allows_two_phases and self.transaction_version >= FIRST_VERSION_OF_TAGS

    # Coordinators

    @property
    def topic(self) -> Topic | None:
        """Returns the topic `__transaction_state`; None before it is created."""
        return self._topics.get(TRANSACTION_TOPIC)

    def _partition(self, transactional_id: str) -> Partition | None:
        topic = self.topic
        if topic is None:
            return None
        return topic.partitions[partition_of(transactional_id, len(topic.partitions))]

    def coordinator(self, transactional_id: str) -> int:
        """Returns the node id of the coordinator of an id; NO_LEADER if there is none."""
        partition = self._partition(transactional_id)
        return NO_LEADER if partition is None else partition.leader_and_isr.leader

    def check_coordinator(self, node_id: int, transactional_id: str) -> None:
        """Raises NOT_COORDINATOR if the node is not the coordinator of the id."""
        if self.coordinator(transactional_id) != node_id:
            raise api_error(
                "NOT_COORDINATOR",
                f"broker {node_id} is not the coordinator of transactional id {transactional_id!r}",
            )

    # Requests

    def init_producer_id(
        self,
        transactional_id: str,
        timeout_ms: int,
        current: ProducerIdAndEpoch | None,
        now: ClockReading,
        *,
        has_two_phases: bool = False,
        keeps_prepared: bool = False,
    ) -> InitializedProducer:
        """Returns the producer id and epoch for a producer; creates an unknown transactional id.

        `current` is the producer id and epoch that the producer has, None if it has none. If a
        transaction is ongoing, aborts it and raises CONCURRENT_TRANSACTIONS: then the producer
        repeats the request. With `keeps_prepared` the producer takes over an ongoing transaction.
        With `has_two_phases` the producer's transactions never time out. Raises
        INVALID_TRANSACTION_TIMEOUT, and the errors of `decide_init_producer_id` and `_store`.
        """
        if has_two_phases:
            timeout_ms = NO_TIMEOUT_MS
        elif not 0 < timeout_ms <= self._max_timeout_ms:
            raise api_error(
                "INVALID_TRANSACTION_TIMEOUT",
                f"the transaction timeout is {timeout_ms} ms; it must be from 1 to "
                f"{self._max_timeout_ms} (transaction.max.timeout.ms)",
            )
        metadata = self.find(transactional_id, now)
        if metadata is None:
            metadata = TransactionMetadata(transactional_id, self._new_producer_id(), timeout_ms)
        decided = decide_init_producer_id(
            metadata,
            timeout_ms,
            current,
            now.timestamp_ms,
            self._new_producer_id,
            keeps_prepared=keeps_prepared,
        )
        if keeps_prepared and decided.state is TransactionState.ONGOING:
            self._store(decided, now)
            return InitializedProducer(
                ProducerIdAndEpoch(decided.next_producer_id, decided.next_epoch),
                ProducerIdAndEpoch(decided.producer_id, decided.epoch),
            )
        if decided.state is TransactionState.ONGOING:
            self._force_abort(decided, now)
            raise api_error(
                "CONCURRENT_TRANSACTIONS",
                f"the ongoing transaction of {transactional_id!r} was aborted; try again",
            )
        self._store(decided, now)
        return InitializedProducer(ProducerIdAndEpoch(decided.producer_id, decided.epoch))

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: frozenset[TopicPartition],
        now: ClockReading,
        client_version: int,
    ) -> None:
        """Adds partitions to the producer's transaction, and begins one if none is ongoing.

        Raises the errors of `decide_add_partitions` and `_store`.
        """
        metadata = self.find(transactional_id, now)
        decided = decide_add_partitions(
            metadata, producer, partitions, now.timestamp_ms, client_version
        )
        if decided is not metadata:
            self._store(decided, now)

    def verify_partition(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partition: TopicPartition,
        now: ClockReading,
    ) -> None:
        """Raises TRANSACTION_ABORTABLE if a partition is not in the producer's transaction.

        Also raises the errors of `is_in_transaction`.
        """
        metadata = self.find(transactional_id, now)
        if not is_in_transaction(metadata, producer, partition):
            raise api_error(
                "TRANSACTION_ABORTABLE",
                f"{partition.topic}-{partition.partition} was not added to the transaction of "
                f"{transactional_id!r}",
            )

    def end_transaction(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        now: ClockReading,
        *,
        is_commit: bool,
        client_version: int,
    ) -> ProducerIdAndEpoch:
        """Commits or aborts the producer's transaction.

        Returns the producer id and epoch for the next transaction. Raises the errors of
        `decide_end` and `_store`.
        """
        metadata = self.find(transactional_id, now)
        decided = decide_end(
            metadata,
            producer,
            is_commit=is_commit,
            client_version=client_version,
            now_ms=now.timestamp_ms,
            new_producer_id=self._new_producer_id,
        )
        if decided is not metadata:
            self._store(decided, now)
            self._complete(decided, now)
        if decided.is_taken_over:
            return ProducerIdAndEpoch(*decided.producer_after_takeover)
        if decided.next_producer_id != NO_PRODUCER_ID:
            return ProducerIdAndEpoch(decided.next_producer_id, 0)
        return ProducerIdAndEpoch(decided.producer_id, decided.epoch)

    # Metadata

    def find(self, transactional_id: str, now: ClockReading) -> TransactionMetadata | None:
        """Handles the timeouts that are due, then returns the metadata of a transactional id.

        Returns None if the id is unknown. Raises COORDINATOR_NOT_AVAILABLE if the id has no
        coordinator.
        """
        partition = self._partition(transactional_id)
        if partition is None or partition.leader_and_isr.leader == NO_LEADER:
            raise api_error(
                "COORDINATOR_NOT_AVAILABLE",
                f"transactional id {transactional_id!r} has no coordinator",
            )
        found = self._load(partition, now).metadata
        self._advance(transactional_id, found, now)
        return found.get(transactional_id)

    def ids_of(self, node_id: int, now: ClockReading) -> list[TransactionMetadata]:
        """Handles the expired timeouts of the transactional ids that a node coordinates.

        Then returns the metadata of all transactional ids that the node coordinates.
        """
        topic = self.topic
        result: list[TransactionMetadata] = []
        for partition in () if topic is None else topic.partitions:
            if partition.leader_and_isr.leader == node_id:
                found = self._load(partition, now).metadata
                for transactional_id in tuple(found):
                    self._advance(transactional_id, found, now)
                result.extend(found.values())
        return result

    def advance(self, now: ClockReading) -> None:
        """Aborts transactions that have timed out, and writes markers that had to wait.

        Handlers call `advance` before they use a last stable offset.
        """
        topic = self.topic
        if topic is None:
            return
        for index in tuple(self._unloaded):
            partition = topic.partitions[index]
            if partition.leader_and_isr.leader != NO_LEADER:
                self._load(partition, now)
        for transactional_id in tuple(self._active):
            loaded = self._loaded.get(partition_of(transactional_id, len(topic.partitions)))
            if loaded is not None and loaded.partition.leader_and_isr.leader != NO_LEADER:
                self._advance(transactional_id, loaded.metadata, now)

    def _advance(
        self, transactional_id: str, found: dict[str, TransactionMetadata], now: ClockReading
    ) -> None:
        """Handles the timeouts of one id: writes missing markers, aborts, or removes the id."""
        metadata = found.get(transactional_id)
        if metadata is None:
            return
        try:
            if metadata.state.is_prepared:
                self._complete(metadata, now)
            elif metadata.is_timed_out(now.timestamp_ms):
                logger.info(
                    "transactional id %s: the transaction has timed out after %d ms",
                    log_safe(transactional_id),
                    metadata.timeout_ms,
                )
                self._force_abort(metadata, now)
            elif metadata.is_expired(now.timestamp_ms, self._expiration_ms):
                self._append(transactional_id, transaction_tombstone(transactional_id), now)
                del found[transactional_id]
        except BrokerResponseError as error:
            logger.warning("transactional id %s: %s", log_safe(transactional_id), error)

    def _force_abort(self, metadata: TransactionMetadata, now: ClockReading) -> None:
        """Aborts the ongoing transaction of an id, and fences its producer.

        Raises the errors of `_store`. The transaction is then not aborted, but below transaction
        version 2 the producer stays fenced by the bumped epoch, as in Kafka.
        """
        prepared = decide_forced_abort(
            metadata, now.timestamp_ms, self._new_producer_id, self.transaction_version
        )
        try:
            self._store(prepared, now)
        except BrokerResponseError:
            if self.transaction_version < EPOCH_BUMP_VERSION:
                self._keep(replace(metadata.fenced(), has_failed_fence=True))
            raise
        self._complete(prepared, now)

    def _complete(self, metadata: TransactionMetadata, now: ClockReading) -> None:
        """Writes the markers of a prepared transaction, and then stores that it is complete.

        If a marker cannot be written yet, the transaction stays prepared, and `advance` tries
        again.
        """
        partition = self._partition(metadata.transactional_id)
        assert partition is not None
        marker = TxnMarker(
            metadata.producer_id,
            metadata.epoch,
            metadata.state is TransactionState.PREPARE_COMMIT,
            partition.log.epochs.current,
            metadata.client_version,
        )
        waiting = frozenset(
            tp for tp in metadata.partitions if not self._is_marked(tp, marker, now)
        )
        if waiting:
            self._keep(replace(metadata, partitions=waiting))
            return
        try:
            self._store(metadata.completed(now.timestamp_ms), now)
        except BrokerResponseError as error:
            self._keep(replace(metadata, partitions=waiting))
            logger.warning(
                "transactional id %s: cannot store the end of the transaction: %s",
                log_safe(metadata.transactional_id),
                error,
            )

    def _is_marked(self, tp: TopicPartition, marker: TxnMarker, now: ClockReading) -> bool:
        """Appends a marker to a partition; returns False if the append must be retried.

        Returns True for a deleted partition, and for a partition whose producer has a newer epoch
        or marker.
        """
        topic = self._topics.get(tp.topic)
        if topic is None or tp.partition >= len(topic.partitions):
            return True
        try:
            self._write_marker(topic, tp.partition, marker, now)
        except BrokerResponseError as error:
            if error.name in {"INVALID_PRODUCER_EPOCH", "TRANSACTION_COORDINATOR_FENCED"}:
                logger.info("%s-%d: no marker: %s", tp.topic, tp.partition, error)
                return True
            return False
        return True

    # Records

    def _store(self, metadata: TransactionMetadata, now: ClockReading) -> None:
        """Appends the record of a transition, and lets the transition take effect.

        Raises NOT_COORDINATOR if the storage is full, COORDINATOR_NOT_AVAILABLE if too few replicas
        are in sync, and UNKNOWN_SERVER_ERROR if the record is larger than max.message.bytes.
        """
        record = transaction_record(metadata, self.transaction_version)
        self._append(metadata.transactional_id, record, now)
        self._keep(metadata)

    def _keep(self, metadata: TransactionMetadata) -> None:
        transactional_id = metadata.transactional_id
        partition = self._partition(transactional_id)
        assert partition is not None
        self._loaded[partition.index].metadata[transactional_id] = metadata
        self._note_activity(metadata)

    def _note_activity(self, metadata: TransactionMetadata) -> None:
        if metadata.state is TransactionState.ONGOING or metadata.state.is_prepared:
            self._active.add(metadata.transactional_id)
        else:
            self._active.discard(metadata.transactional_id)

    def _append(self, transactional_id: str, record: CoordinatorRecord, now: ClockReading) -> None:
        topic, partition = self.topic, self._partition(transactional_id)
        assert topic is not None
        assert partition is not None
        append_to_coordinator_log(topic, partition, [record], now.timestamp_ms)

    def _load(self, partition: Partition, now: ClockReading) -> _Loaded:
        """Loads the ids of a partition from its log, unless they are loaded already.

        Writes the markers of transactions that are prepared but not complete.
        """
        index = partition.index
        if index in self._loaded:
            return self._loaded[index]
        self._unloaded.discard(index)
        unload = partial(self._unload, index)
        loaded = _Loaded(partition, load(_records(partition)), unload)
        self._loaded[index] = loaded
        partition.moved.watchers.add(unload)
        for metadata in tuple(loaded.metadata.values()):
            self._note_activity(metadata)
            if metadata.state.is_prepared:
                self._complete(metadata, now)
        return loaded

    def _unload(self, index: int) -> None:
        loaded = self._loaded.pop(index)
        loaded.partition.moved.watchers.discard(loaded.unload)
        self._active.difference_update(loaded.metadata)
        topic = self.topic
        if topic is not None and topic.partitions[index] is loaded.partition:
            self._unloaded.add(index)


def _records(partition: Partition) -> Iterator[Record]:
    """Yields the records of a partition's log; skips batches that cannot be decoded."""
    for batch in partition.log:
        if batch.is_control:
            continue
        try:
            yield from list(batch.records(from_offset=partition.log.start_offset))
        except KprotoError as error:
            logger.warning("%s-%d: skipped a batch: %s", TRANSACTION_TOPIC, partition.index, error)
