"""One partition: its log, its producers, its leader and its ISR."""

from __future__ import annotations

from ..leader_and_isr import LeaderAndIsr
from ..watchable import Watchable
from .log import PartitionLog
from .memory_log import MemoryLog
from .producer_state import ProducerStateManager
from .storage_limit import StorageLimit

__all__ = ["Partition"]


class Partition:
    """A partition with its log and the state of its idempotent producers.

    All replicas have the same records and no transaction is ever open, so that high watermark and
    last stable offset are the log end offset.
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
        #: Changes with each leader epoch and when the topic is deleted, but not with appends: for
        #: requests that wait for a coordinator.
        self.moved = Watchable()

    @property
    def high_watermark(self) -> int:
        """Returns the end of the records that consumers may read."""
        return self.log.end_offset

    @property
    def last_stable_offset(self) -> int:
        """Returns the end of the records that read_committed consumers may read."""
        return self.log.end_offset

    def update_leader_and_isr(self, leader_and_isr: LeaderAndIsr) -> bool:
        """Sets leader and ISR; returns True if the leader changed, which raises the leader epoch.

        A new leader epoch wakes the requests that wait for the log: their broker answers
        NOT_LEADER_OR_FOLLOWER if it leads no more.
        """
        before, self.leader_and_isr = self.leader_and_isr, leader_and_isr
        if before.leader == leader_and_isr.leader:
            return False
        self._assign_epoch()
        return True

    def truncate(self, offset: int) -> int:
        """Truncates the log at `offset`, as an unclean leader election does; returns its new end.

        Whole batches are lost, and the leader epoch rises. Producer state is rebuilt from the
        remaining batches. Raises OFFSET_OUT_OF_RANGE for an offset that is not within the log.
        """
        self.log.truncate(offset)
        self.producer_states.truncate(self.log.end_offset, self.log)
        self._assign_epoch()
        return self.log.end_offset

    def _assign_epoch(self) -> None:
        epochs = self.log.epochs
        epochs.assign(epochs.current + 1, self.log.end_offset)
        self.log.notify()
        self.moved.notify()
