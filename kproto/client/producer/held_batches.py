"""`HeldBatches`: the batches that a call of `send_many` opens, and that its next records may fill.

Without a linger an open batch is sent in the next iteration of the event loop. A call with many
records yields to the loop many times, so that its batches would have few records each. Therefore
such a batch is held until it is full, until the call ends, or until half of the buffer is used. If
the call appends its records by partition, a batch is also sent when it is large enough, or when the
call has no more records for its partition.
"""

from __future__ import annotations

from typing import Final

from .accumulator import RecordAccumulator
from .batch import ProducerBatch

__all__ = ["HeldBatches"]

#: A batch of this size in bytes is sent after a run of records, although later records of the call
#: may fill it: `batch.size` of Kafka's producer has this default.
SENT_BYTES: Final = 16_384

#: The values of `ready_at` of a batch that is held, and of one that may be sent.
_HELD: Final = float("inf")
_READY: Final = float("-inf")


class HeldBatches:
    """Holds batches until `release`; with a linger, or if not `is_active`, it holds none."""

    __slots__ = ("_accumulator", "_batches", "_is_active")

    def __init__(self, accumulator: RecordAccumulator, *, is_active: bool) -> None:
        self._accumulator = accumulator
        self._batches: list[ProducerBatch] = []
        self._is_active = is_active and not accumulator.lingers

    def add(self, batch: ProducerBatch) -> None:
        """Holds a new batch, unless it is full already."""
        if self._is_active and batch.ready_at != _READY:
            batch.ready_at = _HELD
            self._batches.append(batch)

    def end_run(self, batch: ProducerBatch, *, is_last: bool) -> None:
        """Releases the batch of a partition after a run of records, unless more should fill it.

        `is_last` is True if the call has no more records for the partition.
        """
        if batch.ready_at == _HELD and (is_last or batch.content.size_in_bytes >= SENT_BYTES):
            self._accumulator.set_ready(batch)

    def release_if_large(self, buffer_bytes: int) -> None:
        """Releases the batches if more than half of the buffer is used, so that they are sent."""
        if self._accumulator.buffered > buffer_bytes // 2:
            self.release()

    def release(self) -> bool:
        """Makes the batches ready; returns True if a batch was not ready yet."""
        is_any = False
        for batch in self._batches:
            if batch.ready_at == _HELD:
                self._accumulator.set_ready(batch)
                is_any = True
        self._batches.clear()
        return is_any
