"""The interface of a partition's log, and the results of reading it.

Knows no asyncio: the log notifies watchers of appends. `log_append` validates batches before they
are appended, `memory_log` stores them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Final, NamedTuple

from ...records import RecordBatch, down_convert
from ...records.log_format import LOG_OVERHEAD
from ...wire.errors import BrokerResponseError, CorruptBatchError, MissingCodecError
from ..api_error import api_error
from ..watchable import Watchable
from .leader_epoch_cache import LeaderEpochCache

__all__ = ["LogSlice", "PartitionLog", "StoredBatch", "TimestampedOffset"]

#: The start of a message that is larger than the response. If no batch can be converted for a
#: client that reads message sets, Kafka sends this, so that the client does not wait.
_OVERFLOW: Final = LOG_OVERHEAD.pack(-1, 61)


class LogSlice(NamedTuple):
    """Consecutive whole batches of a log; `size` is their length in bytes."""

    batches: list[RecordBatch]
    size: int

    def join(self) -> bytes:
        """Returns the bytes for a fetch response."""
        return b"".join([batch.raw for batch in self.batches])

    def join_as_message_set(self, magic: int, offset: int) -> bytes:
        """Returns the bytes for a client that fetches from `offset` and reads `magic`.

        Converts batches while they fit into `size`, but at least the first one, and stops before a
        batch that no message set can hold. Raises UNSUPPORTED_COMPRESSION_TYPE if that is the first
        batch, and CORRUPT_MESSAGE.
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
    """The offset and the timestamp (ms) of a record."""

    offset: int
    timestamp: int


class StoredBatch(NamedTuple):
    """The fields of a batch that retention uses: its size in bytes and its times.

    `next_offset` is the offset after the batch, `largest_time` its largest timestamp, or the time
    of its append if it has none; both times are in ms.
    """

    next_offset: int
    size_in_bytes: int
    largest_time: int
    appended_ms: int


class PartitionLog(Watchable, ABC):
    """Batches by offset; notifies its watchers of appends, leader changes and deletion.

    `start_offset` is the log start offset, `end_offset` the offset of the next record,
    `last_append_time` in ms, -1 before the first append.
    """

    start_offset: int
    end_offset: int
    last_append_time: int

    def __init__(self) -> None:
        super().__init__()
        #: Batches are stamped with the current epoch.
        self.epochs = LeaderEpochCache()

    @property
    @abstractmethod
    def size_in_bytes(self) -> int:
        """Returns the bytes of all batches in the log."""

    @abstractmethod
    def __iter__(self) -> Iterator[RecordBatch]:
        """Yields the batches, oldest first."""

    @abstractmethod
    def stored(self) -> Iterator[StoredBatch]:
        """Yields the `StoredBatch` of each batch, oldest first."""

    @abstractmethod
    def append(self, batch: RecordBatch, now_ms: int, *, stamp_time: bool = False) -> int:
        """Appends `batch`; returns its base offset.

        The records are neither decompressed nor encoded again. With `stamp_time` they get `now_ms`
        as their timestamp (log append time). Raises KAFKA_STORAGE_ERROR if the storage is full.
        """

    @abstractmethod
    def read(self, offset: int, max_bytes: int, *, at_least_one: bool) -> LogSlice:
        """Returns the batches from the one that has `offset` on, as many as fit into `max_bytes`.

        With `at_least_one` the first batch is included even if it is larger. Raises
        OFFSET_OUT_OF_RANGE.
        """

    @abstractmethod
    def offset_for_time(self, timestamp: int) -> TimestampedOffset | None:
        """Returns the first record at or after `timestamp` (ms); None if there is none.

        Decodes the batch that holds it. Raises CorruptBatchError and MissingCodecError.
        """

    @abstractmethod
    def offset_of_largest_time(self) -> TimestampedOffset | None:
        """Returns the first record with the largest timestamp (KIP-734); None in an empty log.

        Raises as `offset_for_time` does.
        """

    @abstractmethod
    def delete_before(self, offset: int) -> None:
        """Moves the log start offset to `offset`, and drops batches before it.

        Raises OFFSET_OUT_OF_RANGE beyond the end.
        """

    @abstractmethod
    def truncate(self, offset: int) -> None:
        """Drops the batch that holds `offset` and all after it.

        Raises OFFSET_OUT_OF_RANGE for an offset that is not within the log.
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
