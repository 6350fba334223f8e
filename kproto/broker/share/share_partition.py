"""Implements a share partition: which records are acquired, acknowledged and archived (KIP-932).

The leader of a partition has a `SharePartition` for each group. It holds the records in flight,
from the share partition start offset on; `record_state` has the table of their states. All changes
except acquisitions are written to the share coordinator. `acquisition` decides which records a
member acquires.

There are no timers: callers call `advance`, which ends expired acquisition locks. The order of
checks and the error messages are those of Kafka 4.4.0.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..groups import ClockReading
from ..watchable import Watchable
from .in_flight import Delivery, InFlightBatch, InFlightBatches
from .record_state import ACKNOWLEDGED_STATES, AcknowledgeType, RecordState
from .share_partition_config import SharePartitionConfig
from .share_state import ShareState, ShareStateWrite, StateBatch

__all__ = ["AcknowledgementBatch", "ReadGap", "RequestFailedError", "SharePartition"]

logger = logging.getLogger("kproto.broker")

#: Writes a change to the share coordinator. Raises BrokerResponseError.
Store = Callable[[ShareStateWrite, ClockReading], None]

_NOT_FOUND: Final = "Batch record not found. "
_NOT_ACQUIRED: Final = "The batch cannot be acknowledged. The batch is not in the acquired state."


class RequestFailedError(Exception):
    """The whole request fails with UNKNOWN_SERVER_ERROR, as a fault of Kafka 4.4.0 makes it."""


class AcknowledgementBatch(NamedTuple):
    """Holds acknowledgements of the offsets from `first` to `last`.

    `types` has one acknowledge type for all offsets, or one for each offset.
    """

    first: int
    last: int
    types: tuple[int, ...]

    def type_of(self, offset: int) -> AcknowledgeType:
        """Returns the acknowledge type of an offset."""
        at = offset - self.first if len(self.types) > 1 else 0
        return AcknowledgeType(self.types[at])


class ReadGap(NamedTuple):
    """Holds a gap in the state that was read from the share coordinator.

    The former leader had acquired records in the gap, and they were not acknowledged. The records
    from `start` on must be fetched again, up to `end`, the last offset that was read.
    """

    start: int
    end: int


class SharePartition(Watchable):
    """Tracks the records in flight of one partition for one share group.

    `state` is the state that was read from the share coordinator; `start_offset` replaces its start
    offset if that is not initialized. Notifies watchers when records become available.
    """

    def __init__(
        self,
        state: ShareState,
        start_offset: int,
        leader_epoch: int,
        config: Callable[[], SharePartitionConfig],
        store: Store,
    ) -> None:
        super().__init__()
        self.leader_epoch = leader_epoch
        self.batches = InFlightBatches()
        self.start_offset = start_offset
        #: The last offset in flight; without records in flight, the next offset to fetch.
        self.end_offset = start_offset
        self.gap: ReadGap | None = None
        self._state_epoch = state.state_epoch
        self._config = config
        self._store = store
        self._restore(state.batches)

    def _restore(self, batches: Iterable[StateBatch]) -> None:
        expected, gap_start = self.start_offset, None
        for it in batches:
            if gap_start is None and it.first > expected:
                gap_start = expected
            expected = it.last + 1
            delivery = Delivery(RecordState(it.state), it.deliveries)
            self.batches.add(InFlightBatch(it.first, it.last, delivery))
        if len(self.batches):
            self.end_offset = self.batches.last.last
            if gap_start is not None:
                self.gap = ReadGap(gap_start, self.end_offset)
            self._move_start_offset()

    # State

    @property
    def config(self) -> SharePartitionConfig:
        """Returns the present configs of the group."""
        return self._config()

    @property
    def active_gap(self) -> ReadGap | None:
        """Returns the gap, if no record after it was acquired since."""
        gap = self.gap
        return gap if gap is not None and gap.end == self.end_offset else None

    @property
    def in_flight(self) -> int:
        """Returns the number of offsets in flight."""
        return self.end_offset - self.start_offset + 1 if len(self.batches) else 0

    @property
    def complete_count(self) -> int:
        """Returns how many offsets from the start offset on are acknowledged or archived."""
        return sum(
            max(0, last - max(first, self.start_offset) + 1)
            for batch in self.batches
            for first, last, delivery in batch.parts()
            if delivery.is_terminal
        )

    @property
    def next_deadline_ms(self) -> int | None:
        """Returns when the next acquisition lock expires, as `ClockReading.ms`; None if none is."""
        locks = (it.lock_ms for batch in self.batches for _, _, it in batch.parts())
        return min((lock for lock in locks if lock is not None), default=None)

    @property
    def next_fetch_offset(self) -> int:
        """Returns the offset of the first available record, else the offset after the last."""
        if not len(self.batches) or self.start_offset > self.batches.last.last:
            return self.end_offset
        gap = self.active_gap
        gap_start = -1 if gap is None else gap.start
        for batch in self.batches:
            if gap is not None:
                if batch.first > gap_start:
                    return gap_start
                gap_start = max(batch.last + 1, gap_start)
            for first, _, delivery in batch.parts():
                if delivery.state is RecordState.AVAILABLE:
                    return first
        return self.end_offset + 1

    @property
    def can_acquire(self) -> bool:
        """Returns True if an available record is in flight, or more records may be in flight."""
        if self.next_fetch_offset != self.end_offset + 1:
            return True
        return self.in_flight < self.config.max_record_locks

    # Acknowledgements

    def acknowledge(
        self, member_id: str, batches: Sequence[AcknowledgementBatch], now: ClockReading
    ) -> None:
        """Applies the acknowledgements of a member: all of them, or none.

        Raises INVALID_REQUEST for offsets that were never acquired, INVALID_RECORD_STATE for
        records that the member does not hold, the errors of writing, and `RequestFailedError` for
        a batch across the start offset if no record there has been acquired.
        """
        self.advance(now)
        change = _Change()
        try:
            for batch in batches:
                if batch.last >= self.start_offset:
                    for in_flight in self._acknowledged_batches(batch):
                        self._acknowledge(member_id, batch, in_flight, change, now)
            self._write(change, now)
        except (BrokerResponseError, RequestFailedError):
            change.roll_back()
            raise

    def _acknowledged_batches(self, batch: AcknowledgementBatch) -> list[InFlightBatch]:
        floor = self.batches.floor(batch.first)
        if floor is None and batch.first < self.start_offset <= batch.last:
            floor = self.batches.floor(self.start_offset)
            if floor is None:
                raise RequestFailedError("no record at the start offset has been acquired")
        if floor is None:
            raise api_error(
                "INVALID_RECORD_STATE",
                f"{_NOT_FOUND}The request batch offsets are not found in the cache.",
            )
        found = self.batches.between(floor.first, batch.last)
        if found[-1].last < batch.first:
            raise api_error(
                "INVALID_REQUEST",
                f"{_NOT_FOUND}The first offset in request is past acquired records.",
            )
        if batch.last > found[-1].last:
            raise api_error(
                "INVALID_REQUEST",
                f"{_NOT_FOUND}The last offset in request is past acquired records.",
            )
        return found

    def _acknowledge(
        self,
        member_id: str,
        batch: AcknowledgementBatch,
        in_flight: InFlightBatch,
        change: _Change,
        now: ClockReading,
    ) -> None:
        if in_flight.last < self.start_offset:
            return
        if in_flight.offsets is None:
            _check_owner(in_flight.delivery, member_id)
            is_whole = (
                in_flight.is_within(batch.first, batch.last)
                and len(batch.types) == 1
                and not in_flight.first < self.start_offset
            )
            if is_whole:
                self._apply(in_flight.first, in_flight.last, in_flight.delivery, batch, change, now)
                return
        for offset, delivery in in_flight.split().items():
            if max(batch.first, self.start_offset) <= offset <= batch.last:
                if delivery.state is not RecordState.ACQUIRED:
                    raise api_error(
                        "INVALID_RECORD_STATE",
                        "The offset cannot be acknowledged. The offset is not acquired.",
                    )
                if delivery.member_id != member_id:
                    raise api_error("INVALID_RECORD_STATE", "Member is not the owner of offset")
                self._apply(offset, offset, delivery, batch, change, now)

    def _apply(
        self,
        first: int,
        last: int,
        delivery: Delivery,
        batch: AcknowledgementBatch,
        change: _Change,
        now: ClockReading,
    ) -> None:
        kind = batch.type_of(first)
        if kind is AcknowledgeType.RENEW:
            delivery.lock_ms = now.ms + self.config.lock_duration_ms
            return
        change.finish(
            first, last, delivery, self._after_release(ACKNOWLEDGED_STATES[kind], delivery)
        )

    def _after_release(self, state: RecordState, delivery: Delivery) -> RecordState:
        """Returns ARCHIVED instead of AVAILABLE if the delivery count limit is reached."""
        if state is RecordState.AVAILABLE and delivery.count >= self.config.delivery_count_limit:
            return RecordState.ARCHIVED
        return state

    def release(self, member_id: str, now: ClockReading) -> None:
        """Releases all records that a member has acquired.

        Raises the errors of writing; then the member still holds the records.
        """
        self.advance(now)
        change = _Change()
        for batch in self._splitting_at_start():
            for first, last, delivery in batch.parts():
                if delivery.state is RecordState.ACQUIRED and delivery.member_id == member_id:
                    state = RecordState.AVAILABLE
                    if last < self.start_offset:
                        state = RecordState.ARCHIVED
                    change.finish(first, last, delivery, self._after_release(state, delivery))
        try:
            self._write(change, now)
        except BrokerResponseError:
            change.roll_back()
            raise

    def advance(self, now: ClockReading) -> None:
        """Ends the acquisition locks that have expired.

        The records become available again, or are archived. They do so even if the change cannot be
        written.
        """
        change = _Change()
        deadline = self.next_deadline_ms
        if deadline is None or deadline > now.ms:
            return
        for batch in self._splitting_at_start():
            for first, last, delivery in batch.parts():
                if delivery.lock_ms is not None and delivery.lock_ms <= now.ms:
                    state = RecordState.AVAILABLE
                    if last < self.start_offset:
                        state = RecordState.ARCHIVED
                    change.finish(first, last, delivery, self._after_release(state, delivery))
        try:
            self._write(change, now)
        except BrokerResponseError as error:
            logger.warning("the end of acquisition locks is not stored: %s", error)
            self._move_start_offset()
            self.notify()

    def _splitting_at_start(self) -> InFlightBatches:
        """Returns the batches; tracks each offset of an acquired batch around the start offset."""
        for batch in self.batches:
            if (
                batch.offsets is None
                and batch.delivery.state is RecordState.ACQUIRED
                and batch.first < self.start_offset <= batch.last
            ):
                batch.split()
        return self.batches

    # Offsets

    def on_log_start_moved(self, log_start: int) -> None:
        """Moves the start offset to the log start offset, and archives available records before it.

        Acquired records before it are archived when their locks end. Does nothing if the start
        offset is not before `log_start`.
        """
        if log_start <= self.start_offset:
            return
        if not len(self.batches):
            self.start_offset = self.end_offset = log_start
            return
        self.archive(self.start_offset, log_start, RecordState.AVAILABLE)
        self.start_offset = log_start
        self.end_offset = max(self.end_offset, log_start)

    def archive(self, first: int, end: int, state: RecordState) -> None:
        """Archives the records from `first` to before `end` that have the state `state`."""
        for batch in self.batches:
            if batch.first >= end or batch.last < first:
                continue
            if batch.offsets is None and batch.is_within(first, end - 1):
                if batch.delivery.state is state:
                    batch.delivery.finish(RecordState.ARCHIVED)
            elif batch.offsets is not None or batch.delivery.state is state:
                for offset, delivery in batch.split().items():
                    if first <= offset < end and delivery.state is state:
                        delivery.finish(RecordState.ARCHIVED)

    def move_gap(self, offset: int) -> None:
        """Moves the start of the gap to `offset`; removes the gap if that is after its end."""
        gap = self.gap
        if gap is not None:
            is_active = gap.end == self.end_offset and offset <= gap.end
            self.gap = gap._replace(start=offset) if is_active else None

    def _move_start_offset(self) -> None:
        """Moves the start offset after the last record before which all deliveries are complete."""
        batch = self.batches.floor(self.start_offset)
        if batch is None:
            return
        at_start = batch.delivery if batch.offsets is None else batch.offsets.get(self.start_offset)
        if at_start is not None and not at_start.is_terminal:
            return
        done = self._last_complete_offset()
        if done is None:
            return
        if done == self.batches.last.last:
            self.start_offset = self.end_offset = max(self.start_offset, done + 1)
            self.batches.clear()
            return
        floor = self.batches.floor(done)
        assert floor is not None
        if done == floor.last:
            after = next(it.first for it in self.batches if it.first > done)
            self.start_offset = max(self.start_offset, after)
            gap = self.active_gap
            if gap is not None:
                self.start_offset = min(self.start_offset, gap.start)
        else:
            self.start_offset = max(self.start_offset, done + 1)
        self.batches.remove_before(min(self.start_offset, done + 1))

    def _last_complete_offset(self) -> int | None:
        done: int | None = None
        gap = self.active_gap
        for batch in self.batches:
            if gap is not None and batch.last >= gap.start:
                return done
            for _, last, delivery in batch.parts():
                if not delivery.is_terminal:
                    return done
                done = last
        return done

    def _write(self, change: _Change, now: ClockReading) -> None:
        """Writes a change, and then moves the start offset; raises the errors of writing."""
        if not change.batches:
            return
        write = ShareStateWrite(
            self._state_epoch,
            self.leader_epoch,
            self.start_offset,
            self.complete_count,
            change.state_batches(),
        )
        self._store(write, now)
        self._move_start_offset()
        self.notify()


def _check_owner(delivery: Delivery, member_id: str) -> None:
    """Raises INVALID_RECORD_STATE if the member has not acquired the whole batch."""
    if not delivery.member_id:
        raise api_error("INVALID_RECORD_STATE", _NOT_ACQUIRED)
    if delivery.member_id != member_id:
        raise api_error("INVALID_RECORD_STATE", "Member is not the owner of batch record")


class _Change:
    """Collects changed deliveries, to write them, or to roll them back."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, int, Delivery]] = []
        self._former: list[tuple[Delivery, Delivery]] = []

    def finish(self, first: int, last: int, delivery: Delivery, state: RecordState) -> None:
        """Ends the lock of the offsets from `first` to `last`, with the state `state`."""
        self._former.append((delivery, replace(delivery)))
        delivery.finish(state)
        self.batches.append((first, last, delivery))

    def state_batches(self) -> tuple[StateBatch, ...]:
        """Returns the changed offsets with their new states."""
        return tuple(
            StateBatch(first, last, int(it.state), it.count) for first, last, it in self.batches
        )

    def roll_back(self) -> None:
        """Restores the former deliveries."""
        for delivery, former in reversed(self._former):
            delivery.restore(former)
