"""The batches of one partition in a fetch response, which are decoded when they are polled.

The checksum of each buffered batch is verified when the response is processed. The batch is
decompressed and decoded only when it is polled: so memory and CPU caches hold the records of one
poll, not of a whole fetch. Control batches are never returned. The next fetch position is the
offset after the last batch, even if compaction has removed the last records of this batch; but the
position is never after the `end` of the partition. An unreadable record raises
UnreadableRecordError once. If a codec is missing, the batch stays, and `take_records` and
`take_values` raise MissingCodecError. Plain data: no connection and no event loop.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple

from ...messages.fetch_response import PartitionData
from ...records import BatchReader, Record, RecordBatch, checked_next_offset, read_batches
from ...records.log_format import COMPRESSION_CODEC_MASK
from ...records.magic2.unreadable_records import UnreadableRecordsReader
from ...records.type_variables import K, U, V
from ...stored.aborted_transactions import AbortedTransactions
from ...wire.errors import (
    CorruptBatchError,
    MissingCodecError,
    ProtocolError,
    UnreadableRecordError,
)
from ..commits.processed_bitmap import ProcessedBitmap
from .partition_state import TopicPartitionState

__all__ = [
    "CompletedFetch",
    "FetchedBatch",
    "FetchedRecords",
    "FetchedValues",
    "FilteredBatches",
    "UnreadBatch",
    "aborted_transactions",
    "filter_batches",
]

#: From this magic on, offsets must rise from batch to batch; Kafka 3.9 may return messages of older
#: magics twice.
MAGIC_OF_BATCHES: Final = 2

#: Small batches of one fetch are joined into a list of up to this many records, and larger ones are
#: split, except for `take_values` and in a message set (magic 0 and 1). So a list costs little
#: compared with its records. By default Python collects garbage once 700 more objects were created
#: than freed: a caller that processes one list after the other stays below this number.
_LIST_RECORDS: Final = 500

#: A list has about this many decompressed bytes at most, unless one record has more: a few KB of a
#: response may be hundreds of MB of records. The values of a batch are not split.
_LIST_BYTES: Final = 1 << 20


class FetchedRecords(NamedTuple, Generic[K, V, U]):
    """Records of one partition, in order, and the high watermark in the fetch response."""

    topic: str
    partition: int
    records: list[Record[K, V] | U]
    high_watermark: int


class FetchedValues(NamedTuple, Generic[V, U]):
    """Values of one partition, in offset order; `next_offset` is the position after these values.

    The values have no offsets, and offsets cannot be counted from `next_offset`, because compaction
    and transactions leave gaps. `high_watermark` is the high watermark in the fetch response.
    """

    topic: str
    partition: int
    values: list[V | U | None]
    next_offset: int
    high_watermark: int


if not TYPE_CHECKING:  # `typing.Generic` knows no defaults of type variables before Python 3.13
    FetchedRecords.__class_getitem__ = classmethod(GenericAlias)
    FetchedValues.__class_getitem__ = classmethod(GenericAlias)


class FetchedBatch(NamedTuple):
    """A batch of one partition as the broker stores it, not decoded; its checksum is verified.

    `batch.raw` is its bytes, `batch.records()` decodes it. The first batch may have records before
    the position, and with `stop_at_end` the last batch may have records after the end. In a message
    set (magic 0 and 1) a batch is a message, or a wrapper of compressed messages. The batch
    references the whole fetch response: copy `batch.raw` to store it for long. `high_watermark` is
    the high watermark in the fetch response.
    """

    topic: str
    partition: int
    batch: RecordBatch
    high_watermark: int


class UnreadBatch(NamedTuple):
    """A batch with a verified checksum; its records before `from_offset` are not returned."""

    from_offset: int
    batch: RecordBatch


class FilteredBatches(NamedTuple):
    """The batches of one fetch in order, and the next fetch position.

    `last_epoch` is the leader epoch of the last batch, -1 if it has none. `epochs` has (offset,
    leader epoch) for each batch whose leader epoch differs from that of the previous batch.
    `last_epoch` and `epochs` also consider control batches and batches of aborted transactions.
    """

    batches: list[UnreadBatch]
    position: int
    last_epoch: int
    epochs: list[tuple[int, int]]


class CompletedFetch:
    """The batches of one fetch of the partition of `state`, in order.

    Each `take` method removes the batches or records that it returns; it returns None if none is
    left. If the next record is unreadable, `take_records` and `take_values` raise
    UnreadableRecordError, and the next call returns the records after it. If the codec of the next
    batch is missing, they raise MissingCodecError, and the batch stays. Read `from_offset` and
    `position` only while a batch is left. The batches occupy `size_in_bytes` of the response until
    all of them are taken.
    """

    __slots__ = (
        "_batches",
        "_end",
        "_max_decompressed_bytes",
        "_reader",
        "_unreadable",
        "high_watermark",
        "list_bytes",
        "size_in_bytes",
        "state",
    )

    def __init__(
        self,
        state: TopicPartitionState,
        batches: Iterable[UnreadBatch],
        *,
        size_in_bytes: int,
        high_watermark: int,
        max_decompressed_bytes: int,
    ) -> None:
        self.state = state
        self.size_in_bytes = size_in_bytes
        self.high_watermark = high_watermark
        self._end = state.end
        # In reverse order, so that `pop` removes the next batch. A deque would take 700 bytes more,
        # and there may be a fetch for each of thousands of partitions.
        self._batches = [*batches][::-1]
        self._max_decompressed_bytes = max_decompressed_bytes
        #: The approximate size in bytes of the last list that `take_records` returned.
        self.list_bytes = 0
        self._unreadable: UnreadBatch | None = None  # until `on_unreadable`
        # Reads a first batch that was returned in part, or that has unreadable records.
        self._reader: BatchReader | UnreadableRecordsReader | None = None

    def __bool__(self) -> bool:
        return bool(self._batches)

    @property
    def from_offset(self) -> int:
        """The offset from which a new fetch would return the remaining batches again."""
        return self._batches[-1].from_offset

    @property
    def position(self) -> int:
        """The offset of the first record to return, or of a gap before it."""
        from_offset, batch = self._batches[-1]
        if batch.record_count < 0:  # a wrapper, which has the offset of its last message
            return from_offset
        return max(from_offset, batch.base_offset)

    @property
    def held_bytes(self) -> int:
        """The size of the fetch in memory: its part of the response, and the decompressed batch."""
        return self.size_in_bytes + self.decompressed_bytes

    @property
    def decompressed_bytes(self) -> int:
        """The size of the decompressed first batch, if it was returned in part; otherwise 0."""
        return 0 if self._reader is None else self._reader.decompressed_bytes

    def drop_decompressed(self) -> None:
        """Drops the decompressed bytes of the first batch; the next take decompresses it again."""
        self._reader = None

    def take_records(
        self, max_bytes: int = _LIST_BYTES
    ) -> tuple[FetchedRecords, list[UnreadBatch]] | None:
        """Returns the next records, and their batches; None if no record is left.

        The records come from one batch, from several small batches, or from a part of a large
        batch. `max_bytes` approximately limits the decompressed bytes of the records. At least one
        record is returned, even if it is larger.
        """
        records: list[Any] = []
        taken: list[UnreadBatch] = []
        size = 0
        while self._batches:
            unread = self._batches[-1]
            batch = unread.batch
            try:
                if self._reader is None and _is_compressed(batch):
                    self._reader = self._open(unread)
                stored = self.decompressed_bytes or batch.size_in_bytes
                if records:
                    left = batch.record_count if self._reader is None else self._reader.remaining
                    if len(records) + left > _LIST_RECORDS or size + stored > max_bytes:
                        break
                most = _records_within(max_bytes, stored, batch.record_count)
                found = self._next_records(unread, most)
                if batch.record_count > 0:
                    size += stored * len(found) // batch.record_count
                else:
                    size += _size_of(found)
            except UnreadableRecordError:
                raise
            except (CorruptBatchError, MissingCodecError) as error:
                self._reader = None
                if records:
                    break
                found = self._readable_records(unread, _LIST_RECORDS, error)
                size += _size_of(found)
            if records:
                records += found
            else:
                records = found
            taken.append(unread)
            if records and self._reader is not None:
                break  # a part of the batch is left
        self.list_bytes = size
        if not records:
            return None
        topic, partition = self.state.topic, self.state.partition
        return FetchedRecords(topic, partition, records, self.high_watermark), taken

    def take_values(self) -> FetchedValues | None:
        """Returns the values of the next batch, or of several small batches.

        Returns None if no value is left.
        """
        values: list[Any] = []
        next_offset = 0
        if not isinstance(self._reader, UnreadableRecordsReader):
            self._reader = None
        size = 0
        while self._has_next_values(len(values), size):
            unread = self._batches[-1]
            if self._reader is not None:
                values = [record.value for record in self._next_records(unread, _LIST_RECORDS)]
                next_offset = self._offset_after(unread.batch)
                continue
            try:
                found = self._values_of(unread)
            except (CorruptBatchError, MissingCodecError) as error:
                if values:
                    break
                records = self._readable_records(unread, _LIST_RECORDS, error)
                values = [record.value for record in records]
                next_offset = self._offset_after(unread.batch)
                continue
            if _is_compressed(unread.batch):
                size += sum(map(len, filter(None, found)))
            else:
                size += unread.batch.size_in_bytes
            if values:
                values += found
            else:
                values = found
            next_offset = self._next_offset(unread.batch)
            self._batches.pop()
        if not values:
            return None
        return FetchedValues(
            self.state.topic, self.state.partition, values, next_offset, self.high_watermark
        )

    def take_batch(self) -> FetchedBatch | None:
        """Returns the next batch; None if no batch is left."""
        if not self._batches:
            return None
        self._reader = None
        batch = self._batches.pop().batch
        return FetchedBatch(self.state.topic, self.state.partition, batch, self.high_watermark)

    def put_back(self, batches: Iterable[UnreadBatch], from_offset: int) -> None:
        """Puts back to the front the records of `batches` with offsets from `from_offset` on.

        The last `take_records` must have returned `batches`.
        """
        self._reader = None
        for unread in reversed(
            [unread for unread in batches if unread.batch.next_offset > from_offset]
        ):
            if self._batches and self._batches[-1].batch is unread.batch:
                self._batches.pop()  # a part of the batch was returned
            begins = max(unread.from_offset, from_offset)
            self._batches.append(unread._replace(from_offset=begins))

    def on_unreadable(self, error: UnreadableRecordError, *, put_back: bool) -> None:
        """Releases the batch of an unreadable record; the last take must have raised `error`.

        If `put_back` is True, the next take raises `error` again.
        """
        unread, self._unreadable = self._unreadable, None
        assert unread is not None, "its batch raised the error"
        if put_back:
            self.put_back([unread], error.record_offset)

    def _has_next_values(self, count: int, size: int) -> bool:
        """Returns True if the values of the next batch may be added to a list of values.

        The list has `count` values of `size` bytes.
        """
        if not self._batches:
            return False
        if not count:
            return True
        batch = self._batches[-1].batch
        if self._reader is not None or count + batch.record_count > _LIST_RECORDS:
            return False
        return size + batch.size_in_bytes <= _LIST_BYTES

    def _open(self, unread: UnreadBatch) -> BatchReader:
        """Returns a reader of the records of a batch."""
        return unread.batch.reader(
            from_offset=unread.from_offset,
            max_decompressed_bytes=self._max_decompressed_bytes,
            topic=self.state.topic,
            partition=self.state.partition,
        )

    def _next_offset(self, batch: RecordBatch) -> int:
        next_offset = batch.next_offset
        return next_offset if self._end is None else min(next_offset, self._end)

    def _next_records(self, unread: UnreadBatch, most: int) -> list[Record]:
        """Returns the next records, up to `most`, of `unread`, the first batch of the fetch.

        Removes the batch from the fetch once its last record is returned.
        """
        batch = unread.batch
        if self._reader is None and batch.record_count <= most:
            records = self._records_of(unread)
            self._batches.pop()
            return self._unprocessed(batch, records)
        if self._reader is None:
            self._reader = self._open(unread)
        try:
            records = self._trim_to_end(batch, self._reader.read(most))
        except UnreadableRecordError as error:
            self._unreadable = unread
            self._continue_at(self._reader, error.next_offset)
            raise
        self._continue_at(self._reader, records[-1].offset + 1 if records else unread.from_offset)
        return self._unprocessed(batch, records)

    def _continue_at(self, reader: BatchReader | UnreadableRecordsReader, offset: int) -> None:
        """Removes the first batch if `reader` has no records left; else continues at `offset`."""
        if not reader.remaining:
            self._reader = None
            self._batches.pop()
        else:
            self._batches[-1] = UnreadBatch(offset, self._batches[-1].batch)

    def _offset_after(self, batch: RecordBatch) -> int:
        """Returns the next offset to read.

        The offset is in `batch` if records of the batch are left. Otherwise the offset is after the
        batch.
        """
        if self._batches and self._batches[-1].batch is batch:
            return self._batches[-1].from_offset
        return self._next_offset(batch)

    def _readable_records(
        self, unread: UnreadBatch, most: int, error: CorruptBatchError | MissingCodecError
    ) -> list[Record]:
        """Returns the next records of the first batch, after `error` was found in this batch.

        Raises UnreadableRecordError if the next record is unreadable. Raises `error` itself if it
        is a MissingCodecError.
        """
        if isinstance(error, MissingCodecError):
            raise error
        reader = UnreadableRecordsReader(
            unread.batch,
            partial(self._is_wanted, unread),
            max_decompressed_bytes=self._max_decompressed_bytes,
            topic=self.state.topic,
            partition=self.state.partition,
        )
        if not reader.remaining:
            self._batches.pop()
            return []
        self._reader = reader
        return self._next_records(unread, most)

    def _is_wanted(self, unread: UnreadBatch, offset: int) -> bool:
        """Returns False for offsets before the start, at or after the end, or already processed."""
        from_offset, batch = unread
        if offset < from_offset or (self._end is not None and offset >= self._end):
            return False
        bitmap = self.state.processed_bitmap
        if bitmap is None or not self._is_in(bitmap, batch):
            return True
        return not bitmap.is_processed(offset)

    def _records_of(self, unread: UnreadBatch) -> list[Record]:
        """Returns the records of a batch from its `from_offset` on.

        If the partition is read only up to an end, later records are left out.
        """
        from_offset, batch = unread
        records = batch.records(
            from_offset=from_offset,
            max_decompressed_bytes=self._max_decompressed_bytes,
            topic=self.state.topic,
            partition=self.state.partition,
        )
        return self._trim_to_end(batch, records)

    def _trim_to_end(self, batch: RecordBatch, records: list[Record]) -> list[Record]:
        end = self._end
        if end is None or batch.next_offset <= end:
            return records
        return [record for record in records if record.offset < end]

    def _unprocessed(self, batch: RecordBatch, records: list[Record]) -> list[Record]:
        """Returns the `records` that the bitmap of the partition does not mark as processed."""
        bitmap = self.state.processed_bitmap
        if bitmap is None or not self._is_in(bitmap, batch):
            return records
        return [record for record in records if not bitmap.is_processed(record.offset)]

    @staticmethod
    def _is_in(bitmap: ProcessedBitmap, batch: RecordBatch) -> bool:
        """Returns True if `bitmap` may cover a record of the batch.

        The bitmap covers no record if its offsets are outside of the batch, or if the leader epoch
        of the batch is higher than that of the bitmap. Always returns True for a wrapper message,
        because its first offset is not known.
        """
        if batch.record_count < 0:
            return True  # a wrapper, which has the offset of its last message
        is_among = batch.next_offset > bitmap.base and batch.base_offset < bitmap.end
        return is_among and bitmap.is_valid_for(batch.partition_leader_epoch)

    def _values_of(self, unread: UnreadBatch) -> list[bytes | None]:
        from_offset, batch = unread
        bitmap = self.state.processed_bitmap
        if bitmap is not None and self._is_in(bitmap, batch):
            records = self._unprocessed(batch, self._records_of(unread))
            return [record.value for record in records]
        if self._end is not None and batch.next_offset > self._end:
            return [record.value for record in self._records_of(unread)]
        return batch.values(
            from_offset=from_offset, max_decompressed_bytes=self._max_decompressed_bytes
        )


def filter_batches(
    data: PartitionData,
    topic: str,
    position: int,
    *,
    end: int | None,
    read_committed: bool,
    max_decompressed_bytes: int,
) -> FilteredBatches:
    """Returns the batches of `data.records` with offsets from `position` on, up to `end`.

    Control batches are left out, and with `read_committed` also batches of aborted transactions.
    The last batch may go beyond `end`. If a batch is broken, returns only the batches before it;
    the next fetch then begins with the broken batch. If no batch precedes the broken batch, raises
    CorruptBatchError or MissingCodecError, without the name of the partition. Raises ProtocolError
    if all batches are before `position`.
    """
    first = position
    last_epoch = -1
    before: int | None = None  # the offset after the last batch; old messages may repeat
    batches: list[UnreadBatch] = []
    epochs: list[tuple[int, int]] = []
    aborted = AbortedTransactions(aborted_transactions(data)) if read_committed else None
    try:
        for batch in read_batches(data.records or b"", whole_first=True):
            next_offset = batch.next_offset
            if batch.magic == MAGIC_OF_BATCHES:
                before = checked_next_offset(batch, before)
            if next_offset <= position:
                continue
            if batch.is_control:
                if aborted is not None:
                    aborted.on_control_batch(batch, max_decompressed_bytes)
            elif aborted is None or not aborted.is_aborted(batch):
                batches.append(UnreadBatch(position, batch))
            if batch.partition_leader_epoch != last_epoch:
                last_epoch = batch.partition_leader_epoch
                epochs.append((max(position, batch.base_offset), last_epoch))
            position = next_offset
            if end is not None and position >= end:
                position = end
                break  # batches after the end are not read, even broken ones
    except (CorruptBatchError, MissingCodecError):
        if not batches:
            raise
    if position == first:
        raise ProtocolError(
            f"{topic}[{data.partition_index}]: all batches of the fetch from offset {first} lie "
            "before it; a retry would return them again"
        )
    return FilteredBatches(batches, position, last_epoch, epochs)


def _is_compressed(batch: RecordBatch) -> bool:
    """Returns True for a compressed batch of magic 2; a wrapper of messages has no reader."""
    return batch.magic == MAGIC_OF_BATCHES and bool(batch.attributes & COMPRESSION_CODEC_MASK)


def _records_within(max_bytes: int, size: int, count: int) -> int:
    """Returns how many records of a batch fit into `max_bytes`, at least 1 and at most 500.

    The `count` records of the batch have `size` bytes. Assumes that each has the mean size.
    """
    if size <= max_bytes:
        return _LIST_RECORDS
    return max(1, min(_LIST_RECORDS, max_bytes * max(1, count) // size))


def _size_of(records: Iterable[Record]) -> int:
    """Returns the size of the keys and values of records in bytes."""
    return sum(len(record.key or b"") + len(record.value or b"") for record in records)


def aborted_transactions(data: PartitionData) -> list[tuple[int, int]]:
    """Returns the first offset and the producer id of each aborted transaction of a partition."""
    return [(each.first_offset, each.producer_id) for each in data.aborted_transactions or ()]
