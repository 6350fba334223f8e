"""Tracks which polled records are processed, and the time of the last poll.

Without a processor, records count as processed when the caller polls again. A processor (`run`)
accepts the polled records, and tracks which of them are processed. `PollState` does no I/O. Callers
pass in the time, in seconds of the client's clock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from ..commits.processed_bitmap import ProcessedBitmap, build_bitmap, merge_bitmaps
from ..metadata.cluster import TopicPartition
from .fetch_buffer import FetchBuffer
from .in_flight_records import InFlightRange, PollMarker
from .partition_state import TopicPartitionState

__all__ = ["PollState", "PollTimer", "RecordProcessor"]


class RecordProcessor(Protocol):
    """Processes records concurrently, and tracks which of them are processed.

    `processing.pool` implements it. Partitions are identified by their states, and assignments are
    identified by their assignment epochs.
    """

    @property
    def accepts_records(self) -> bool:
        """True if more records may be polled."""
        ...

    @property
    def queued_bytes(self) -> int:
        """The size of the accepted records that are not processed."""
        ...

    def first_incomplete(self, state: object) -> int | None:
        """Returns the first unprocessed offset of a partition; None if there is none.

        Ignores records that the processor has not accepted.
        """
        ...

    def incomplete_offsets(self, state: object) -> tuple[int, list[int]] | None:
        """Returns the highest started offset, and the incomplete offsets up to that offset.

        Returns None if there is no incomplete offset. With order "partition", always returns
        None.
        """
        ...

    def first_queued(self, state: object) -> int | None:
        """Returns the offset of the first queued record of a partition; None if there is none.

        A queued record is accepted, but its processing has not started.
        """
        ...

    @property
    def queued_positions(self) -> dict[TopicPartition, int]:
        """The first queued offset of each partition that has queued records."""
        ...

    def is_in_flight(self, epochs: Collection[object]) -> bool:
        """Returns True if handlers are processing a record of one of the assignment `epochs`.

        Call it only after `drop`, because before `drop` it may also return True for queued records.
        """
        ...

    def oldest_started_at(self, now: float) -> float:
        """Returns the time at which the oldest record that is being processed was started.

        Returns `now` if no record is being processed.
        """
        ...

    def drop(self, state: object) -> int | None:
        """Drops the queued records of a partition; returns the first dropped offset or None."""
        ...

    def forget(self, state: object) -> None:
        """Drops the records of a partition after a seek or reset of its position.

        If a record of the partition is being processed, its result is ignored.
        """
        ...

    def abandon(self, states: Iterable[object], epochs: Collection[object]) -> None:
        """Drops the records of partitions that may be assigned to other members now."""
        ...

    def pause(self, state: object) -> None:
        """Stops starting records of a partition until `resume`."""
        ...

    def resume(self, state: object) -> None:
        """Allows the records of a paused partition to start."""
        ...


class PollTimer:
    """Measures the time since the last poll, for max.poll.interval.ms.

    `since` is a time in seconds. The first call of `observe` after a poll sets `since` to the time
    of that call. While a poll waits for records, every call of `observe` sets it. So `since` may be
    later than the last poll, but is never earlier. While `run` processes the records, `PollState`
    sets `since` to the start time of the oldest record that is being processed.
    """

    __slots__ = ("_marker", "since")

    def __init__(self, now: float = 0.0) -> None:
        self._marker: PollMarker | None = None
        self.since = now

    def observe(self, marker: PollMarker, now: float, *, is_polling: bool) -> None:
        """Sets `since` to `now` if a poll waits, or was made since the last call of `observe`.

        `marker` is the present `FetchBuffer.poll_marker`. `is_polling` is True if a poll waits for
        records.
        """
        if is_polling or marker != self._marker:
            self._marker = marker
            self.since = now


class PollState:
    """Tracks which of the polled records are processed, by the caller or by the `processor`."""

    __slots__ = ("_timer", "buffer", "processor")

    def __init__(self, buffer: FetchBuffer, now: float = 0.0) -> None:
        self.buffer = buffer
        self.processor: RecordProcessor | None = None
        self._timer = PollTimer(now)

    def on_poll(self, now: float) -> float:
        """Marks the records of the last poll as processed.

        Returns their processing time in seconds. Returns 0 if the last poll returned no records, or
        if the buffer has no `batch_size`.
        """
        self.buffer.on_poll()
        size = self.buffer.batch_size
        return 0.0 if size is None else size.on_poll(now)

    def on_records_returned(self, now: float) -> None:
        """Starts to measure the processing time of the records that a poll has returned."""
        if self.buffer.batch_size is not None:
            self.buffer.batch_size.on_records_returned(now)

    @property
    def queued_bytes(self) -> int:
        """The size of buffered and queued records."""
        queued = 0 if self.processor is None else self.processor.queued_bytes
        return self.buffer.size_in_bytes + queued

    @property
    def wants_records(self) -> bool:
        """True if a poll is allowed to return records, but no completed fetch is ready."""
        return not self.buffer.ready and (self.processor is None or self.processor.accepts_records)

    @property
    def in_flight(self) -> list[InFlightRange]:
        """The polled records that are not processed yet, as one offset range for each partition.

        Empty if all polled records are processed, or if a `processor` (of `run`) processes the
        records.
        """
        return [] if self.processor is not None else [*self.buffer.in_flight.values()]

    def has_in_flight(self, states: Mapping[TopicPartition, TopicPartitionState]) -> bool:
        """Returns True if returned records of `states` are not processed yet, also after a seek.

        If `run` processes the records (`processor`), the result is valid only after `drop`. Without
        `run`, records whose offsets the user has committed do not count.
        """
        if self.processor is not None:
            epochs = {state.assignment_epoch for state in states.values()}
            return self.processor.is_in_flight(epochs)
        for in_flight in self.buffer.in_flight.values():
            its = states.get(in_flight.state.tp)
            if (
                its is not None
                and its.assignment_epoch == in_flight.state.assignment_epoch
                and its.user_committed < in_flight.next_offset
            ):
                return True
        return False

    def last_poll_at(self, now: float, *, is_polling: bool) -> float:
        """Returns the time of the last poll, in seconds; `now` while a poll waits for records.

        With a processor, returns the start time of the oldest record that it processes; `now` if it
        processes no record.
        """
        timer = self._timer
        if self.processor is not None:
            timer.since = self.processor.oldest_started_at(now)
        else:
            timer.observe(self.buffer.poll_marker, now, is_polling=is_polling)
        return timer.since

    def position_of(self, state: TopicPartitionState) -> int:
        """Returns the offset of the next record to be polled; `state` must have a position."""
        if self.processor is not None:
            queued = self.processor.first_queued(state)
            if queued is not None:
                return queued
        return self.buffer.position_of(state)

    def has_records_of(self, state: TopicPartitionState) -> bool:
        """Returns True if records of a partition are buffered, queued or being processed."""
        processor = self.processor
        if processor is not None and (
            processor.first_incomplete(state) is not None
            or processor.incomplete_offsets(state) is not None
        ):
            return True
        return self.buffer.has_records_of(state)

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """For each partition with buffered records, the offset of the next record to be polled."""
        found = self.buffer.positions
        return found if self.processor is None else found | self.processor.queued_positions

    def processed_offset(self, state: TopicPartitionState) -> int:
        """Returns the offset before which all records are processed.

        `state` must have a position.
        """
        if self.processor is None:
            return self.buffer.processed_offset(state)
        first = self.processor.first_incomplete(state)
        return self.position_of(state) if first is None else first

    def bitmap_of(self, state: TopicPartitionState) -> ProcessedBitmap | None:
        """Returns the offsets after the first incomplete record that are processed already.

        The records may have been processed by this member or by earlier members. Returns None if
        there are no such offsets.
        """
        return merge_bitmaps(self.bitmap_here(state), state.processed_bitmap)

    def bitmap_here(self, state: TopicPartitionState) -> ProcessedBitmap | None:
        """Returns the offsets that this member processed after the first incomplete record.

        Returns None if there are no such offsets. Only offsets before the next offset to poll
        count. The next offset comes from batch headers, so a record with a wrong, larger offset
        does not count: otherwise later records at these offsets would be marked as processed.
        """
        own = None if self.processor is None else self.processor.incomplete_offsets(state)
        if own is None:
            return None
        highest, incomplete = own
        polled = self.buffer.position_of(state)
        if state.has_position and highest >= polled:
            highest = polled - 1
            incomplete = [offset for offset in incomplete if offset <= highest]
        return build_bitmap(highest, incomplete, state.epoch_before(highest + 1))

    # Partitions that are dropped

    def drop(self, state: TopicPartitionState) -> int:
        """Drops the buffered and queued records of a partition.

        Returns the offset of the next record to be processed.
        """
        dropped = None if self.processor is None else self.processor.drop(state)
        position = self.position_of(state) if dropped is None else dropped
        self.buffer.drop(state)
        return position

    def drop_truncated(self, state: TopicPartitionState) -> int:
        """Drops the records of a truncated log; returns the offset of the next record to be polled.

        With a processor, the first incomplete record of the partition and all later records count
        as not returned: the records that the log still has are returned again.
        """
        if self.processor is None:
            return self.buffer.drop(state)
        incomplete = self.processor.first_incomplete(state)
        position = self.drop(state)
        self.processor.forget(state)
        return position if incomplete is None else min(position, incomplete)
