"""The log of one partition: what every form of it can do, and what a read of it returns.

Apart from asyncio; whoever waits for appends leaves a function to be called. Whether a batch may
be appended is decided before (`appending`), where the bytes are kept by the form (`memory`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Final, NamedTuple

from ...records import RecordBatch, down_convert
from ...records.any_magic import LOG_OVERHEAD
from ...wire.errors import BrokerResponseError, CorruptBatchError, MissingCodecError
from ..api_error import api_error
from ..watchable import Watchable
from .leader_epoch_cache import LeaderEpochCache

__all__ = ["LogSlice", "PartitionLog", "StoredBatch", "TimestampedOffset"]

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


class StoredBatch(NamedTuple):
    """What retention asks of a batch: its size in bytes and its age.

    `next_offset` is the offset behind it, `largest_time` its largest timestamp, or when it was
    appended if it has none; both times in ms.
    """

    next_offset: int
    size_in_bytes: int
    largest_time: int
    appended_ms: int


class PartitionLog(Watchable, ABC):
    """Batches by offset; it changes with each append, with its leader, and when its topic is
    deleted.

    `start_offset` is that of the oldest record one may read, `end_offset` the one that the next
    record will get, `last_append_time` in ms, -1 before the first append.
    """

    start_offset: int
    end_offset: int
    last_append_time: int

    def __init__(self) -> None:
        super().__init__()
        #: Which leader wrote what; batches are stamped with the current epoch.
        self.epochs = LeaderEpochCache()

    @property
    @abstractmethod
    def size_in_bytes(self) -> int:
        """Bytes of all batches that the log holds."""

    @abstractmethod
    def __iter__(self) -> Iterator[RecordBatch]:
        """The batches, oldest first."""

    @abstractmethod
    def stored(self) -> Iterator[StoredBatch]:
        """What retention asks of each batch, oldest first."""

    @abstractmethod
    def append(self, batch: RecordBatch, now_ms: int, *, stamp_time: bool = False) -> int:
        """Store `batch` behind the last one; returns its base offset.

        The records are neither decompressed nor encoded again. With `stamp_time` they take
        `now_ms` as their timestamp (log append time). Raises KAFKA_STORAGE_ERROR when there is no
        room for it.
        """

    @abstractmethod
    def read(self, offset: int, max_bytes: int, *, at_least_one: bool) -> LogSlice:
        """The batches from the one that holds `offset` on, as many as fit into `max_bytes`.

        With `at_least_one` the first comes however large it is. Raises OFFSET_OUT_OF_RANGE.
        """

    @abstractmethod
    def offset_for_time(self, timestamp: int) -> TimestampedOffset | None:
        """The first record at or after `timestamp` (ms); None when there is none.

        Decodes the one batch that holds it. Raises CorruptBatchError and MissingCodecError.
        """

    @abstractmethod
    def offset_of_largest_time(self) -> TimestampedOffset | None:
        """The first record with the largest timestamp (KIP-734); None in an empty log.

        Raises as `offset_for_time` does.
        """

    @abstractmethod
    def delete_before(self, offset: int) -> None:
        """Move the start of the log to `offset`; batches that lie before it are dropped.

        Raises OFFSET_OUT_OF_RANGE when that is beyond the end.
        """

    @abstractmethod
    def truncate(self, offset: int) -> None:
        """Drop the batches that hold `offset` and what is behind it: the log ends before them.

        Raises OFFSET_OUT_OF_RANGE when that is not within the log.
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
