"""One partition: its log, who writes to it, and who leads it."""

from __future__ import annotations

from ..leader_and_isr import LeaderAndIsr
from ..watchable import Watchable
from .log import PartitionLog
from .memory_log import MemoryLog
from .producer_state import ProducerStateManager
from .storage_limit import StorageLimit

__all__ = ["Partition"]


class Partition:
    """One partition: its log, and the idempotent producers that write to it.

    Every replica has what the leader has and no transaction is ever open, so that the high
    watermark and the last stable offset are the end of the log.
    """

    def __init__(
        self,
        index: int,
        log: PartitionLog | None = None,
        *,
        leader_and_isr: LeaderAndIsr | None = None,
        room: StorageLimit | None = None,
    ) -> None:
        self.index = index
        self.leader_and_isr = LeaderAndIsr.first((0,)) if leader_and_isr is None else leader_and_isr
        self.log = MemoryLog(room) if log is None else log
        self.producer_states = ProducerStateManager()
        #: Changes with each leader epoch and when the topic is deleted, and not with appends: for
        #: what waits where the leader coordinates something.
        self.moved = Watchable()

    @property
    def high_watermark(self) -> int:
        """The end of what consumers may read."""
        return self.log.end_offset

    @property
    def last_stable_offset(self) -> int:
        """The end of what consumers of committed records may read."""
        return self.log.end_offset

    def update_leader_and_isr(self, leader_and_isr: LeaderAndIsr) -> bool:
        """Sets leader and ISR; returns True if the leader changed, which raises the leader epoch.

        A new leader epoch wakes the requests that wait for the log: their broker answers
        NOT_LEADER_OR_FOLLOWER if it leads no more.
        """
        before, self.leader_and_isr = self.leader_and_isr, leader_and_isr
        if before.leader == leader_and_isr.leader:
            return False
        self._begin_epoch()
        return True

    def truncate(self, offset: int) -> int:
        """Lose the end of the log from `offset` on, as after an unclean election; its new end.

        Batches are lost whole, and the leader epoch rises. Producers are known by what is left.
        Raises OFFSET_OUT_OF_RANGE for an offset that is not within the log.
        """
        self.log.truncate(offset)
        self.producer_states.truncate(self.log.end_offset, self.log)
        self._begin_epoch()
        return self.log.end_offset

    def _begin_epoch(self) -> None:
        epochs = self.log.epochs
        epochs.begin(epochs.current + 1, self.log.end_offset)
        self.log.notify()
        self.moved.notify()
