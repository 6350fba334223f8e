"""Decides which records a member of a share group acquires (KIP-932, KIP-1206).

A member acquires whole record batches (BATCH_OPTIMIZED), or exactly the maximum number of records
(RECORD_LIMIT). A record that was delivered often is acquired with fewer others, and for its last
delivery alone, so that a record that no member can process archives no other records. The rules
are those of Kafka 4.4.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from .in_flight import Delivery, InFlightBatch
from .record_state import RecordState
from .share_partition import SharePartition

__all__ = ["AcquireMode", "AcquireRequest", "AcquiredRecords", "LogBatch", "acquire"]

#: The lowest delivery count from which fewer records are acquired together.
_LEAST_THROTTLED: Final = 2


class AcquireMode(IntEnum):
    """Names the acquire modes of ShareFetch (share.acquire.mode)."""

    BATCH_OPTIMIZED = 0
    RECORD_LIMIT = 1


class LogBatch(NamedTuple):
    """Holds the first and the last offset of a record batch that was read from the log."""

    first: int
    last: int


class AcquiredRecords(NamedTuple):
    """Holds acquired offsets and their delivery count."""

    first: int
    last: int
    deliveries: int

    @property
    def size(self) -> int:
        """Returns the number of offsets."""
        return self.last - self.first + 1


class AcquireRequest(NamedTuple):
    """Holds the member that acquires records, and its limits.

    `batch_size` is the number of records of an acquired batch in BATCH_OPTIMIZED mode.
    """

    member_id: str
    mode: AcquireMode
    batch_size: int
    max_records: int


def acquire(
    partition: SharePartition,
    request: AcquireRequest,
    fetch_offset: int,
    batches: Sequence[LogBatch],
    now_ms: int,
) -> list[AcquiredRecords]:
    """Acquires records for a member; returns the acquired records in the order of offsets.

    `batches` were read from the log at `fetch_offset`. `now_ms` is the `ClockReading.ms` at which
    the acquisition locks start.
    """
    if request.max_records <= 0 or not batches:
        return []
    most, last = _limits(partition, request, fetch_offset, batches[-1].last)
    if most <= 0:
        return []
    return _Acquisition(partition, request, batches, most, last, now_ms).run(fetch_offset)


def _limits(
    partition: SharePartition, request: AcquireRequest, fetch_offset: int, last: int
) -> tuple[int, int]:
    """Returns how many records may be acquired, and the last offset that may be acquired.

    If the maximum of records is in flight, only records that are in flight may be acquired again.
    """
    most = min(request.max_records, partition.config.max_record_locks - partition.in_flight)
    if most <= 0 and fetch_offset <= partition.end_offset:
        most = min(request.max_records, partition.end_offset - fetch_offset + 1)
        last = min(last, partition.end_offset)
    return most, last


class _Acquisition:
    """Acquires records of one share partition, up to `most` records and the offset `last`."""

    def __init__(
        self,
        partition: SharePartition,
        request: AcquireRequest,
        batches: Sequence[LogBatch],
        most: int,
        last: int,
        now_ms: int,
    ) -> None:
        config = partition.config
        self._partition = partition
        self._request = request
        self._is_limited = request.mode is AcquireMode.RECORD_LIMIT
        self._batches = batches
        self._most = most
        self._first, self._last = batches[0].first, last
        self._lock_ms = now_ms + config.lock_duration_ms
        self._delivery_limit = config.delivery_count_limit
        self._throttled_from = max(_LEAST_THROTTLED, -(-config.delivery_count_limit // 2))
        self._acquired: list[AcquiredRecords] = []
        #: The offsets that were acquired one by one.
        self._singles: set[int] = set()
        self._count = 0

    def run(self, fetch_offset: int) -> list[AcquiredRecords]:
        """Acquires records, and returns them."""
        partition = self._partition
        if fetch_offset < self._first:
            # Compaction has removed the records in between.
            partition.archive(fetch_offset, self._first, RecordState.AVAILABLE)
        base = self._first
        floor = partition.batches.floor(base)
        if floor is None:
            # The record batch begins before the start offset, which may be within a batch in
            # flight.
            base = max(base, partition.start_offset)
            floor = partition.batches.floor(base)
        if floor is not None and floor.last >= base:
            base = floor.first
        overlapping = partition.batches.between(base, self._last)
        if not overlapping:
            self._acquire_new(max(self._first, partition.start_offset), self._last)
            return self._acquired
        if self._acquire_again(overlapping, base):
            last = overlapping[-1].last
            if self._count < self._most and last < self._last:
                self._acquire_new(last + 1, self._last)
        if self._acquired:
            partition.move_gap(self._acquired[-1].last + 1)
        return self._acquired

    def _acquire_again(self, overlapping: Iterable[InFlightBatch], base: int) -> bool:
        """Acquires available records in flight; returns False if no more may be acquired."""
        gap_start = base
        for batch in overlapping:
            if self._count >= self._most:
                return False
            if self._partition.active_gap is not None:
                if gap_start < batch.first:
                    self._acquire_new(gap_start, batch.first - 1)
                gap_start = batch.last + 1
                if self._count >= self._most:
                    return False
            is_throttled = self._is_throttled(batch)
            if is_throttled and self._count > 0:
                return False
            is_part = (
                batch.offsets is not None
                or not batch.is_within(self._first, self._last)
                or (self._is_limited and batch.size > self._most - self._count)
                or is_throttled
            )
            if batch.offsets is None and batch.delivery.state is not RecordState.AVAILABLE:
                continue
            if not is_part:
                self._lock(batch.first, batch.last, batch.delivery)
            elif self._acquire_offsets(batch.split()) and is_throttled:
                return False
        return True

    def _is_throttled(self, batch: InFlightBatch) -> bool:
        if batch.offsets is None:
            return batch.delivery.count >= self._throttled_from
        counts = (
            it.count
            for offset, it in batch.offsets.items()
            if self._first <= offset <= self._last and it.state is RecordState.AVAILABLE
        )
        return max(counts, default=0) >= self._throttled_from

    def _acquire_offsets(self, offsets: dict[int, Delivery]) -> int:
        """Acquires single offsets of a batch; returns how many."""
        limit, count = self._most - self._count, 0
        throttled: int | None = None
        for offset, delivery in offsets.items():
            if offset > self._last:
                break
            if offset < self._first or delivery.state is not RecordState.AVAILABLE:
                continue
            is_last = self._delivery_limit > _LEAST_THROTTLED and (
                delivery.count == self._delivery_limit - 1
            )
            if is_last and count:
                break
            if throttled is None and delivery.count >= self._throttled_from:
                shift = delivery.count - self._throttled_from + 1
                throttled = max(1, len(offsets) >> shift)
            self._lock(offset, offset, delivery)
            count += 1
            if is_last or count == throttled or (self._is_limited and count == limit):
                break
        return count

    def _lock(self, first: int, last: int, delivery: Delivery) -> None:
        delivery.acquire(self._request.member_id, self._lock_ms)
        self._add(first, last, delivery.count)

    def _add(self, first: int, last: int, deliveries: int) -> None:
        """Adds acquired records; single offsets become one entry if they are adjacent."""
        self._count += last - first + 1
        former = self._acquired[-1] if self._acquired else None
        if (
            first == last
            and former is not None
            and (former.last + 1, former.deliveries) == (first, deliveries)
            and first - 1 in self._singles
        ):
            self._acquired[-1] = former._replace(last=last)
        else:
            self._acquired.append(AcquiredRecords(first, last, deliveries))
        if first == last:
            self._singles.add(first)

    def _acquire_new(self, first: int, last: int) -> None:
        """Acquires records that were not in flight before."""
        partition = self._partition
        most = self._most - self._count
        if not len(partition.batches):
            first = max(first, partition.end_offset)
        if most < last - first + 1:
            end = self._end_of_batch(first + most - 1)
            last = min(end, last) if partition.active_gap is not None else end
        acquired_last = min(last, first + most - 1) if self._is_limited else last
        for start, end in self._new_batches(first, last):
            delivery = Delivery(RecordState.AVAILABLE, 0)
            batch = InFlightBatch(start, end, delivery)
            if acquired_last < end:
                for offset, each in batch.split().items():
                    if offset <= acquired_last:
                        each.acquire(self._request.member_id, self._lock_ms)
            else:
                delivery.acquire(self._request.member_id, self._lock_ms)
            partition.batches.add(batch)
            self._acquired.append(AcquiredRecords(start, min(end, acquired_last), 1))
        self._count += acquired_last - first + 1
        if next(iter(partition.batches)).first == first:
            partition.start_offset = first
        partition.end_offset = max(partition.end_offset, last)
        partition.move_gap(acquired_last + 1)

    def _new_batches(self, first: int, last: int) -> list[tuple[int, int]]:
        """Returns the offsets of new batches in flight, at the boundaries of record batches.

        In RECORD_LIMIT mode there is one batch.
        """
        found = []
        if not self._is_limited and last - first + 1 > self._request.batch_size:
            for batch in self._batches:
                if batch.first > last:
                    break
                if batch.first - first >= self._request.batch_size:
                    found.append((first, batch.first - 1))
                    first = batch.first
        return [*found, (first, last)]

    def _end_of_batch(self, offset: int) -> int:
        """Returns the last offset of the record batch that contains `offset`, else `offset`."""
        return next((it.last for it in self._batches if it.first <= offset <= it.last), offset)
