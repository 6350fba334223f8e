"""The state of idempotent producers of one partition: detects duplicates and sequence gaps.

Source: KIP-98 (sequence numbers), KIP-185 and Kafka's five cached batches per producer; the checks
are those of Kafka's ProducerAppendInfo. As in Kafka, a producer outlives its batches in the log
(KIP-360), and expires when it is idle.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ...records import RecordBatch
from ..api_error import api_error

__all__ = ["BatchMetadata", "ProducerStateManager"]

#: A producer may have as many batches in flight, and so may retry as many.
CACHED_BATCHES: Final = 5

#: Sequence numbers count up to the largest int32, and start again at 0.
_SEQUENCES: Final = 0x8000_0000


class BatchMetadata(NamedTuple):
    """The cached metadata of an appended batch, to answer a duplicate of it."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    timestamp: int


@dataclass(slots=True)
class _Producer:
    epoch: int
    last_append_ms: int = 0
    batches: deque[BatchMetadata] = field(default_factory=lambda: deque(maxlen=CACHED_BATCHES))


class ProducerStateManager:
    """The producers that have written to one partition, in the order of their last appends."""

    def __init__(self) -> None:
        self._producers: OrderedDict[int, _Producer] = OrderedDict()

    def expire(self, before_ms: int) -> None:
        """Removes the producers whose last append was not after `before_ms`."""
        while self._producers:
            least_recent = next(iter(self._producers.values()))
            if least_recent.last_append_ms > before_ms:
                return
            self._producers.popitem(last=False)

    def duplicate_of(self, batch: RecordBatch) -> BatchMetadata | None:
        """Returns the cached batch that `batch` duplicates, among the last five of its producer."""
        producer = self._producers.get(batch.producer_id)
        if producer is None or producer.epoch != batch.producer_epoch:
            return None
        sequences = (batch.base_sequence, _last_sequence(batch))
        for known in producer.batches:
            if (known.first_sequence, known.last_sequence) == sequences:
                return known
        return None

    def check(self, batch: RecordBatch) -> None:
        """Raises INVALID_PRODUCER_EPOCH or OUT_OF_ORDER_SEQUENCE_NUMBER unless `batch` is next."""
        producer = self._producers.get(batch.producer_id)
        if producer is None:
            return  # its state may have expired: any sequence is accepted
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
        """Rebuilds the state after the log was truncated to the batches `remaining`.

        A producer whose batches were lost has the state of its remaining batches, or none without
        any; then any sequence number is accepted. Other producers stay as they are.
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
        """Caches a batch that was appended at `now_ms`; `timestamp` (ms) is its largest."""
        producer = self._producers.get(batch.producer_id)
        if producer is None or producer.epoch != batch.producer_epoch:
            producer = self._producers[batch.producer_id] = _Producer(batch.producer_epoch)
        appended = BatchMetadata(batch.base_sequence, _last_sequence(batch), base_offset, timestamp)
        producer.batches.append(appended)
        producer.last_append_ms = now_ms
        self._producers.move_to_end(batch.producer_id)


def _last_sequence(batch: RecordBatch) -> int:
    return (batch.base_sequence + batch.last_offset_delta) % _SEQUENCES
