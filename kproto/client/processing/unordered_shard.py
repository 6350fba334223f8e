"""Shards whose records several workers process at once, or one worker in batches."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable
from itertools import takewhile
from operator import attrgetter
from typing import Final

from ...records import Record
from ..metadata.cluster import TopicPartition
from .shard import Shard

__all__ = ["OrderedBatchShard", "UnorderedShard"]

_offset_of: Final = attrgetter("offset")

#: An unordered shard makes this many records ready at a time.
_READY_RECORDS: Final = 256


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
