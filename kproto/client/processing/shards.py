"""A shard has the incomplete records of one partition, and decides which of them may start.

Does no I/O, starts no task and reads no clock. With order "partition" one record is processed at a
time, with "key" one record of each key, with "none" any number of records. A shard stores the
incomplete records themselves, not counts of offsets, so gaps by compaction and transactions do not
matter. A record costs only a few operations on lists and dicts: `run` with an empty handler is
nearly as fast as `async for` over the consumer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import repeat, takewhile
from operator import attrgetter, length_hint
from typing import Final

from ...records import Record
from ..metadata.cluster import TopicPartition

__all__ = ["OrderedBatchShard", "OrderedShard", "Shard", "UnorderedShard"]

_NEVER: Final = float("inf")

_offset_of: Final = attrgetter("offset")

#: An unordered shard makes this many records ready at a time.
_READY_RECORDS: Final = 256

#: Backpressure applies to a partition with this many queued records, and ends below half of that.
#: The limit is twice the largest list of a poll: one list is processed while the next one is
#: decoded.
_BACKPRESSURE_RECORDS: Final = 1_000

#: Backpressure also applies to a partition with this many queued bytes. If the limit for all
#: partitions together, divided by the number of partitions, is smaller, backpressure applies at
#: this smaller number of bytes.
_BACKPRESSURE_BYTES: Final = 8 << 20

#: The memory of a record besides the bytes of its value: its objects, key and timestamp.
_RECORD_OVERHEAD_BYTES: Final = 256


class Shard(ABC):
    """The incomplete records of the partition `tp`, in the order of their offsets.

    `incoming` has lists of queued records. `not_due` has the records of a retry topic that are not
    due yet, each with its due times by the wall clock and by the monotonic clock. `attempts` has
    the number of failures by offset. A shard that `is_draining` accepts and starts no records;
    `dropped` is the offset of the first record that the shard dropped before a handler got it. The
    records of a shard that `is_lost` are not committed. `is_ready` is True while the shard is in
    the tracker's queue of ready shards. `is_timed` is True while a check for due records is
    scheduled. `has_backpressure` is True while the consumer does not poll the partition, because
    `backpressure_limit` records were queued. `mean_bytes` is the mean size of the records that the
    shard holds.
    """

    __slots__ = (
        "accounted_bytes",
        "assignment_epoch",
        "attempts",
        "backpressure_limit",
        "dropped",
        "has_backpressure",
        "incoming",
        "is_draining",
        "is_lost",
        "is_paused",
        "is_ready",
        "is_timed",
        "mean_bytes",
        "not_due",
        "queued",
        "state",
        "tp",
    )

    def __init__(
        self,
        state: object,
        assignment_epoch: object,
        tp: TopicPartition,
    ) -> None:
        self.state = state
        self.assignment_epoch = assignment_epoch
        self.tp = tp
        self.incoming: deque[list[Record]] = deque()
        self.not_due: deque[tuple[float, float, Record]] = deque()
        self.attempts: dict[int, int] = {}
        self.queued = 0  # records in `incoming` and `not_due`
        self.backpressure_limit = _BACKPRESSURE_RECORDS
        self.mean_bytes = 0.0
        self.accounted_bytes = 0  # the part of the tracker's `held_bytes`
        self.has_backpressure = False
        self.is_lost = False
        self.is_draining = False
        self.is_paused = False
        self.is_ready = False
        self.is_timed = False
        self.dropped: int | None = None

    def add(
        self,
        records: list[Record],
        due_ms: list[float] | None = None,
        due: float = _NEVER,
        max_bytes: int = _BACKPRESSURE_BYTES,
    ) -> None:
        """Adds `records` after all queued records; the list must not be empty.

        Sets `backpressure_limit`, the number of queued records at which backpressure starts. The
        limit is at most `max_bytes` divided by the mean size of `records`.

        For a retry topic, `due_ms` has the due time of each record, in ms since 1970. No record
        becomes due later than the monotonic time `due`. Callers never pass an earlier `due` than in
        the previous call.
        """
        size = _records_size(records)
        held = self.held
        self.mean_bytes = (held * self.mean_bytes + size) / (held + len(records))
        self.queued += len(records)
        most = min(max_bytes, _BACKPRESSURE_BYTES) * len(records) // size
        self.backpressure_limit = max(1, min(_BACKPRESSURE_RECORDS, most))
        if due_ms is None:
            self.incoming.append(records)
        else:
            self.not_due.extend(zip(due_ms, repeat(due), records))

    def take_due(self, now: float, now_ms: float) -> float | None:
        """Moves due records to `incoming`; returns the next monotonic due time, or None.

        The records stay in order. If the wall clock was set back, a later record may be due before
        an earlier record; the later record waits for the earlier one.
        """
        not_due = self.not_due
        due: list[Record] = []
        while not_due and (not_due[0][0] <= now_ms or not_due[0][1] <= now):
            due.append(not_due.popleft()[2])
        if due:
            self.incoming.append(due)
        return min(not_due[0][1], now + (not_due[0][0] - now_ms) / 1000) if not_due else None

    def count_failure(self, record: Record) -> int:
        """Counts a failure of the handler for a record; returns the number of its failures."""
        count = self.attempts.get(record.offset, 0) + 1
        self.attempts[record.offset] = count
        return count

    def _next_list(self) -> list[Record]:
        records = self.incoming.popleft()
        self.queued -= len(records)
        return records

    def _drop_incoming(self) -> None:
        self.incoming.clear()
        self.not_due.clear()
        self.queued = 0

    def _first_incoming(self) -> int | None:
        if self.incoming:
            return self.incoming[0][0].offset
        return self.not_due[0][2].offset if self.not_due else None

    @property
    def held_bytes(self) -> int:
        """The approximate size of the records that the shard holds, in bytes."""
        return int(self.held * self.mean_bytes)

    @property
    @abstractmethod
    def held(self) -> int:
        """The number of records in the shard: queued, being processed, or waiting for a retry."""

    @abstractmethod
    def has_ready_record(self) -> bool:
        """Returns True if a record may start now; first makes queued records ready."""

    @abstractmethod
    def first_incomplete(self) -> int | None:
        """Returns the first incomplete offset; None if all accepted records are processed."""

    def incomplete_offsets(self) -> tuple[int, list[int]] | None:
        """Returns the highest started offset, and the incomplete offsets up to that offset.

        Returns None if there is no incomplete offset. With order "partition", always returns None.
        """
        return None

    @abstractmethod
    def first_queued(self) -> int | None:
        """Returns the offset of the first record that has not started; None if there is none."""

    @abstractmethod
    def has_in_flight(self) -> bool:
        """Returns True if handlers are processing a record.

        Before `drain`, an unordered shard also returns True for records that are ready, or that
        wait for another record of their key or for a retry.
        """

    @abstractmethod
    def complete(self, record: Record) -> None:
        """Completes a record that was processed or forwarded."""

    @abstractmethod
    def retry_later(self, record: Record) -> None:
        """Delays a failed record until `requeue` is called with it.

        Records that must be processed after the failed record wait, too. An unordered shard that is
        draining does not delay the record, but abandons it: the record stays incomplete.
        """

    @abstractmethod
    def requeue(self, record: Record) -> None:
        """Makes a delayed record ready again."""

    @abstractmethod
    def abandon(self, record: Record) -> None:
        """Leaves a failed record incomplete, and schedules no retry."""

    @abstractmethod
    def drain(self) -> None:
        """Stops accepting and starting records, and drops the queued records; sets `dropped`."""

    @abstractmethod
    def discard(self) -> None:
        """Drops all records, except those that a handler is processing; sets `is_lost`."""

    @abstractmethod
    def pause(self) -> None:
        """Stops starting records until `resume`."""

    @abstractmethod
    def resume(self) -> None:
        """Ends the pause, so that records may start again."""


def _records_size(records: list[Record]) -> int:
    """Returns the approximate memory of records in bytes.

    This is the size of their values, plus a constant for each record.
    """
    values = sum([len(record.value or b"") for record in records])
    return values + _RECORD_OVERHEAD_BYTES * len(records)


class OrderedShard(Shard):
    """Starts one record after the other; `is_busy` is True while a worker processes the records.

    The worker iterates over `remaining`, the records of the current list that were not started. The
    first `counted` records of the list are in the summary of the pool. `uncounted` is the number of
    processed records that are not in the summary yet.
    """

    __slots__ = ("_is_delayed", "_records", "counted", "is_busy", "remaining")

    def __init__(
        self,
        state: object,
        assignment_epoch: object,
        tp: TopicPartition,
    ) -> None:
        super().__init__(state, assignment_epoch, tp)
        self._records: list[Record] = []
        self.remaining: Iterator[Record] = iter(())
        self.counted = 0
        self.is_busy = False
        self._is_delayed = False

    @property
    def started_count(self) -> int:
        """The number of records of the current list that the worker has started."""
        return len(self._records) - length_hint(self.remaining)

    @property
    def uncounted(self) -> int:
        """The number of processed records that are not yet in the summary of the pool."""
        return self.started_count - self.is_busy - self.counted

    @property
    def held(self) -> int:
        # The worker's list keeps its processed records, too, until the next list.
        return self.queued + len(self._records)

    def _set_records(self, records: list[Record]) -> None:
        self.counted = 0
        self._records = records
        self.remaining = iter(records)

    def has_ready_record(self) -> bool:
        if self.is_busy or self._is_delayed or self.is_paused:
            return False
        if not length_hint(self.remaining):
            if not self.incoming:
                self._set_records([])
                return False
            self._set_records(self._next_list())
        return not self.is_draining

    def first_incomplete(self) -> int | None:
        if self.is_busy:
            return self._records[self.started_count - 1].offset
        return self.first_queued()

    def first_queued(self) -> int | None:
        remaining = length_hint(self.remaining)
        return self._records[-remaining].offset if remaining else self._first_incoming()

    def has_in_flight(self) -> bool:
        return self.is_busy

    def complete(self, record: Record) -> None:
        self.is_busy = False
        self.attempts.clear()

    def retry_later(self, record: Record) -> None:
        self._is_delayed = True
        self.abandon(record)

    def requeue(self, record: Record) -> None:
        self._is_delayed = False

    def abandon(self, record: Record) -> None:
        self.is_busy = False
        self._set_records([record, *self.remaining])

    def drain(self) -> None:
        if not self.is_draining:
            self.dropped = self.first_queued()
            self._stop()
            self.is_draining = True
            self._drop_incoming()

    def discard(self) -> None:
        self._stop()
        self.is_draining = self.is_lost = True
        self._drop_incoming()

    def _stop(self) -> list[Record]:
        """Removes the records that have not started; returns them.

        Empties `remaining`, so that the worker ends its batch after the present record.
        """
        remaining = list(self.remaining)
        if remaining:
            self._records = self._records[: -len(remaining)]
        return remaining

    def stop_early(self) -> None:
        """Empties `remaining`, so that the worker ends its batch.

        The remaining records stay queued in the shard.
        """
        remaining = self._stop()
        if remaining:
            self.incoming.appendleft(remaining)
            self.queued += len(remaining)

    def pause(self) -> None:
        self.is_paused = True
        self.stop_early()

    def resume(self) -> None:
        self.is_paused = False


class UnorderedShard(Shard):
    """Lets workers process several records at once.

    `incomplete` has the records that were taken from `incoming` and are not complete; of these,
    `ready` has the records that may start. With `by_key` a record waits while an earlier record of
    its key is not complete: `pending_by_key` maps the keys of such earlier records to the records
    that wait. `highest_started` is the highest started offset; its distance to the first incomplete
    offset is less than `max_offset_gap`. `_abandoned` has the offsets of `incomplete` that this
    shard does not process any more.
    """

    __slots__ = (
        "_abandoned",
        "_delayed",
        "_paused",
        "_ready_records",
        "by_key",
        "highest_started",
        "incomplete",
        "max_offset_gap",
        "pending_by_key",
        "ready",
    )

    def __init__(
        self,
        state: object,
        assignment_epoch: object,
        tp: TopicPartition,
        *,
        by_key: bool,
        max_offset_gap: int,
        batch_size: int = 1,
    ) -> None:
        super().__init__(state, assignment_epoch, tp)
        self._ready_records = max(_READY_RECORDS, batch_size)
        self.by_key = by_key
        self.max_offset_gap = max_offset_gap
        self.ready: deque[Record] = deque()
        self.incomplete: dict[int, Record] = {}
        self.pending_by_key: dict[bytes, deque[Record] | None] = {}
        self.highest_started = -1
        self._paused: deque[Record] = deque()  # ready records of a paused partition
        self._delayed: set[int] = set()  # offsets that wait for a retry
        self._abandoned: set[int] = set()

    @property
    def held(self) -> int:
        return self.queued + len(self.incomplete)

    def has_ready_record(self) -> bool:
        if self.incoming and len(self.ready) < self._ready_target and not self.is_paused:
            self._select_ready()
        return bool(self.ready)

    @property
    def _ready_target(self) -> int:
        """The number of records that `ready` should have.

        It is at least 2, so that a second worker can start a record of the same partition.
        """
        return max(2, min(self._ready_records, self.backpressure_limit))

    def _select_ready(self) -> None:
        """Moves records from `incoming` to `ready`, in offset order.

        Stops at the first record whose offset is `max_offset_gap` or more after the first
        incomplete record. With `by_key`, a record waits while an earlier record with the same key
        is incomplete.
        """
        incoming = self.incoming
        incomplete = self.incomplete
        first = next(iter(incomplete)) if incomplete else incoming[0][0].offset
        limit = first + self.max_offset_gap
        count = len(self.ready)
        while incoming and count < self._ready_target:
            records = incoming[0]
            if records[-1].offset < limit:
                incoming.popleft()
            else:
                end = bisect_left(records, limit, key=_offset_of)
                if not end:
                    return
                incoming[0] = records[end:]
                records = records[:end]
            count += len(records)
            self.queued -= len(records)
            self._enqueue(records)

    def _enqueue(self, records: list[Record]) -> None:
        incomplete = self.incomplete
        if not self.by_key:
            for record in records:
                incomplete[record.offset] = record
            self.ready.extend(records)
            return
        add = self.ready.append
        pending_by_key = self.pending_by_key
        for record in records:
            incomplete[record.offset] = record
            key = record.key
            if key is None:
                add(record)
            elif key not in pending_by_key:
                pending_by_key[key] = None
                add(record)
            else:
                pending = pending_by_key[key]
                if pending is None:
                    pending_by_key[key] = deque((record,))
                else:
                    pending.append(record)

    def take_batch(self, most: int) -> list[Record]:
        """Starts up to `most` of the ready records; returns them in the order of their offsets."""
        records = [self.ready.popleft() for _ in range(min(most, len(self.ready)))]
        records.sort(key=_offset_of)
        self.highest_started = max(self.highest_started, records[-1].offset)
        return records

    def end_batch(self) -> None:
        """Ends a batch whose records are all complete, delayed or abandoned."""

    def complete(self, record: Record) -> None:
        if self.attempts:
            self.attempts.pop(record.offset, None)
        self.incomplete.pop(record.offset, None)
        key = record.key
        if key is None or not self.by_key:
            return
        pending = self.pending_by_key.get(key)
        if pending:
            (self._paused if self.is_paused else self.ready).append(pending.popleft())
        else:
            self.pending_by_key.pop(key, None)

    def first_incomplete(self) -> int | None:
        for offset in self.incomplete:
            return offset
        return self._first_incoming()

    def incomplete_offsets(self) -> tuple[int, list[int]] | None:
        highest_started = self.highest_started
        found = [*takewhile(lambda offset: offset <= highest_started, self.incomplete)]
        return (highest_started, found) if found else None

    def first_queued(self) -> int | None:
        queued = [
            record.offset for record in self._unhandled() if record.offset > self.highest_started
        ]
        return min(queued) if queued else self._first_incoming()

    def _unhandled(self) -> Iterable[Record]:
        yield from self.ready
        yield from self._paused
        for pending in self.pending_by_key.values():
            yield from pending or ()

    def has_in_flight(self) -> bool:
        return len(self.incomplete) > len(self._abandoned)

    def retry_later(self, record: Record) -> None:
        if self.is_draining:
            self.abandon(record)
        else:
            self._delayed.add(record.offset)

    def requeue(self, record: Record) -> None:
        if record.offset in self._delayed:
            self._delayed.discard(record.offset)
            (self._paused if self.is_paused else self.ready).appendleft(record)

    def abandon(self, record: Record) -> None:
        if record.offset in self.incomplete:
            self._abandoned.add(record.offset)
            key = record.key
            if self.by_key and key is not None:
                pending = self.pending_by_key.get(key)
                self._abandoned.update(each.offset for each in pending or ())
                self.pending_by_key[key] = None

    def drain(self) -> None:
        if self.is_draining:
            return
        self.is_draining = True
        first = self._first_incoming()
        self._drop_incoming()
        dropped = [offset for offset in self.incomplete if offset > self.highest_started]
        for offset in dropped:
            del self.incomplete[offset]
        waiting = self._delayed | {record.offset for record in self._unhandled()}
        self._abandoned = (self._abandoned | waiting) & self.incomplete.keys()
        self._drop_queued()
        self.dropped = min(dropped, default=first)

    def discard(self) -> None:
        self.is_draining = self.is_lost = True
        self._drop_incoming()
        for record in [*self._unhandled()]:
            del self.incomplete[record.offset]
        for offset in self._delayed | self._abandoned:
            self.incomplete.pop(offset, None)
        self._abandoned.clear()
        self._drop_queued()

    def _drop_queued(self) -> None:
        """Drops the records that were not started."""
        self.ready.clear()
        self._paused.clear()
        self._delayed.clear()
        self.pending_by_key = dict.fromkeys(self.pending_by_key)

    def pause(self) -> None:
        self.is_paused = True
        self._paused.extend(self.ready)
        self.ready.clear()

    def resume(self) -> None:
        self.is_paused = False
        self.ready.extend(self._paused)
        self._paused.clear()


class OrderedBatchShard(UnorderedShard):
    """Starts one batch of a partition after the other, for order "partition".

    The next batch starts when every record of the previous batch is complete. A record that waits
    for its retry therefore blocks the partition.
    """

    __slots__ = ("_is_busy",)

    def __init__(
        self,
        state: object,
        assignment_epoch: object,
        tp: TopicPartition,
        *,
        max_offset_gap: int,
        batch_size: int,
    ) -> None:
        super().__init__(
            state,
            assignment_epoch,
            tp,
            by_key=False,
            max_offset_gap=max_offset_gap,
            batch_size=batch_size,
        )
        self._is_busy = False

    def has_ready_record(self) -> bool:
        return not self._is_busy and not self._delayed and super().has_ready_record()

    def take_batch(self, most: int) -> list[Record]:
        self._is_busy = True
        # Records to be retried are started without later ones, which must follow them.
        retried = sum(record.offset <= self.highest_started for record in self.ready)
        return super().take_batch(min(most, retried) if retried else most)

    def end_batch(self) -> None:
        self._is_busy = False

    def requeue(self, record: Record) -> None:
        super().requeue(record)
        for records in (self.ready, self._paused):
            in_order = sorted(records, key=_offset_of)
            records.clear()
            records.extend(in_order)
