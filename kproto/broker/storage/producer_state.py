"""Tracks the idempotent producers of one partition, to detect duplicates and sequence gaps.

Source: KIP-98 (sequence numbers), KIP-185 and Kafka's five cached batches per producer; the checks
are those of Kafka's ProducerAppendInfo. As in Kafka, the state of a producer is kept after its
batches are deleted (KIP-360), and expires when the producer is idle.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ...records import RecordBatch
from ..api_error import api_error

__all__ = ["BatchMetadata", "ProducerStateManager"]

#: How many batches are cached for each producer. An idempotent producer has at most five requests
#: in flight, and so retries at most five batches.
CACHED_BATCHES: Final = 5

#: How many sequence numbers there are: they count up to the largest int32, and start again at 0.
_SEQUENCES: Final = 0x8000_0000


class BatchMetadata(NamedTuple):
    """Holds the metadata of an appended batch, to respond to a duplicate of the batch.

    `timestamp` is the largest timestamp of the batch in ms.
    """

    first_sequence: int
    last_sequence: int
    base_offset: int
    timestamp: int


@dataclass(slots=True)
class _Producer:
    """Holds the epoch, the last append time (ms) and the cached batches of one producer."""

    epoch: int
    last_append_ms: int = 0
    batches: deque[BatchMetadata] = field(default_factory=lambda: deque(maxlen=CACHED_BATCHES))


class ProducerStateManager:
    """Holds the state of the producers that have written to one partition."""

    def __init__(self) -> None:
        self._producers: OrderedDict[int, _Producer] = OrderedDict()

    def expire(self, before_ms: int) -> None:
        """Removes the producers whose last append was at `before_ms` or earlier."""
        while self._producers:
            least_recent = next(iter(self._producers.values()))
            if least_recent.last_append_ms > before_ms:
                return
            self._producers.popitem(last=False)

    def duplicate_of(self, batch: RecordBatch) -> BatchMetadata | None:
        """Returns the metadata of the stored batch that `batch` duplicates.

        Compares the last five batches of the producer; returns None if none has the same sequence
        numbers and epoch.
        """
        producer = self._producers.get(batch.producer_id)
        if producer is None or producer.epoch != batch.producer_epoch:
            return None
        sequences = (batch.base_sequence, _last_sequence(batch))
        for known in producer.batches:
            if (known.first_sequence, known.last_sequence) == sequences:
                return known
        return None

    def check(self, batch: RecordBatch) -> None:
        """Checks that `batch` follows the last batch of its producer.

        The base sequence must be the next one, or 0 in a new epoch; otherwise raises
        OUT_OF_ORDER_SEQUENCE_NUMBER. Raises INVALID_PRODUCER_EPOCH for an older epoch. Accepts any
        batch of a producer without state.
        """
        producer = self._producers.get(batch.producer_id)
        if producer is None:
            return  # new, or its state has expired
        if batch.producer_epoch < producer.epoch:
            raise api_error(
                "INVALID_PRODUCER_EPOCH",
                f"producer {batch.producer_id} has epoch {batch.producer_epoch}, "
                f"and {producer.epoch} was seen already",
            )
        expected = 0
        if batch.producer_epoch == producer.epoch:
            expected = (producer.batches[-1].last_sequence + 1) % _SEQUENCES
        if batch.base_sequence != expected:
            raise api_error(
                "OUT_OF_ORDER_SEQUENCE_NUMBER",
                f"producer {batch.producer_id} sent sequence {batch.base_sequence}, "
                f"and {expected} comes next",
            )

    def truncate(self, end_offset: int, remaining: Iterable[RecordBatch]) -> None:
        """Updates the state after the log was truncated to the batches `remaining`.

        If a producer has lost batches, its state is rebuilt from its remaining batches. If no batch
        remains, the producer has no state, and `check` accepts any sequence.
        """
        lost = {
            producer_id: producer
            for producer_id, producer in self._producers.items()
            if producer.batches and producer.batches[-1].base_offset >= end_offset
        }
        if not lost:
            return
        for producer_id in lost:
            del self._producers[producer_id]
        for batch in remaining:
            if batch.producer_id in lost:
                last_append_ms = lost[batch.producer_id].last_append_ms
                self.update(batch, batch.base_offset, batch.max_timestamp, last_append_ms)
        by_age = sorted(self._producers.items(), key=lambda item: item[1].last_append_ms)
        self._producers = OrderedDict(by_age)

    def update(self, batch: RecordBatch, base_offset: int, timestamp: int, now_ms: int) -> None:
        """Caches the metadata of a batch that was appended at `now_ms`.

        `timestamp` (ms) is the largest timestamp of the batch.
        """
        producer = self._producers.get(batch.producer_id)
        if producer is None or producer.epoch != batch.producer_epoch:
            producer = self._producers[batch.producer_id] = _Producer(batch.producer_epoch)
        appended = BatchMetadata(batch.base_sequence, _last_sequence(batch), base_offset, timestamp)
        producer.batches.append(appended)
        producer.last_append_ms = now_ms
        self._producers.move_to_end(batch.producer_id)


def _last_sequence(batch: RecordBatch) -> int:
    return (batch.base_sequence + batch.last_offset_delta) % _SEQUENCES
