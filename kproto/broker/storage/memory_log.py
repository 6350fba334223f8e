"""Implements a partition's log in memory: a list of batches, and sorted lists to find a batch."""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice
from typing import Final

from ...records import CREATE_TIME, NO_TIMESTAMP, Record, RecordBatch, restamp
from ...records.magic2.unreadable_records import check_as_broker, split_batch
from ...wire.errors import CorruptBatchError
from ..api_error import api_error
from .log import LogSlice, PartitionLog, RetentionBatchInfo, StoredBatch, TimestampedOffset
from .storage_limit import StorageLimit

__all__ = ["BATCH_OVERHEAD_BYTES", "MemoryLog"]

#: Memory of a batch in bytes, in addition to its content: Python objects and list entries.
BATCH_OVERHEAD_BYTES: Final = 450

#: Deleted batches are removed from the lists when their size is at least 1/16 of the size of the
#: remaining batches. A removal moves all remaining entries, so it must be rare.
_DELETED_SHARE: Final = 16


class MemoryLog(PartitionLog):
    """Stores a log in memory; all logs of a cluster share `storage_limit`, None for no limit."""

    def __init__(self, storage_limit: StorageLimit | None = None) -> None:
        super().__init__()
        self.start_offset = 0
        self.end_offset = 0
        self.last_append_time = NO_TIMESTAMP
        self._storage_limit = StorageLimit(sys.maxsize) if storage_limit is None else storage_limit
        self._batches: list[RecordBatch] = []
        # For each batch: its last offset, its end position in bytes since the start of the log, the
        # largest timestamp of this and all earlier batches, and the time of its append. The first
        # three lists are ascending, so that bisect can search them.
        self._last_offsets: list[int] = []
        self._ends: list[int] = []
        self._max_timestamps: list[int] = []
        self._appended_ms: list[int] = []
        self._first_position = 0  # start position of the first batch in the lists, in bytes
        self._first = 0  # number of deleted batches that are still in the lists

    @property
    def size_in_bytes(self) -> int:
        return self._end_of(len(self._batches)) - self._end_of(self._first)

    def __iter__(self) -> Iterator[RecordBatch]:
        return islice(self._batches, self._first, None)

    def stored(self) -> Iterator[RetentionBatchInfo]:
        for index in range(self._first, len(self._batches)):
            batch, appended_ms = self._batches[index], self._appended_ms[index]
            largest = batch.max_timestamp
            yield RetentionBatchInfo(
                batch.next_offset,
                batch.size_in_bytes,
                appended_ms if largest == NO_TIMESTAMP else largest,
                appended_ms,
            )

    def append(
        self, batch: RecordBatch, now_ms: int, *, stamp_time: bool = False, notifies: bool = True
    ) -> int:
        base_offset = self.end_offset
        stored = RecordBatch(
            restamp(
                batch,
                base_offset=base_offset,
                partition_leader_epoch=self.epochs.current,
                log_append_time=now_ms if stamp_time else None,
            )
        )
        self._storage_limit.take(stored.size_in_bytes + BATCH_OVERHEAD_BYTES)
        largest = self._max_timestamps[-1] if self._max_timestamps else NO_TIMESTAMP
        self._ends.append(self._end_of(len(self._batches)) + stored.size_in_bytes)
        self._batches.append(stored)
        self._last_offsets.append(stored.last_offset)
        self._max_timestamps.append(max(largest, stored.max_timestamp))
        self._appended_ms.append(now_ms)
        self.end_offset = stored.next_offset
        self.last_append_time = now_ms
        if notifies:
            self.notify()
        return base_offset

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        at_least_one: bool,
        end_offset: int | None = None,
    ) -> LogSlice:
        self._check_within(offset)
        first = bisect_left(self._last_offsets, offset)
        start = self._end_of(first)
        stop = bisect_right(self._ends, start + max_bytes)
        if stop <= first and at_least_one:
            stop = first + 1
        stop = min(stop, self._count_before(end_offset))
        if stop <= first:
            return LogSlice([], 0)
        return LogSlice(self._batches[first:stop], self._end_of(stop) - start)

    def size_from(self, offset: int, end_offset: int | None = None) -> int:
        first = max(self._first, bisect_left(self._last_offsets, offset))
        return max(0, self._end_of(self._count_before(end_offset)) - self._end_of(first))

    def _count_before(self, end_offset: int | None) -> int:
        """Returns the number of batches in `_batches` that end before `end_offset`.

        If `end_offset` is None, returns the number of all batches.
        """
        if end_offset is None or end_offset >= self.end_offset:
            return len(self._batches)
        return bisect_left(self._last_offsets, end_offset)

    def offset_for_time(self, timestamp: int) -> TimestampedOffset | None:
        first = max(self._first, bisect_left(self._max_timestamps, timestamp))
        for batch in islice(self._batches, first, None):
            if batch.max_timestamp < timestamp:
                continue
            if self._has_one_time(batch):
                return TimestampedOffset(batch.base_offset, batch.max_timestamp)
            for record in self._remaining_records(batch):
                if record.timestamp >= timestamp:
                    return TimestampedOffset(record.offset, record.timestamp)
        return None

    def _has_one_time(self, batch: RecordBatch) -> bool:
        """Returns True if the record at the base offset has the largest timestamp of the batch."""
        return (
            batch.timestamp_type != CREATE_TIME
            and batch.base_offset >= self.start_offset
            and batch.record_count == batch.last_offset_delta + 1  # no record was compacted away
        )

    def offset_of_largest_time(self) -> TimestampedOffset | None:
        if self._first == len(self._batches):
            return None
        # Ignore deleted records: those of deleted batches, and the first records of the oldest
        # batch, which may start before the log start offset.
        oldest = self._batches[self._first]
        rest = islice(self._batches, self._first + 1, None)
        largest = max((batch.max_timestamp for batch in rest), default=NO_TIMESTAMP)
        if oldest.base_offset >= self.start_offset or oldest.max_timestamp < largest:
            return self.offset_for_time(max(largest, oldest.max_timestamp))
        times = (record.timestamp for record in self._remaining_records(oldest))
        return self.offset_for_time(max(largest, max(times, default=NO_TIMESTAMP)))

    def _remaining_records(self, batch: RecordBatch) -> list[Record]:
        """Returns the records from the log start offset on.

        Kafka's brokers accept an uncompressed batch whose offsets do not increase. From such a
        batch, omits each record whose offset is not greater than the offset before it. Raises
        CorruptBatchError for other faults.
        """
        try:
            return batch.records(from_offset=self.start_offset)
        except CorruptBatchError:
            if batch.compression != "none":
                raise
            check_as_broker(batch)
            return [
                record
                for record in split_batch(batch)
                if isinstance(record, Record) and record.offset >= self.start_offset
            ]

    def delete_before(self, offset: int) -> None:
        if offset > self.end_offset:
            raise api_error(
                "OFFSET_OUT_OF_RANGE", f"offset {offset} is beyond the end, {self.end_offset}"
            )
        if offset <= self.start_offset:
            return
        self.start_offset = offset
        first = bisect_left(self._last_offsets, self.start_offset)
        deleted = self._end_of(first) - self._end_of(self._first)
        self._storage_limit.release(deleted + (first - self._first) * BATCH_OVERHEAD_BYTES)
        self._first = first
        if (self._end_of(first) - self._first_position) * _DELETED_SHARE >= self.size_in_bytes:
            self._drop_deleted()
            self._storage_limit.return_memory()
        self.notify()  # so that delayed Fetches below the new start offset fail

    def stored_batches(self) -> Iterator[StoredBatch]:
        for index in range(self._first, len(self._batches)):
            yield StoredBatch(self._batches[index], self._appended_ms[index])

    def replace_before(self, offset: int, batches: Sequence[StoredBatch]) -> None:
        replaced = max(self._first, bisect_left(self._last_offsets, offset))
        stored = [
            *batches,
            *map(StoredBatch, self._batches[replaced:], self._appended_ms[replaced:]),
        ]
        before = self.size_in_bytes + (len(self._batches) - self._first) * BATCH_OVERHEAD_BYTES
        self._batches = [batch for batch, _ in stored]
        self._appended_ms = [appended_ms for _, appended_ms in stored]
        self._last_offsets = [batch.last_offset for batch in self._batches]
        self._ends = list(accumulate(batch.size_in_bytes for batch in self._batches))
        self._max_timestamps = list(
            accumulate((batch.max_timestamp for batch in self._batches), max)
        )
        self._first = self._first_position = 0
        after = self.size_in_bytes + len(self._batches) * BATCH_OVERHEAD_BYTES
        self._storage_limit.release(before - after)
        self._storage_limit.return_memory()

    def truncate(self, offset: int) -> None:
        self._check_within(offset)
        retained = max(self._first, bisect_left(self._last_offsets, offset))
        if retained == len(self._batches):
            return
        lost = self._end_of(len(self._batches)) - self._end_of(retained)
        self._storage_limit.release(lost + (len(self._batches) - retained) * BATCH_OVERHEAD_BYTES)
        # The oldest batch may start before the log start offset.
        self.end_offset = max(self.start_offset, self._batches[retained].base_offset)
        for values in self._parallel_lists:
            del values[retained:]

    def _check_within(self, offset: int) -> None:
        if not self.start_offset <= offset <= self.end_offset:
            raise api_error(
                "OFFSET_OUT_OF_RANGE",
                f"offset {offset} is not within {self.start_offset} to {self.end_offset}",
            )

    @property
    def _parallel_lists(self) -> tuple[list[RecordBatch] | list[int], ...]:
        return (
            self._batches,
            self._last_offsets,
            self._ends,
            self._max_timestamps,
            self._appended_ms,
        )

    def _drop_deleted(self) -> None:
        self._first_position = self._end_of(self._first)
        for values in self._parallel_lists:
            del values[: self._first]
        self._first = 0

    def _end_of(self, count: int) -> int:
        """Returns the position after the first `count` of `_batches`, in bytes.

        Positions also count the bytes of batches that were removed from the log before.
        """
        return self._ends[count - 1] if count else self._first_position
