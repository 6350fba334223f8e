"""Removes the records that compaction may remove from the batches of a log.

Source: Kafka's Cleaner, CleanedTransactionMetadata and MemoryRecords.filterTo; KIP-534 (tombstones
and transaction markers stay until their delete horizon). As in Kafka, the remaining records keep
their offsets, and a batch with removed records keeps its base offset and last offset.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ...records import LOG_APPEND_TIME, BatchBuilder, Record, RecordBatch
from ...records.new_record import MAX_INT32
from ...stored.transaction_markers import txn_marker_of
from .header_correction import with_producer_of
from .log import StoredBatch
from .producer_state import AbortedTxn

__all__ = ["Compacted", "CompactionRound", "ProducerLastRecord", "compact", "latest_offsets"]


class ProducerLastRecord(NamedTuple):
    """Describes the last record of a producer whose state the partition keeps.

    `last_data_offset` is the last offset of the producer's last batch; None if the producer has
    written only a transaction marker with `epoch`.
    """

    last_data_offset: int | None
    epoch: int


class CompactionRound(NamedTuple):
    """Holds the data of one compaction, besides the batches; times are in ms.

    `latest` is the result of `latest_offsets`. `end_offset` is the offset after the compacted
    batches. `aborted` are the aborted transactions of the log, and `last_records` the last record
    of each active producer by producer id.
    """

    latest: Mapping[bytes, int]
    end_offset: int
    aborted: Sequence[AbortedTxn]
    last_records: Mapping[int, ProducerLastRecord]
    now_ms: int
    delete_retention_ms: int


class Compacted(NamedTuple):
    """Holds the batches after a compaction, and the aborted transactions that are still needed.

    Without an aborted transaction, the log has neither the marker nor records of the transaction.
    """

    batches: list[StoredBatch]
    aborted: list[AbortedTxn]


def latest_offsets(
    stored: Iterable[StoredBatch], from_offset: int, aborted: Sequence[AbortedTxn]
) -> dict[bytes, int]:
    """Returns the latest offset of each key in the batches from `from_offset` on.

    Records of aborted transactions do not count. Raises CorruptBatchError or MissingCodecError if a
    batch cannot be decoded.
    """
    transactions = _Transactions([it for it in aborted if it.last_offset >= from_offset])
    latest: dict[bytes, int] = {}
    for batch, _ in stored:
        if transactions.is_discardable(batch) or batch.is_control:
            continue
        for record in batch.records(from_offset=from_offset):
            if record.key is not None:
                latest[record.key] = record.offset
    return latest


def compact(stored: Iterable[StoredBatch], current: CompactionRound) -> Compacted:
    """Returns the batches that remain of all batches before `current.end_offset`.

    A record remains if it is the latest record of its key; a tombstone remains until the delete
    horizon of its batch. The first compaction that keeps a tombstone, or finds a marker without
    records, sets the delete horizon. A marker remains as long as records of its transaction remain,
    and then until the delete horizon. The last batch of an active producer remains without records,
    because it has the last sequence number of the producer.

    Raises CorruptBatchError or MissingCodecError if a batch cannot be decoded.
    """
    transactions = _Transactions(current.aborted)
    batches = [
        StoredBatch(kept, appended_ms)
        for batch, appended_ms in stored
        for kept in _remaining(batch, transactions, current)
    ]
    return Compacted(batches, transactions.needed(current.end_offset))


def _remaining(
    batch: RecordBatch, transactions: _Transactions, current: CompactionRound
) -> Iterator[RecordBatch]:
    """Yields the batch without the records to remove; yields nothing if the batch is removed."""
    is_discardable = transactions.is_discardable(batch)
    horizon = batch.delete_horizon
    is_due = horizon is not None and horizon <= current.now_ms
    is_removed = is_discardable and (is_due or not batch.is_control)
    records = [] if is_removed else batch.records()
    kept = (
        records
        if batch.is_control
        else [record for record in records if _is_kept(record, current, is_due=is_due)]
    )
    if not kept:
        if _keeps_header(batch, current):
            yield _without_records(batch)
        return
    has_tombstone = not batch.is_control and any(record.value is None for record in kept)
    sets_horizon = horizon is None and (has_tombstone or (is_discardable and batch.is_control))
    if len(kept) == batch.record_count and not sets_horizon:
        yield batch
        return
    if sets_horizon:
        horizon = current.now_ms + current.delete_retention_ms
    yield _with_records(batch, kept, horizon)


def _is_kept(record: Record, current: CompactionRound, *, is_due: bool) -> bool:
    """Returns True if no later record has the key, and the record is no tombstone that is due.

    A record without a key is removed: it is older than the topic's cleanup.policy.
    """
    if record.key is None or record.offset < current.latest.get(record.key, -1):
        return False
    return record.value is not None or not is_due


def _keeps_header(batch: RecordBatch, current: CompactionRound) -> bool:
    """Returns True for the last batch of an active producer."""
    last = current.last_records.get(batch.producer_id) if batch.producer_id >= 0 else None
    if last is None:
        return False
    if last.last_data_offset is not None:
        return batch.last_offset == last.last_data_offset
    return batch.is_control and batch.producer_epoch == last.epoch


def _without_records(batch: RecordBatch) -> RecordBatch:
    """Returns the header of a batch, without codec, base timestamp and delete horizon."""
    stamped = batch.timestamp_type == LOG_APPEND_TIME
    builder = BatchBuilder(
        is_transactional=batch.is_transactional,
        is_control=batch.is_control,
        log_append_time=batch.max_timestamp if stamped else None,
        max_timestamp=None if stamped else batch.max_timestamp,
        last_offset_delta=batch.last_offset_delta,
    )
    return _built(builder, batch)


def _with_records(batch: RecordBatch, kept: list[Record], horizon: int | None) -> RecordBatch:
    stamped = batch.timestamp_type == LOG_APPEND_TIME
    builder = BatchBuilder(
        compression=batch.compression,
        is_transactional=batch.is_transactional,
        is_control=batch.is_control,
        log_append_time=batch.max_timestamp if stamped else None,
        delete_horizon=horizon,
        last_offset_delta=batch.last_offset_delta,
        max_bytes=MAX_INT32,
    )
    for record in kept:
        builder.append(
            record.key,
            record.value,
            headers=record.headers,
            timestamp=record.timestamp,
            offset_delta=record.offset - batch.base_offset,
        )
    return _built(builder, batch)


def _built(builder: BatchBuilder, batch: RecordBatch) -> RecordBatch:
    data = builder.build(
        base_offset=batch.base_offset, partition_leader_epoch=batch.partition_leader_epoch
    )
    return with_producer_of(RecordBatch(data), batch)


class _Transactions:
    """Decides which batches belong to aborted transactions, and which markers have no records.

    The caller passes all batches of the log in order.
    """

    def __init__(self, aborted: Sequence[AbortedTxn]) -> None:
        self._aborted = sorted(aborted, key=lambda it: it.first_offset, reverse=True)
        self._with_committed_records: set[int] = set()
        #: The begun aborted transactions by producer id, and whether a batch of each was found.
        self._begun: dict[int, AbortedTxn] = {}
        self._with_aborted_records: set[int] = set()
        self._needed: list[AbortedTxn] = []

    def is_discardable(self, batch: RecordBatch) -> bool:
        """Returns True for records of an aborted transaction, and a marker without records."""
        while self._aborted and self._aborted[-1].first_offset <= batch.last_offset:
            aborted = self._aborted.pop()
            self._begun.setdefault(aborted.producer_id, aborted)
        producer = batch.producer_id
        if batch.is_control:
            return self._is_marker_discardable(batch)
        if not batch.is_transactional:
            return False
        if producer in self._begun:
            self._with_aborted_records.add(producer)
            return True
        self._with_committed_records.add(producer)
        return False

    def _is_marker_discardable(self, batch: RecordBatch) -> bool:
        producer = batch.producer_id
        if not batch.record_count:
            return True  # a former compaction has removed the marker
        marker = txn_marker_of(batch)
        if marker is None:
            return False
        if marker.is_commit:
            had_records = producer in self._with_committed_records
            self._with_committed_records.discard(producer)
            return not had_records
        aborted = self._begun.pop(producer, None)
        if aborted is None or producer not in self._with_aborted_records:
            return True
        self._with_aborted_records.discard(producer)
        self._needed.append(aborted)
        return False

    def needed(self, end_offset: int) -> list[AbortedTxn]:
        """Returns the aborted transactions whose records were found, or that end later."""
        later = [*self._begun.values(), *self._aborted]
        rest = [it for it in later if it.last_offset >= end_offset]
        return sorted([*self._needed, *rest], key=lambda it: it.last_offset)
