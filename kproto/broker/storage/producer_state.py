"""Tracks the producers of one partition: duplicates, sequence gaps and transactions.

Source: KIP-98 (sequence numbers, transactions), KIP-185 and Kafka's five cached batches per
producer, KIP-890 (epochs of markers); the checks are those of Kafka's ProducerAppendInfo. As in
Kafka, the state of a producer is kept after its batches are deleted (KIP-360), and expires when the
producer is idle and has no ongoing transaction.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ...records import RecordBatch
from ...stored.transaction_markers import TxnMarker, txn_marker_of
from ..api_error import api_error

__all__ = ["AbortedTxn", "BatchMetadata", "ProducerState", "ProducerStateManager"]

#: How many batches are cached for each producer. An idempotent producer has at most five requests
#: in flight, and so retries at most five batches.
CACHED_BATCHES: Final = 5

#: How many sequence numbers there are: they count up to the largest int32, and start again at 0.
_SEQUENCES: Final = 0x8000_0000

#: The first transaction version whose markers have a bumped producer epoch (KIP-890).
_FIRST_VERSION_OF_EPOCH_BUMP: Final = 2

_NO_EPOCH: Final = -1


class BatchMetadata(NamedTuple):
    """Holds the metadata of an appended batch, to respond to a duplicate of the batch.

    `timestamp` is the largest timestamp of the batch in ms.
    """

    first_sequence: int
    last_sequence: int
    base_offset: int
    timestamp: int

    @property
    def last_offset(self) -> int:
        """Returns the last offset of the batch."""
        return self.base_offset + (self.last_sequence - self.first_sequence) % _SEQUENCES


class AbortedTxn(NamedTuple):
    """Holds an aborted transaction of the log, as Kafka's transaction index does.

    `first_offset` is the offset of the first record, `last_offset` the offset of the abort marker.
    `last_stable_offset` is the last stable offset after the marker was appended.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


@dataclass(slots=True)
class ProducerState:
    """Holds the state of one producer: its epoch, cached batches and ongoing transaction.

    `last_offset` is the base offset of the producer's last batch or marker, `last_timestamp` (ms)
    the largest timestamp in that batch, and `last_append_ms` the time of that append.
    `coordinator_epoch` is the epoch in the producer's last marker, -1 before the first marker.
    `txn_first_offset` is the first offset of the ongoing transaction; None if no transaction is
    ongoing.
    """

    epoch: int
    last_offset: int = -1
    last_timestamp: int = -1
    last_append_ms: int = 0
    batches: deque[BatchMetadata] = field(default_factory=lambda: deque(maxlen=CACHED_BATCHES))
    coordinator_epoch: int = _NO_EPOCH
    txn_first_offset: int | None = None

    @property
    def next_sequence(self) -> int:
        """Returns the sequence number that the next batch of this epoch must have."""
        return (self.batches[-1].last_sequence + 1) % _SEQUENCES if self.batches else 0


@dataclass(slots=True)
class _Verification:
    """Holds the first batch of a transaction that a producer has sent to the partition (KIP-890).

    `lowest_sequence` is the lowest base sequence that the producer has sent with `epoch`. The first
    append of a batch of the producer discards the `_Verification`. `starts_at_zero` is True if a
    producer without state must begin with sequence 0, which is so from transaction version 2 on.
    `started_ms` is the time of the first batch.
    """

    epoch: int
    lowest_sequence: int
    starts_at_zero: bool
    started_ms: int


class ProducerStateManager:
    """Holds the state of the producers that have written to one partition."""

    def __init__(self) -> None:
        # The producers whose transactional batch awaits its first append in the partition.
        self._verifications: dict[int, _Verification] = {}
        self._producers: OrderedDict[int, ProducerState] = OrderedDict()
        # The first offsets of the ongoing transactions by producer id, in ascending order.
        self._ongoing: dict[int, int] = {}
        self._aborted: list[AbortedTxn] = []

    @property
    def producers(self) -> Mapping[int, ProducerState]:
        """Returns the state of each producer by producer id, the least recently active first."""
        return self._producers

    @property
    def first_unstable_offset(self) -> int | None:
        """Returns the lowest offset of the ongoing transactions; None if there are none."""
        return next(iter(self._ongoing.values()), None)

    def has_ongoing_transaction(self, producer_id: int, epoch: int) -> bool:
        """Returns True if the producer has an ongoing transaction with this epoch."""
        producer = self._producers.get(producer_id)
        return (
            producer is not None
            and producer.txn_first_offset is not None
            and producer.epoch == epoch
        )

    def start_verification(
        self, producer_id: int, epoch: int, sequence: int, now_ms: int, *, starts_at_zero: bool
    ) -> None:
        """Notes that a producer sent a batch that begins a transaction in the partition (KIP-890).

        Until such a batch is appended, `check` refuses a batch of the producer whose sequence is
        above the lowest sequence that the producer has sent: batches must be appended in order.
        """
        found = self._verifications.get(producer_id)
        if found is None:
            started = _Verification(epoch, sequence, starts_at_zero, now_ms)
            self._verifications[producer_id] = started
        elif epoch > found.epoch:
            found.epoch, found.lowest_sequence = epoch, sequence
        elif epoch == found.epoch:
            found.lowest_sequence = min(found.lowest_sequence, sequence)

    def aborted_transactions(self, offset: int, end_offset: int) -> list[AbortedTxn]:
        """Returns the aborted transactions with records or a marker from `offset` to `end_offset`.

        `end_offset` is exclusive. The transactions are in the order of their markers.
        """
        return [
            aborted
            for aborted in self._aborted
            if aborted.last_offset >= offset and aborted.first_offset < end_offset
        ]

    def remove_aborted_before(self, offset: int) -> None:
        """Removes the aborted transactions whose markers are before `offset`."""
        if self._aborted and self._aborted[0].last_offset < offset:
            self._aborted = [each for each in self._aborted if each.last_offset >= offset]

    def replace_aborted(self, aborted: Sequence[AbortedTxn]) -> None:
        """Replaces the aborted transactions by those whose records remain after a compaction.

        The transactions are in the order of their markers.
        """
        self._aborted = list(aborted)

    def expire(self, before_ms: int) -> None:
        """Removes the producers whose last append was at `before_ms` or earlier.

        Keeps the producers with an ongoing transaction. Also removes the verifications that
        `start_verification` has started at `before_ms` or earlier.
        """
        expired = []
        for producer_id, producer in self._producers.items():
            if producer.last_append_ms > before_ms:
                break
            if producer.txn_first_offset is None:
                expired.append(producer_id)
        for producer_id in expired:
            del self._producers[producer_id]
        started = [
            producer_id
            for producer_id, verification in self._verifications.items()
            if verification.started_ms <= before_ms
        ]
        for producer_id in started:
            del self._verifications[producer_id]

    def duplicate_of(self, batch: RecordBatch) -> BatchMetadata | None:
        """Returns the metadata of the stored batch that `batch` duplicates.

        Compares the last five batches of the producer; returns None if no batch has the same
        sequence numbers and epoch.
        """
        producer = self._producers.get(batch.producer_id)
        if producer is None or producer.epoch != batch.producer_epoch:
            return None
        sequences = (batch.base_sequence, _last_sequence(batch))
        for known in producer.batches:
            if (known.first_sequence, known.last_sequence) == sequences:
                return known
        return None

    def check(self, batch: RecordBatch, *, checks_sequence: bool = True) -> None:
        """Checks that `batch` follows the last batch of its producer.

        The base sequence must be the next one, or 0 in a new epoch; otherwise raises
        OUT_OF_ORDER_SEQUENCE_NUMBER. Raises INVALID_PRODUCER_EPOCH for an older epoch. Raises
        INVALID_TXN_STATE if the batch is not transactional and the producer has an ongoing
        transaction. Accepts any base sequence of a producer without state, unless
        `start_verification` has restricted the sequence.

        Batches of a group coordinator have no sequence numbers; the caller passes them with
        `checks_sequence` False.
        """
        self.check_epoch(batch.producer_id, batch.producer_epoch)
        producer = self._producers.get(batch.producer_id)
        if checks_sequence:
            expected = self._expected_sequence(batch, producer)
            if expected is not None and batch.base_sequence != expected:
                raise api_error(
                    "OUT_OF_ORDER_SEQUENCE_NUMBER",
                    f"producer {batch.producer_id} sent sequence {batch.base_sequence}, "
                    f"and {expected} comes next",
                )
        if producer is None or producer.txn_first_offset is None or batch.is_transactional:
            return
        raise api_error(
            "INVALID_TXN_STATE",
            f"producer {batch.producer_id} has an ongoing transaction, and the batch is not "
            "transactional",
        )

    def check_epoch(self, producer_id: int, epoch: int) -> None:
        """Raises INVALID_PRODUCER_EPOCH if the producer has a newer epoch than `epoch`."""
        producer = self._producers.get(producer_id)
        if producer is not None and epoch < producer.epoch:
            raise api_error(
                "INVALID_PRODUCER_EPOCH",
                f"producer {producer_id} has epoch {epoch}, and {producer.epoch} was seen already",
            )

    def _expected_sequence(self, batch: RecordBatch, producer: ProducerState | None) -> int | None:
        """Returns the base sequence that `batch` must have; None if any sequence is accepted."""
        verification = self._verifications.get(batch.producer_id)
        if verification is not None:
            if producer is None and verification.starts_at_zero:
                return 0
            if batch.base_sequence > verification.lowest_sequence:
                return verification.lowest_sequence
        if producer is None:  # new, or its state has expired
            return None
        return producer.next_sequence if batch.producer_epoch == producer.epoch else 0

    def check_marker(self, marker: TxnMarker) -> None:
        """Checks the epochs of a marker.

        Raises INVALID_PRODUCER_EPOCH if the marker's producer epoch is older than the epoch of the
        producer. With transaction version 2, also raises INVALID_PRODUCER_EPOCH for the same epoch
        while a transaction is ongoing. Without an ongoing transaction, a marker with the same epoch
        is a retry (KIP-890). Raises TRANSACTION_COORDINATOR_FENCED if the marker's coordinator
        epoch is older than the coordinator epoch in the producer's last marker.
        """
        producer = self._producers.get(marker.producer_id)
        if producer is None:
            return
        bumps = marker.transaction_version >= _FIRST_VERSION_OF_EPOCH_BUMP
        is_old = marker.producer_epoch < producer.epoch
        is_late = (
            bumps
            and marker.producer_epoch == producer.epoch
            and producer.txn_first_offset is not None
        )
        if is_old or is_late:
            raise api_error(
                "INVALID_PRODUCER_EPOCH",
                f"the marker for producer {marker.producer_id} has epoch {marker.producer_epoch}, "
                f"and {producer.epoch} was seen already",
            )
        if marker.coordinator_epoch < producer.coordinator_epoch:
            raise api_error(
                "TRANSACTION_COORDINATOR_FENCED",
                f"the marker for producer {marker.producer_id} has coordinator epoch "
                f"{marker.coordinator_epoch}, and {producer.coordinator_epoch} was seen already",
            )

    def truncate(self, end_offset: int, remaining: Sequence[RecordBatch]) -> None:
        """Updates the state after the log was truncated to the batches `remaining`.

        If batches or markers of a producer were truncated, its state is rebuilt from its remaining
        batches and markers. If the producer has no remaining batches and markers, it has no state,
        and `check` accepts any sequence. The transactions of all producers are rebuilt from
        `remaining`.
        """
        lost = {
            producer_id: producer
            for producer_id, producer in self._producers.items()
            if producer.last_offset >= end_offset
        }
        for producer_id in lost:
            del self._producers[producer_id]
        for producer in self._producers.values():
            producer.txn_first_offset = None
        self._ongoing, self._aborted = {}, []
        for batch in remaining:
            marker = txn_marker_of(batch) if batch.is_control else None
            former = lost.get(batch.producer_id)
            known = self._producers.get(batch.producer_id)
            if former is not None and marker is not None:
                self.on_marker(
                    marker, batch.base_offset, batch.max_timestamp, former.last_append_ms
                )
            elif former is not None:
                self.update(batch, batch.base_offset, batch.max_timestamp, former.last_append_ms)
            elif known is not None and marker is not None:
                self._end(known, marker, batch.base_offset)
            elif known is not None and batch.is_transactional:
                self._begin(batch.producer_id, batch.base_offset)
        by_age = sorted(self._producers.items(), key=lambda item: item[1].last_append_ms)
        self._producers = OrderedDict(by_age)

    def update(self, batch: RecordBatch, base_offset: int, timestamp: int, now_ms: int) -> None:
        """Caches the metadata of a batch that was appended at `now_ms`.

        `timestamp` (ms) is the largest timestamp of the batch. The first transactional batch of a
        producer begins a transaction.
        """
        producer = self._at_epoch(batch.producer_id, batch.producer_epoch)
        if batch.base_sequence >= 0:
            appended = BatchMetadata(
                batch.base_sequence, _last_sequence(batch), base_offset, timestamp
            )
            producer.batches.append(appended)
        producer.last_offset = base_offset
        producer.last_timestamp = timestamp
        producer.last_append_ms = now_ms
        self._producers.move_to_end(batch.producer_id)
        if batch.is_transactional:
            self._verifications.pop(batch.producer_id, None)
            self._begin(batch.producer_id, base_offset)

    def _at_epoch(self, producer_id: int, epoch: int) -> ProducerState:
        """Returns the state of a producer; if the epoch is new, drops the cached batches."""
        producer = self._producers.get(producer_id)
        if producer is None:
            producer = self._producers[producer_id] = ProducerState(epoch)
        elif producer.epoch != epoch:
            producer.epoch = epoch
            producer.batches.clear()
        return producer

    def _begin(self, producer_id: int, first_offset: int) -> None:
        producer = self._producers[producer_id]
        if producer.txn_first_offset is None:
            producer.txn_first_offset = self._ongoing[producer_id] = first_offset

    def on_marker(self, marker: TxnMarker, offset: int, timestamp: int, now_ms: int) -> None:
        """Ends the producer's transaction by a marker that was appended at `offset`.

        `timestamp` (ms) is the timestamp of the marker.
        """
        producer = self._at_epoch(marker.producer_id, marker.producer_epoch)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_offset = offset
        producer.last_timestamp = timestamp
        producer.last_append_ms = now_ms
        self._producers.move_to_end(marker.producer_id)
        self._end(producer, marker, offset)

    def _end(self, producer: ProducerState, marker: TxnMarker, offset: int) -> None:
        first_offset, producer.txn_first_offset = producer.txn_first_offset, None
        if first_offset is None:
            return
        del self._ongoing[marker.producer_id]
        if not marker.is_commit:
            stable = self.first_unstable_offset
            self._aborted.append(
                AbortedTxn(
                    marker.producer_id,
                    first_offset,
                    offset,
                    offset + 1 if stable is None else stable,
                )
            )


def _last_sequence(batch: RecordBatch) -> int:
    return (batch.base_sequence + batch.last_offset_delta) % _SEQUENCES
