"""One partition: its log, who writes to it, and who leads it."""

from __future__ import annotations

from ..leadership import Leadership
from .log import PartitionLog
from .memory import MemoryLog
from .room import Room
from .sequences import ProducerSequences

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

    @property
    def high_watermark(self) -> int:
        """The end of what consumers may read."""
        return self.log.end_offset

    @property
    def last_stable_offset(self) -> int:
        """The end of what consumers of committed records may read."""
        return self.log.end_offset
