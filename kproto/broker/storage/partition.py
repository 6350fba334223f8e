"""One partition: its log, who writes to it, and who leads it."""

from __future__ import annotations

from ..leader_and_isr import Leadership
from ..watchable import Watched
from .log import PartitionLog
from .memory_log import MemoryLog
from .producer_state import ProducerSequences
from .storage_limit import Room

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
        led: Leadership | None = None,
        room: Room | None = None,
    ) -> None:
        self.index = index
        self.led = Leadership.first((0,)) if led is None else led
        self.log = MemoryLog(room) if log is None else log
        self.sequences = ProducerSequences()
        #: Changes with each leader epoch and when the topic is deleted, and not with appends: for
        #: what waits where the leader coordinates something.
        self.moved = Watched()

    @property
    def high_watermark(self) -> int:
        """The end of what consumers may read."""
        return self.log.end_offset

    @property
    def last_stable_offset(self) -> int:
        """The end of what consumers of committed records may read."""
        return self.log.end_offset

    def take_leadership(self, led: Leadership) -> bool:
        """Let `led` count from now on; whether the leader is another, so that the epoch rose.

        Who waits for the log is woken: the answer of another leader is NOT_LEADER_OR_FOLLOWER.
        """
        before, self.led = self.led, led
        if before.leader == led.leader:
            return False
        self._begin_epoch()
        return True

    def truncate(self, offset: int) -> int:
        """Lose the end of the log from `offset` on, as after an unclean election; its new end.

        Batches are lost whole, and the leader epoch rises. Producers are known by what is left.
        Raises OFFSET_OUT_OF_RANGE for an offset that is not within the log.
        """
        self.log.truncate(offset)
        self.sequences.truncate(self.log.end_offset, self.log)
        self._begin_epoch()
        return self.log.end_offset

    def _begin_epoch(self) -> None:
        epochs = self.log.epochs
        epochs.begin(epochs.current + 1, self.log.end_offset)
        self.log.notify()
        self.moved.notify()
