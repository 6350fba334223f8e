"""Defines the interface of a partition's log, and the results of reading it.

`log_append` validates batches before the append. `memory_log` stores the batches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ...records import RecordBatch, down_convert
from ...records.log_format import LOG_OVERHEAD
from ...wire.errors import BrokerResponseError, CorruptBatchError, MissingCodecError
from ..api_error import api_error
from ..watchable import Watchable
from .leader_epoch_cache import LeaderEpochCache

__all__ = ["LogSlice", "PartitionLog", "RetentionBatchInfo", "StoredBatch", "TimestampedOffset"]

#: The header of a message that does not fit into the response. Kafka sends the header to a client
#: that reads message sets if the conversion yields no message, so that the client does not wait.
_OVERFLOW: Final = LOG_OVERHEAD.pack(-1, 61)


class LogSlice(NamedTuple):
    """Holds consecutive batches of a log; `size` is their total size in bytes."""

    batches: list[RecordBatch]
    size: int

    def join(self) -> bytes:
        """Returns the batches as bytes, for a Fetch response."""
        return b"".join([batch.raw for batch in self.batches])

    def join_as_message_set(self, magic: int, offset: int) -> bytes:
        """Returns the batches as messages of `magic` 0 or 1, for a client that fetches from
        `offset`.

        Always converts the first batch. Converts further batches as long as all messages together
        have at most `size` bytes. Stops before a batch that cannot be converted; if there is no
        message before that batch, raises UNSUPPORTED_COMPRESSION_TYPE or CORRUPT_MESSAGE. If the
        batches have no records, returns the header of a truncated message, as Kafka does: the
        client then fetches more bytes.
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
    """Holds the offset of a record, and its timestamp in ms since 1970."""

    offset: int
    timestamp: int


class RetentionBatchInfo(NamedTuple):
    """Holds the attributes of a batch that retention needs; times are in ms.

    `next_offset` is the offset after the batch. `largest_time` is the largest timestamp in the
    batch; if the records have no timestamps, the time of the append.
    """

    next_offset: int
    size_in_bytes: int
    largest_time: int
    appended_ms: int


class StoredBatch(NamedTuple):
    """Holds a batch of a log, and the time of its append in ms."""

    batch: RecordBatch
    appended_ms: int


class PartitionLog(Watchable, ABC):
    """Stores batches by offset, and notifies its watchers of appends.

    `Partition` notifies the watchers when the leader epoch changes, and `Topics` notifies the
    watchers when the topic is deleted. `start_offset` is the log start offset, `end_offset` the
    offset of the next record. `last_append_time` is in ms; it is -1 before the first append.
    """

    start_offset: int
    end_offset: int
    last_append_time: int

    def __init__(self) -> None:
        super().__init__()
        #: The leader epochs; `append` writes the current epoch into each batch.
        self.epochs = LeaderEpochCache()

    @property
    @abstractmethod
    def size_in_bytes(self) -> int:
        """Returns the total size of the batches in the log."""

    @abstractmethod
    def __iter__(self) -> Iterator[RecordBatch]:
        """Yields the batches, oldest first."""

    @abstractmethod
    def stored(self) -> Iterator[RetentionBatchInfo]:
        """Yields the `RetentionBatchInfo` of each batch, oldest first."""

    @abstractmethod
    def append(
        self, batch: RecordBatch, now_ms: int, *, stamp_time: bool = False, notifies: bool = True
    ) -> int:
        """Appends `batch` and notifies the watchers; returns its base offset.

        Changes only the header of the batch. If `stamp_time` is set, the records get the timestamp
        `now_ms` (LogAppendTime). If `notifies` is False, the caller notifies the watchers. Raises
        KAFKA_STORAGE_ERROR if the storage is full.
        """

    @abstractmethod
    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        at_least_one: bool,
        end_offset: int | None = None,
    ) -> LogSlice:
        """Returns at most `max_bytes` of batches, beginning with the batch that contains `offset`.

        If `at_least_one` is set, the first batch is returned even if it is larger. Batches from
        `end_offset` on are not included; None stands for the log end offset. Raises
        OFFSET_OUT_OF_RANGE if `offset` is before the log start offset or after the log end offset.
        """

    @abstractmethod
    def size_from(self, offset: int, end_offset: int | None = None) -> int:
        """Returns the size in bytes of the batch that contains `offset` and all later batches.

        Batches from `end_offset` on do not count; None stands for the log end offset.
        """

    @abstractmethod
    def offset_for_time(self, timestamp: int) -> TimestampedOffset | None:
        """Returns the offset of the first record whose timestamp is at least `timestamp` (ms).

        Also returns the record's timestamp. Returns None if there is no such record. May decode
        batches. Raises CorruptBatchError or MissingCodecError if a batch cannot be
        decoded.
        """

    @abstractmethod
    def offset_of_largest_time(self) -> TimestampedOffset | None:
        """Returns the first record with the largest timestamp (KIP-734); None in an empty log.

        Raises the errors of `offset_for_time`.
        """

    @abstractmethod
    def delete_before(self, offset: int) -> None:
        """Moves the log start offset to `offset`, and deletes the batches before it.

        Does nothing if the log start offset is `offset` or higher; otherwise notifies the watchers
        of the log. Raises OFFSET_OUT_OF_RANGE if `offset` is above the log end offset.
        """

    @abstractmethod
    def stored_batches(self) -> Iterator[StoredBatch]:
        """Yields each batch with the time of its append, oldest first."""

    @abstractmethod
    def replace_before(self, offset: int, batches: Sequence[StoredBatch]) -> None:
        """Replaces the batches before `offset`, the base offset of a batch, by compacted batches.

        The new batches are in the order of their offsets. The log start offset does not change.
        """

    @abstractmethod
    def truncate(self, offset: int) -> None:
        """Deletes the batch that contains `offset`, and all later batches.

        Raises OFFSET_OUT_OF_RANGE if `offset` is outside of the log.
        """


def _down_converted(batch: RecordBatch, magic: int, offset: int) -> bytes:
    if batch.compression == "zstd":
        raise api_error("UNSUPPORTED_COMPRESSION_TYPE", "a message set cannot hold zstd")
    try:
        return down_convert(batch, magic, from_offset=offset)
    except MissingCodecError as error:
        raise api_error("UNSUPPORTED_COMPRESSION_TYPE", str(error)) from None
    except CorruptBatchError as error:
        raise api_error("CORRUPT_MESSAGE", str(error)) from None
