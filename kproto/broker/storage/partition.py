"""Defines a partition with its log, its producers, its leader and its ISR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...records import RecordBatch
from ...stored.transaction_markers import TxnMarker, encode_txn_marker
from ..leader_and_isr import LeaderAndIsr
from ..topic_configs import TopicConfig
from ..watchable import Watchable
from .log import PartitionLog
from .memory_log import MemoryLog
from .producer_state import ProducerStateManager
from .storage_limit import StorageLimit

__all__ = ["Cleanup", "Partition"]


class Cleanup(NamedTuple):
    """Holds the configs and the offsets of a log after a cleanup.

    Until the time `until_ms`, another cleanup changes nothing, if these values are the same.
    """

    config: TopicConfig
    start_offset: int
    end_offset: int
    until_ms: int


class Partition:
    """Holds the log of a partition, the state of its producers, its leader and ISR.

    All replicas share the log, so the high watermark is always the log end offset.
    """

    def __init__(
        self,
        index: int,
        log: PartitionLog | None = None,
        *,
        leader_and_isr: LeaderAndIsr | None = None,
        storage_limit: StorageLimit | None = None,
    ) -> None:
        self.index = index
        self.leader_and_isr = LeaderAndIsr.first((0,)) if leader_and_isr is None else leader_and_isr
        self.log = MemoryLog(storage_limit) if log is None else log
        self.producer_states = ProducerStateManager()
        #: The log directories to which AlterReplicaLogDirs has moved replicas, by node id.
        self.log_dirs: dict[int, str] = {}
        #: The last cleanup of a log that is not compacted; None before, and after a truncation.
        self.last_cleanup: Cleanup | None = None
        #: The offset from which records are not yet compacted.
        self.first_dirty_offset = 0
        #: When the log was last checked for compaction, in ms; None before the first check.
        self.cleaner_checked_ms: int | None = None
        #: Whether compaction has failed, because a batch could not be decoded.
        self.is_uncleanable = False
        #: Notifies of each new leader epoch, and of the deletion of the topic. The group
        #: coordinator watches `moved`, to unload groups. `log` notifies of these two events, and
        #: also of appends.
        self.moved = Watchable()

    def log_dir(self, node: int, log_dirs: Sequence[str]) -> str:
        """Returns the log directory of the replica on a node, one of `log_dirs`."""
        return self.log_dirs.get(node, log_dirs[self.index % len(log_dirs)])

    @property
    def high_watermark(self) -> int:
        """Returns the high watermark: the log end offset, because all replicas share one log."""
        return self.log.end_offset

    @property
    def last_stable_offset(self) -> int:
        """Returns the offset up to which read_committed consumers may read (KIP-98).

        The last stable offset is the lowest offset of a record of an ongoing transaction; without
        an ongoing transaction, the high watermark. As in Kafka, the result is never below the log
        start offset.
        """
        first = self.producer_states.first_unstable_offset
        return self.high_watermark if first is None else max(first, self.log.start_offset)

    def committed_batches(self) -> list[RecordBatch]:
        """Returns the batches up to the last stable offset, except batches of aborted transactions.

        Also returns control batches.
        """
        end_offset = self.last_stable_offset
        aborted = self.producer_states.aborted_transactions(self.log.start_offset, end_offset)
        return [
            batch
            for batch in self.log
            if batch.base_offset < end_offset
            and not any(
                batch.is_transactional
                and each.producer_id == batch.producer_id
                and each.first_offset <= batch.base_offset < each.last_offset
                for each in aborted
            )
        ]

    def append_of_coordinator(self, batch: RecordBatch, now_ms: int) -> None:
        """Appends a batch of a group coordinator, which has no sequence numbers.

        Raises the errors of `ProducerStateManager.check`, and KAFKA_STORAGE_ERROR if the storage is
        full.
        """
        if batch.producer_id < 0:
            self.log.append(batch, now_ms)
            return
        self.producer_states.check(batch, checks_sequence=False)
        offset = self.log.append(batch, now_ms, notifies=False)
        self.producer_states.update(batch, offset, batch.max_timestamp, now_ms)
        self.log.notify()

    def end_transaction(self, marker: TxnMarker, now_ms: int, *, stamp_time: bool = False) -> int:
        """Appends a commit or abort marker (KIP-98), and returns its offset.

        `now_ms` is the timestamp of the marker; with `stamp_time`, it is the log append time.
        Raises the errors of `ProducerStateManager.check_marker`, and KAFKA_STORAGE_ERROR if the
        storage is full.
        """
        self.producer_states.check_marker(marker)
        batch = RecordBatch(encode_txn_marker(marker, now_ms))
        offset = self.log.append(batch, now_ms, stamp_time=stamp_time, notifies=False)
        self.producer_states.on_marker(marker, offset, now_ms, now_ms)
        self.log.notify()
        return offset

    def update_leader_and_isr(self, leader_and_isr: LeaderAndIsr) -> bool:
        """Sets leader and ISR. If the leader changes, bumps the leader epoch and returns True.

        The leader epoch also rises if a replica is removed, as in Kafka. A new epoch notifies the
        watchers of the log, so that the former leader checks its delayed Fetches again.
        """
        before, self.leader_and_isr = self.leader_and_isr, leader_and_isr
        is_same = set(before.replicas) <= set(leader_and_isr.replicas)
        if before.leader == leader_and_isr.leader and is_same:
            return False
        self._assign_epoch()
        return True

    def truncate(self, offset: int) -> int:
        """Truncates the log at `offset` like an unclean leader election; returns the end offset.

        The batch that contains `offset` is lost as a whole. If a batch is lost, bumps the leader
        epoch, and rebuilds the producer state from the remaining batches; else changes nothing.
        Raises OFFSET_OUT_OF_RANGE if `offset` is outside of the log.
        """
        end_offset = self.log.end_offset
        self.last_cleanup = None
        self.log.truncate(offset)
        if self.log.end_offset == end_offset:
            return end_offset
        self.first_dirty_offset = min(self.first_dirty_offset, self.log.end_offset)
        self.producer_states.truncate(self.log.end_offset, list(self.log))
        self._assign_epoch()
        return self.log.end_offset

    def _assign_epoch(self) -> None:
        epochs = self.log.epochs
        epochs.assign(epochs.current + 1, self.log.end_offset)
        self.log.notify()
        self.moved.notify()
