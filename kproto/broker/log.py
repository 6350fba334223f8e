"""The log of one partition: batches as they were sent, re-stamped with their offsets.

Plain data, apart from asyncio; whoever waits for appends leaves a function to be called. Owns
offsets and which batches a read returns. Whether a batch may be appended is decided before.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from ..records import CREATE_TIME, NO_TIMESTAMP, RecordBatch, down_convert, restamp
from ..records.layout import LOG_OVERHEAD
from ..wire.errors import BrokerResponseError, CorruptBatchError, MissingCodecError
from .refusal import refusal

__all__ = ["LEADER_EPOCH", "LogSlice", "PartitionLog", "TimestampedOffset"]

#: There is one broker and no election, so every partition is in its first leader epoch.
LEADER_EPOCH: Final = 0


#: The beginning of a message that goes on behind the response. Kafka gives it to a client that
#: reads message sets when nothing of what was found can become one, so that it does not wait.
_OVERFLOW: Final = LOG_OVERHEAD.pack(-1, 61)


class LogSlice(NamedTuple):
    """Neighbouring batches of a log, whole; `size` is their length in bytes."""

    batches: list[RecordBatch]
    size: int

    def join(self) -> bytes:
        """The bytes of a fetch response."""
        return b"".join([batch.raw for batch in self.batches])

    def join_as_message_set(self, magic: int, offset: int) -> bytes:
        """The bytes of a response to a fetch from `offset`, for a client that reads `magic`.

        What is converted ends before it would take more than `size`, but not before the first
        batch, and before a batch that no message set can hold. Raises
        UNSUPPORTED_COMPRESSION_TYPE when that is the first, CORRUPT_MESSAGE.
        """
        converted: list[bytes] = []
        size = 0
        for batch in self.batches:
            try:
                messages = _down_converted(batch, magic, offset)
            except BrokerResponseError:
                if not converted:
                    raise
                break
            if converted and size + len(messages) > self.size:
                break
            if messages:
                converted.append(messages)
                size += len(messages)
        if self.batches and not converted:
            return _OVERFLOW
        return b"".join(converted)


class TimestampedOffset(NamedTuple):
    """The offset and timestamp (ms) of a record."""

    offset: int
    timestamp: int


class PartitionLog:
    """Batches by offset.

    `start_offset` is that of the oldest record one may read, `end_offset` the one that the next
    record will get. One replica holds the log and no transaction is ever open, so that the high
    watermark and the last stable offset are the end.
    """

    def __init__(self) -> None:
        self.start_offset = 0
        self.end_offset = 0
        self.last_append_time = NO_TIMESTAMP
        #: Called without arguments after each append and when the topic is deleted.
        self.watchers: set[Callable[[], None]] = set()
        self._batches: list[RecordBatch] = []
        # Of each batch: its last offset, where it ends in bytes since the beginning of the log,
        # and the largest timestamp up to it. All three only grow, so they can be searched.
        self._last_offsets: list[int] = []
        self._ends: list[int] = []
        self._max_timestamps: list[int] = []
        self._deleted_bytes = 0

    @property
    def size_in_bytes(self) -> int:
        """Bytes of all batches that the log holds."""
        return self._end_of(len(self._batches)) - self._deleted_bytes

    def __iter__(self) -> Iterator[RecordBatch]:
        return iter(self._batches)

    def append(self, batch: RecordBatch, now_ms: int, *, stamp_time: bool = False) -> int:
        """Store `batch` behind the last one; returns its base offset.

        The records are neither decompressed nor encoded again. With `stamp_time` they take
        `now_ms` as their timestamp (log append time).
        """
        base_offset = self.end_offset
        stored = RecordBatch(
            restamp(
                batch,
                base_offset=base_offset,
                partition_leader_epoch=LEADER_EPOCH,
                log_append_time=now_ms if stamp_time else None,
            )
        )
        largest = self._max_timestamps[-1] if self._max_timestamps else NO_TIMESTAMP
        self._ends.append(self._end_of(len(self._batches)) + stored.size_in_bytes)
        self._batches.append(stored)
        self._last_offsets.append(stored.last_offset)
        self._max_timestamps.append(max(largest, stored.max_timestamp))
        self.end_offset = stored.next_offset
        self.last_append_time = now_ms
        self.notify()
        return base_offset

    def read(self, offset: int, max_bytes: int, *, at_least_one: bool) -> LogSlice:
        """The batches from the one that holds `offset` on, as many as fit into `max_bytes`.

        With `at_least_one` the first comes however large it is. Raises OFFSET_OUT_OF_RANGE.
        """
        if not self.start_offset <= offset <= self.end_offset:
            raise refusal(
                "OFFSET_OUT_OF_RANGE",
                f"offset {offset} is not within {self.start_offset} to {self.end_offset}",
            )
        first = bisect_left(self._last_offsets, offset)
        start = self._end_of(first)
        stop = bisect_right(self._ends, start + max_bytes)
        if stop <= first and at_least_one:
            stop = min(first + 1, len(self._batches))
        if stop <= first:
            return LogSlice([], 0)
        return LogSlice(self._batches[first:stop], self._end_of(stop) - start)

    def offset_for_time(self, timestamp: int) -> TimestampedOffset | None:
        """The first record at or after `timestamp` (ms); None when there is none.

        Decodes the one batch that holds it. Raises CorruptBatchError and MissingCodecError.
        """
        first = bisect_left(self._max_timestamps, timestamp)
        for batch in self._batches[first:]:
            if batch.max_timestamp < timestamp:
                continue
            if batch.timestamp_type != CREATE_TIME and batch.base_offset >= self.start_offset:
                return TimestampedOffset(batch.base_offset, batch.max_timestamp)
            for record in batch.records(from_offset=self.start_offset):
                if record.timestamp >= timestamp:
                    return TimestampedOffset(record.offset, record.timestamp)
        return None

    def offset_of_largest_time(self) -> TimestampedOffset | None:
        """The first record with the largest timestamp (KIP-734); None in an empty log.

        Raises as `offset_for_time` does.
        """
        if not self._max_timestamps:
            return None
        return self.offset_for_time(self._max_timestamps[-1])

    def delete_before(self, offset: int) -> None:
        """Move the start of the log to `offset`; batches that lie before it are dropped.

        Raises OFFSET_OUT_OF_RANGE when that is beyond the end.
        """
        if offset > self.end_offset:
            raise refusal(
                "OFFSET_OUT_OF_RANGE", f"offset {offset} is beyond the end, {self.end_offset}"
            )
        self.start_offset = max(self.start_offset, offset)
        count = bisect_left(self._last_offsets, self.start_offset)
        self._deleted_bytes = self._end_of(count)
        for of_each_batch in (
            self._batches,
            self._last_offsets,
            self._ends,
            self._max_timestamps,
        ):
            del of_each_batch[:count]

    def notify(self) -> None:
        """Call whoever waits."""
        for watcher in tuple(self.watchers):
            watcher()

    def _end_of(self, count: int) -> int:
        """Where the first `count` batches end, in bytes since the beginning of the log."""
        return self._ends[count - 1] if count else self._deleted_bytes


def _down_converted(batch: RecordBatch, magic: int, offset: int) -> bytes:
    if batch.compression == "zstd":
        raise refusal("UNSUPPORTED_COMPRESSION_TYPE", "a message set cannot hold zstd")
    try:
        return down_convert(batch, magic, from_offset=offset)
    except MissingCodecError as error:
        raise refusal("UNSUPPORTED_COMPRESSION_TYPE", str(error)) from None
    except CorruptBatchError as error:
        raise refusal("CORRUPT_MESSAGE", str(error)) from None
