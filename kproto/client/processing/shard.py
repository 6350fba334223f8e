"""A shard has the incomplete records of one partition, and decides which of them may start.

Does no I/O, starts no task and reads no clock. With order "partition" one record is processed at a
time, with "key" one record of each key, with "none" any number of records. A shard stores the
incomplete records themselves, not counts of offsets, so gaps by compaction and transactions do not
matter. A record costs only a few operations on lists and dicts: `run` with an empty handler is
nearly as fast as `async for` over the consumer.

`ordered_shard` has the shards of order "partition", `unordered_shard` those of batches and of the
other orders.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from itertools import repeat
from typing import Final

from ...records import Record
from ..metadata.cluster import TopicPartition

__all__ = ["Shard"]

_NEVER: Final = float("inf")

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
