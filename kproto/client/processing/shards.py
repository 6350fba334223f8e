"""Holds the records of one partition that are in processing, and decides which may start.

Sans-IO: no task, no clock. In a shard of order "partition" one record is in flight at a time; in
the others any record whose key has none in flight. Offsets are never counted: the shard knows which
records are incomplete, so that gaps of compaction and transactions do not matter. A record costs a
few operations on lists and dicts, to keep empty handlers close to plain iteration.
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

__all__ = ["OrderedShard", "Shard", "UnorderedShard"]

_NEVER: Final = float("inf")

_offset_of: Final = attrgetter("offset")

#: Records that may be handled are looked out so many at a time.
_CHUNK: Final = 256

#: With so many records that nobody has looked at, a partition is held back; and with less than half
#: of that it goes on. Two of the lists that reading gives at a time: so there is always one while
#: the next is made, and memory holds no more.
_ENOUGH: Final = 1_000

#: With so many bytes of values it is, too: large records come one or a few with a fetch, which is
#: of 1 MiB by default. How large they are is seen by so many of a list.
_ENOUGH_BYTES: Final = 8 << 20
_LOOKED_AT: Final = 16


class Shard(ABC):
    """The incomplete records of the partition `tp`, in the order of their offsets.

    `incoming` holds lists that were not examined yet, `not_due` the records of a retry topic that
    are not due yet, each with its due time by the wall clock and by the monotonic clock. `attempts`
    counts the failures of failed records. A shard that `is_draining` takes no records and starts
    none: `dropped` is the first offset that it dropped without a start. A shard that `is_lost` does
    not count. `is_ready` if it is among the ready ones, `is_timed` if a check is scheduled,
    `is_held_back` if backpressure applies, because `backpressure_limit` records or more are queued.
    """

    __slots__ = (
        "attempts",
        "backpressure_limit",
        "claim",
        "dropped",
        "incoming",
        "is_draining",
        "is_held_back",
        "is_lost",
        "is_paused",
        "is_ready",
        "is_timed",
        "not_due",
        "queued",
        "state",
        "tp",
    )

    def __init__(
        self,
        state: object,
        claim: object,
        tp: TopicPartition,
    ) -> None:
        self.state = state
        self.claim = claim
        self.tp = tp
        self.incoming: deque[list[Record]] = deque()
        self.not_due: deque[tuple[float, float, Record]] = deque()
        self.attempts: dict[int, int] = {}
        self.queued = 0  # records in `incoming` and `not_due`
        self.backpressure_limit = _ENOUGH
        self.is_held_back = False
        self.is_lost = False
        self.is_draining = False
        self.is_paused = False
        self.is_ready = False
        self.is_timed = False
        self.dropped: int | None = None

    def add(
        self, records: list[Record], due_ms: list[float] | None = None, due: float = _NEVER
    ) -> None:
        """Takes at least one record behind all that were taken before.

        Records of a retry topic come with the time at which each is due, in ms since 1970, and with
        the monotonic time at which all are due: not before earlier records.
        """
        self.queued += len(records)
        self.backpressure_limit = _backpressure_limit(records)
        if due_ms is None:
            self.incoming.append(records)
        else:
            self.not_due.extend(zip(due_ms, repeat(due), records))

    def take_due(self, now: float, now_ms: float) -> float | None:
        """Makes due records ready; returns when the next one is due, as far as that is known.

        The order stays: a later record is due earlier only if the wall clock was set back
        meanwhile, and then it waits for the one before.
        """
        not_due = self.not_due
        move_due: list[Record] = []
        while not_due and (not_due[0][0] <= now_ms or not_due[0][1] <= now):
            move_due.append(not_due.popleft()[2])
        if move_due:
            self.incoming.append(move_due)
        return min(not_due[0][1], now + (not_due[0][0] - now_ms) / 1000) if not_due else None

    def failed(self, record: Record) -> int:
        """Counts a failure of the handler; returns how many the record has."""
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

    @abstractmethod
    def has_work(self) -> bool:
        """True if a record may start now; selects it."""

    @abstractmethod
    def first_incomplete(self) -> int | None:
        """Returns the first offset that is not processed; None if all taken records are."""

    def incomplete_offsets(self) -> tuple[int, list[int]] | None:
        """Returns the highest offset that was started, and the incomplete ones up to it.

        None if no processed record follows an incomplete one.
        """
        return None

    @abstractmethod
    def first_queued(self) -> int | None:
        """Returns the first offset that was never started; None without one."""

    @abstractmethod
    def has_in_flight(self) -> bool:
        """True if a record is in flight."""

    @abstractmethod
    def done(self, record: Record) -> None:
        """Completes a record: it was processed or forwarded."""

    @abstractmethod
    def retry_later(self, record: Record) -> None:
        """Puts aside a failed record until `requeue`; records that it blocks stay blocked."""

    @abstractmethod
    def requeue(self, record: Record) -> None:
        """Makes a record that was put aside ready again."""

    @abstractmethod
    def abandon(self, record: Record) -> None:
        """Keeps a failed record incomplete: it is not retried here."""

    @abstractmethod
    def drain(self) -> None:
        """Takes no more records, and starts none: queued records stay incomplete."""

    @abstractmethod
    def discard(self) -> None:
        """Drops all records, except those in flight."""

    @abstractmethod
    def pause(self) -> None:
        """Starts no record until `resume`."""

    @abstractmethod
    def resume(self) -> None:
        """Starts records again."""


def _backpressure_limit(records: list[Record]) -> int:
    """Returns how many records like these may be queued."""
    looked_at = records[:: len(records) // _LOOKED_AT + 1]
    size = sum(len(record.value or b"") for record in looked_at) // len(looked_at)
    return max(1, min(_ENOUGH, _ENOUGH_BYTES // max(1, size)))


class OrderedShard(Shard):
    """Processes one record after the other: a worker takes them from `rest`, and `is_busy`
    meanwhile.

    What is left of the list shows which record is in flight; it also shows the `handled` records,
    those beyond the first `counted` ones of the list.
    """

    __slots__ = ("_is_put_off", "_records", "counted", "is_busy", "rest")

    def __init__(
        self,
        state: object,
        claim: object,
        tp: TopicPartition,
    ) -> None:
        super().__init__(state, claim, tp)
        self._records: list[Record] = []
        self.rest: Iterator[Record] = iter(())
        self.counted = 0
        self.is_busy = False
        self._is_put_off = False

    @property
    def taken(self) -> int:
        """Returns how many records of the current list were taken."""
        return len(self._records) - length_hint(self.rest)

    @property
    def handled(self) -> int:
        """Returns how many processed records were not counted yet."""
        return self.taken - self.is_busy - self.counted

    def _have(self, records: list[Record]) -> None:
        self.counted = 0
        self._records = records
        self.rest = iter(records)

    def has_work(self) -> bool:
        if self.is_busy or self._is_put_off or self.is_paused:
            return False
        if not length_hint(self.rest):
            if not self.incoming:
                return False
            self._have(self._next_list())
        return not self.is_draining

    def first_incomplete(self) -> int | None:
        if self.is_busy:
            return self._records[self.taken - 1].offset
        return self.first_queued()

    def first_queued(self) -> int | None:
        left = length_hint(self.rest)
        return self._records[-left].offset if left else self._first_incoming()

    def has_in_flight(self) -> bool:
        return self.is_busy

    def done(self, record: Record) -> None:
        self.is_busy = False
        self.attempts.clear()

    def retry_later(self, record: Record) -> None:
        self._is_put_off = True
        self.abandon(record)

    def requeue(self, record: Record) -> None:
        self._is_put_off = False

    def abandon(self, record: Record) -> None:
        self.is_busy = False
        self._have([record, *self.rest])

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
        """Empties `rest` for its worker; returns the records that were left."""
        left = list(self.rest)
        if left:
            self._records = self._records[: -len(left)]
        return left

    def stop_early(self) -> None:
        """Empties `rest` for its worker; the records stay in the shard."""
        left = self._stop()
        if left:
            self.incoming.appendleft(left)
            self.queued += len(left)

    def pause(self) -> None:
        self.is_paused = True
        self.stop_early()

    def resume(self) -> None:
        self.is_paused = False


class UnorderedShard(Shard):
    """Processes several records at once: those that may start are `ready`, `left` are incomplete.

    With `by_key` a record waits while another one of its key is ready or in flight:
    `pending_by_key` has these keys with the records that wait. The lowest and the highest started
    offsets are less than `max_offset_gap` apart; `highest_started` is the highest. `_abandoned` are
    those of `left` that are not processed here any more.
    """

    __slots__ = (
        "_abandoned",
        "_held",
        "_sent_to_retry",
        "by_key",
        "highest_started",
        "left",
        "max_offset_gap",
        "pending_by_key",
        "ready",
    )

    def __init__(
        self,
        state: object,
        claim: object,
        tp: TopicPartition,
        *,
        by_key: bool,
        max_offset_gap: int,
    ) -> None:
        super().__init__(state, claim, tp)
        self.by_key = by_key
        self.max_offset_gap = max_offset_gap
        self.ready: deque[Record] = deque()
        self.left: dict[int, Record] = {}
        self.pending_by_key: dict[bytes, deque[Record] | None] = {}
        self.highest_started = -1
        self._held: deque[Record] = deque()  # may be handled once the pause is over
        self._sent_to_retry: set[int] = set()
        self._abandoned: set[int] = set()

    def has_work(self) -> bool:
        if self.incoming and len(self.ready) < self._ready_target and not self.is_paused:
            self._select_ready()
        return bool(self.ready)

    @property
    def _ready_target(self) -> int:
        """Returns how many records to make ready; two leave one for another worker."""
        return max(2, min(_CHUNK, self.backpressure_limit))

    def _select_ready(self) -> None:
        """Makes records ready that may start."""
        incoming = self.incoming
        left = self.left
        first = next(iter(left)) if left else incoming[0][0].offset
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
        left = self.left
        if not self.by_key:
            for record in records:
                left[record.offset] = record
            self.ready.extend(records)
            return
        add = self.ready.append
        pending_by_key = self.pending_by_key
        for record in records:
            left[record.offset] = record
            key = record.key
            if key is None:
                add(record)
            elif key not in pending_by_key:
                pending_by_key[key] = None
                add(record)
            else:
                behind = pending_by_key[key]
                if behind is None:
                    pending_by_key[key] = deque((record,))
                else:
                    behind.append(record)

    def done(self, record: Record) -> None:
        if self.attempts:
            self.attempts.pop(record.offset, None)
        self.left.pop(record.offset, None)
        key = record.key
        if key is None or not self.by_key:
            return
        behind = self.pending_by_key.get(key)
        if behind:
            (self._held if self.is_paused else self.ready).append(behind.popleft())
        else:
            self.pending_by_key.pop(key, None)

    def first_incomplete(self) -> int | None:
        for offset in self.left:
            return offset
        return self._first_incoming()

    def incomplete_offsets(self) -> tuple[int, list[int]] | None:
        highest_started = self.highest_started
        undone = [*takewhile(lambda offset: offset <= highest_started, self.left)]
        return (highest_started, undone) if undone else None

    def first_queued(self) -> int | None:
        never = [
            record.offset for record in self._unhandled() if record.offset > self.highest_started
        ]
        return min(never) if never else self._first_incoming()

    def _unhandled(self) -> Iterable[Record]:
        yield from self.ready
        yield from self._held
        for behind in self.pending_by_key.values():
            yield from behind or ()

    def has_in_flight(self) -> bool:
        return len(self.left) > len(self._abandoned)

    def retry_later(self, record: Record) -> None:
        if self.is_draining:
            self.abandon(record)
        else:
            self._sent_to_retry.add(record.offset)

    def requeue(self, record: Record) -> None:
        if record.offset in self._sent_to_retry:
            self._sent_to_retry.discard(record.offset)
            (self._held if self.is_paused else self.ready).appendleft(record)

    def abandon(self, record: Record) -> None:
        if record.offset in self.left:
            self._abandoned.add(record.offset)
            key = record.key
            if self.by_key and key is not None:
                behind = self.pending_by_key.get(key)
                self._abandoned.update(each.offset for each in behind or ())
                self.pending_by_key[key] = None

    def drain(self) -> None:
        if self.is_draining:
            return
        self.is_draining = True
        first = self._first_incoming()
        self._drop_incoming()
        dropped = [offset for offset in self.left if offset > self.highest_started]
        for offset in dropped:
            del self.left[offset]
        waiting = self._sent_to_retry | {record.offset for record in self._unhandled()}
        self._abandoned.update(waiting & self.left.keys())
        self._drop_queued()
        self.dropped = min(dropped, default=first)

    def discard(self) -> None:
        self.is_draining = self.is_lost = True
        self._drop_incoming()
        for record in [*self._unhandled()]:
            del self.left[record.offset]
        for offset in self._sent_to_retry | self._abandoned:
            self.left.pop(offset, None)
        self._abandoned.clear()
        self._drop_queued()

    def _drop_queued(self) -> None:
        """Drops the records that were not started."""
        self.ready.clear()
        self._held.clear()
        self._sent_to_retry.clear()
        self.pending_by_key = dict.fromkeys(self.pending_by_key)

    def pause(self) -> None:
        self.is_paused = True
        self._held.extend(self.ready)
        self.ready.clear()

    def resume(self) -> None:
        self.is_paused = False
        self.ready.extend(self._held)
        self._held.clear()
