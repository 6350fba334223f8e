"""Reads batches with unreadable records: returns each record, or the error for the record.

A broker verifies the records of a compressed batch only in part, so it may store records that no
client can decode. The fast loops of `record_decoding` raise for the whole batch; a consumer then
reads the batch with `UnreadableRecordsReader`, which is slow.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from ...wire.errors import CorruptBatchError, MissingCodecError, UnreadableRecordError
from .. import log_format
from ..codecs.compression import MAX_DECOMPRESSED_BYTES, codec_for_id
from ..header_block import decode_headers_of
from ..varints import read_varint, read_varlong, zigzag
from . import batch_header
from .record_decoding import RecordReader, check_offset_delta

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...wire.errors import UnreadableContent
    from ..record import Record
    from .record_batch import RecordBatch

__all__ = [
    "UnreadableRecordsReader",
    "check_as_broker",
    "content_ends",
    "decompressed_records",
    "split_batch",
]

_MAGIC_OF_BATCHES: Final = 2

#: The maximum number of offsets of an error that are passed to `is_wanted`; no broker accepts a
#: batch with more records.
_MOST_OFFSETS: Final = 0x200_0000


class UnreadableRecordsReader:
    """Decodes the records of a batch, some at a time; raises an error for each unreadable record.

    Skips a record, readable or not, if `is_wanted` returns False for its offset. Skips an error
    that stands for several records only if `is_wanted` returns False for all offsets of these
    records. Raises MissingCodecError if the codec is not installed.
    """

    __slots__ = ("_items", "_next", "decompressed_bytes")

    def __init__(
        self,
        batch: RecordBatch,
        is_wanted: Callable[[int], bool],
        *,
        max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
        topic: str = "",
        partition: int = -1,
    ) -> None:
        items = split_batch(
            batch,
            max_decompressed_bytes=max_decompressed_bytes,
            topic=topic,
            partition=partition,
        )
        self._items = [item for item in items if _has_wanted(item, is_wanted)]
        self._next = 0
        #: The size of the records in bytes.
        self.decompressed_bytes = sum(map(_size_of, self._items))

    @property
    def remaining(self) -> int:
        """Returns how many records, readable or not, have not been read yet."""
        return len(self._items) - self._next

    def read(self, most: int) -> list[Record]:
        """Returns the next records, at most `most`; stops before an unreadable record.

        Raises UnreadableRecordError if the next record is unreadable; the next call continues after
        that record.
        """
        records: list[Record] = []
        for item in islice(self._items, self._next, self._next + most):
            if isinstance(item, UnreadableRecordError):
                if not records:
                    self._next += 1
                    raise item
                break
            records.append(item)
        self._next += len(records)
        return records


def _has_wanted(item: Record | UnreadableRecordError, is_wanted: Callable[[int], bool]) -> bool:
    """Returns True if `is_wanted` accepts the offset of a record or an offset of an error.

    An error covers one or more offsets. Sets the `record_offset` of an error to the first offset
    that `is_wanted` accepts.
    """
    if not isinstance(item, UnreadableRecordError):
        return is_wanted(item.offset)
    last = item.next_offset - 1 if item.content != "record" else item.record_offset
    last = min(last, item.record_offset + _MOST_OFFSETS)
    first = next(filter(is_wanted, range(item.record_offset, last + 1)), None)
    if first is None:
        return False
    item.record_offset = first
    return True


def _size_of(item: Record | UnreadableRecordError) -> int:
    if isinstance(item, UnreadableRecordError):
        return len(item.raw)
    return len(item.key or b"") + len(item.value or b"")


def split_batch(
    batch: RecordBatch,
    *,
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
    topic: str = "",
    partition: int = -1,
) -> list[Record | UnreadableRecordError]:
    """Returns the records of a batch in order, with an error in place of each unreadable record.

    A record is unreadable if it cannot be decoded, if its offset does not rise above the previous
    offset, or if its offset leaves too few offsets of the batch for the later records. In the last
    two cases, the error has the offset after the previous offset.

    The bounds of the records follow from the lengths of the records, or, if these do not add up to
    the size of the batch, from the lengths of the fields. If the lengths of the fields do not add
    up to this size either, the bounds are unknown: one error then stands for the first unreadable
    record and all later records.

    One error stands for the whole batch in three cases: the batch cannot be decompressed, its
    header has a record count larger than its number of offsets, or it is a message set (magic 0 or
    1) with an unreadable record. Like Kafka, reads only the first frame of lz4 data. Raises
    MissingCodecError.
    """
    return _Split(batch, max_decompressed_bytes, topic, partition).items()


def content_ends(data: bytes, count: int, deltas: list[int] | None = None) -> list[int] | None:
    """Returns the end of each of `count` records, computed from the lengths of its fields.

    `data` has the records, decompressed. The length of a record itself must not be negative. This
    length is not compared with the lengths of the fields, because a broker does not verify it in a
    compressed batch (Java: PartialDefaultRecord). Appends the offset deltas of the records to
    `deltas`. Returns None if the records do not fill `data`.
    """
    ends: list[int] = []
    pos = 0
    try:
        for _ in range(count):
            length, pos = read_varint(data, pos)
            _, pos = read_varlong(data, pos + 1)
            delta, pos = read_varint(data, pos)
            for _ in ("key", "value"):
                pos = _after_field(data, pos)
            headers, pos = read_varint(data, pos)
            if length & 1 or headers & 1:
                return None
            for _ in range(headers >> 1):
                name, _ = read_varint(data, pos)
                if name & 1:
                    return None
                pos = _after_field(data, _after_field(data, pos))
            if pos > len(data):
                return None
            ends.append(pos)
            if deltas is not None:
                deltas.append(zigzag(delta))
    except (IndexError, ValueError):
        return None
    return ends if pos == len(data) else None


def _after_field(data: bytes, pos: int) -> int:
    """Returns the position after the field at `pos`: a length, and that number of bytes."""
    length, pos = read_varint(data, pos)
    return pos if length & 1 else pos + (length >> 1)


def check_as_broker(batch: RecordBatch) -> None:
    """Raises CorruptBatchError for records of magic 2 that Kafka's brokers refuse.

    A broker verifies the records of an uncompressed batch as a client does, but does not check
    their offsets. In a compressed batch it verifies that the fields of the records fill the batch,
    and that the offsets are consecutive (Java: LogValidator). Raises MissingCodecError.
    """
    is_compressed = batch.attributes & log_format.COMPRESSION_CODEC_MASK
    try:
        offsets = _offset_deltas(batch)
    except CorruptBatchError:
        offsets = []
        if not is_compressed or not _is_filled_by_fields(batch, offsets):
            raise
    if is_compressed and offsets != list(range(batch.record_count)):
        raise CorruptBatchError(
            "the offsets of the records are not consecutive",
            offset=batch.position,
            base_offset=batch.base_offset,
        )


def _offset_deltas(batch: RecordBatch) -> list[int]:
    """Returns the offset deltas of the records, and does not check them.

    Raises CorruptBatchError if the records have any other fault. Raises MissingCodecError.
    """
    try:
        data = decompressed_records(batch, MAX_DECOMPRESSED_BYTES)
        reader = RecordReader(data, 0, len(data), batch.record_count, 0, 0, None)
        records = reader.read(batch.record_count)
        decode_headers_of(records)
    except MissingCodecError:
        raise
    except ValueError as error:
        raise CorruptBatchError(
            str(error), offset=batch.position, base_offset=batch.base_offset
        ) from None
    return [record.offset for record in records]


def _is_filled_by_fields(batch: RecordBatch, deltas: list[int]) -> bool:
    """Returns True if the fields of the records fill the batch; record lengths may be wrong."""
    try:
        data = decompressed_records(batch, MAX_DECOMPRESSED_BYTES)
    except MissingCodecError:
        raise
    except ValueError:
        return False
    return content_ends(data, batch.record_count, deltas) is not None


def decompressed_records(batch: RecordBatch, max_decompressed_bytes: int) -> bytes:
    """Returns the decompressed records of a batch of magic 2.

    Raises ValueError if they cannot be decompressed, or have more than `max_decompressed_bytes`.
    Raises MissingCodecError if the codec is not installed.
    """
    start = batch.position + batch_header.HEADER_BYTES
    data = batch._data[start : batch.position + batch.size_in_bytes]
    codec = codec_for_id(batch.attributes & log_format.COMPRESSION_CODEC_MASK)
    if codec.id and (data or batch.record_count):
        data = codec.decompress(data, max_decompressed_bytes)
    return data


class _Split:
    """Splits one batch for `split_batch`."""

    def __init__(
        self, batch: RecordBatch, max_decompressed_bytes: int, topic: str, partition: int
    ) -> None:
        self._batch = batch
        self._max_decompressed_bytes = max_decompressed_bytes
        self._topic = topic
        self._partition = partition
        self._data = b""
        log_append_time = batch.timestamp_type == log_format.LOG_APPEND_TIME
        self._log_append_time = batch.max_timestamp if log_append_time else None

    def items(self) -> list[Record | UnreadableRecordError]:
        batch = self._batch
        if batch.magic != _MAGIC_OF_BATCHES:
            try:
                return list(
                    batch.records(
                        max_decompressed_bytes=self._max_decompressed_bytes,
                        topic=self._topic,
                        partition=self._partition,
                    )
                )
            except CorruptBatchError as error:
                return [self._whole(error.reason)]
        try:
            self._data = decompressed_records(batch, self._max_decompressed_bytes)
        except MissingCodecError:
            raise
        except ValueError as error:
            return [self._whole(str(error))]
        count, last_offset_delta = batch.record_count, batch.last_offset_delta
        if count and count > last_offset_delta + 1:
            return [self._whole(f"{count} records, but a last offset delta of {last_offset_delta}")]
        ends = self._record_ends()
        if ends is None:
            ends = content_ends(self._data, batch.record_count)
        items: list[Record | UnreadableRecordError] = []
        offset = batch.base_offset
        start = 0
        for index, end in enumerate(ends or self._readable_ends()):
            try:
                record = self._record(start, end)
                self._check_offset(record, offset, index)
            except ValueError as error:
                reason = str(error).replace("record 0", f"record {index}", 1)
                offset = self._offset_at(start, end, offset, index)
                raw = self._data[start:end]
                items.append(self._error(reason, offset, offset + 1, raw, "record"))
            else:
                offset = record.offset
                items.append(record)
            offset += 1
            start = end
        if ends is None:
            items.append(self._rest(start, offset, len(items)))
        elif items and isinstance(items[-1], UnreadableRecordError):
            items[-1].next_offset = max(items[-1].next_offset, batch.next_offset)
        return items

    def _record_ends(self) -> list[int] | None:
        """Returns the end position of each record, computed from the lengths of the records.

        Returns None if these lengths are invalid, or do not fill the batch exactly.
        """
        data = self._data
        ends: list[int] = []
        pos = 0
        try:
            for _ in range(self._batch.record_count):
                length, pos = read_varint(data, pos)
                if length & 1:
                    return None
                pos += length >> 1
                if pos > len(data):
                    return None
                ends.append(pos)
        except (IndexError, ValueError):
            return None
        return ends if pos == len(data) else None

    def _readable_ends(self) -> list[int]:
        """Returns the end position of each record before the first unreadable record."""
        data = self._data
        ends: list[int] = []
        pos = 0
        # The last record cannot be valid: there are bytes after it, or a record is missing.
        for _ in range(self._batch.record_count - 1):
            start = pos
            try:
                length, pos = read_varint(data, pos)
                pos += length >> 1
                if length & 1 or pos > len(data):
                    break
                self._record(start, pos)
            except (IndexError, ValueError):
                break
            ends.append(pos)
        return ends

    def _record(self, start: int, end: int) -> Record:
        """Returns the record at `start`. Raises ValueError if it is corrupt."""
        batch = self._batch
        reader = RecordReader(
            self._data,
            start,
            end,
            1,
            batch.base_offset,
            batch.base_timestamp,
            None,
            self._log_append_time,
            self._topic,
            self._partition,
            batch.position,
        )
        records = reader.read(1)
        decode_headers_of(records)
        return records[0]

    def _check_offset(self, record: Record, least: int, index: int) -> None:
        """Raises ValueError if the offset of the record is not possible at its index in the batch.

        The offset must be at least `least`, and must leave an offset for each later record.
        """
        base_offset = self._batch.base_offset
        later = self._batch.record_count - 1 - index
        try:
            check_offset_delta(
                record.offset - base_offset,
                least - base_offset,
                self._batch.last_offset_delta,
                later,
            )
        except ValueError as error:
            raise ValueError(f"record 0, offset delta: {error}") from None

    def _offset_at(self, start: int, end: int, least: int, index: int) -> int:
        """Returns the offset that a corrupt record states.

        Returns `least` if the offset is unreadable, below `least`, or so high that the records
        after this record would have no offsets. `index` is the index of the record in the batch.
        """
        try:
            _, pos = read_varint(self._data, start)
            _, pos = read_varlong(self._data, pos + 1)
            delta, pos = read_varint(self._data, pos)
        except (IndexError, ValueError):
            return least
        offset = self._batch.base_offset + zigzag(delta)
        most = self._batch.last_offset - (self._batch.record_count - 1 - index)
        return offset if pos <= end and least <= offset <= most else least

    def _rest(self, start: int, offset: int, index: int) -> UnreadableRecordError:
        """Returns the error for all records from `start` on."""
        try:
            self._record(start, len(self._data))
            reason = f"the batch ends after {index + 1} of {self._batch.record_count} records"
        except (IndexError, ValueError) as error:
            reason = str(error).replace("record 0", f"record {index}", 1)
        raw = self._data[start:]
        next_offset = max(self._batch.next_offset, offset + 1)
        if not raw:
            return self._error(reason, offset, next_offset, self._batch.raw, "batch")
        return self._error(reason, offset, next_offset, raw, "records")

    def _whole(self, reason: str) -> UnreadableRecordError:
        batch = self._batch
        next_offset = max(batch.next_offset, batch.base_offset + 1)
        return self._error(reason, batch.base_offset, next_offset, batch.raw, "batch")

    def _error(
        self, reason: str, offset: int, next_offset: int, raw: bytes, content: UnreadableContent
    ) -> UnreadableRecordError:
        return UnreadableRecordError(
            reason,
            topic=self._topic,
            partition=self._partition,
            record_offset=offset,
            next_offset=next_offset,
            raw=raw,
            content=content,
            offset=self._batch.position,
            base_offset=self._batch.base_offset,
        )
