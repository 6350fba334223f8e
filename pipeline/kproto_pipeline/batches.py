"""The batches of a fetch response: where each one's records are, checked and decompressed.

Owns the choice of what to skip (control batches, batches wholly outside the wanted offsets) and
the buffers that records stand in. Batch headers, CRC, codecs and message sets are
`kproto.records`'; the records inside a batch are `columnar`'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kproto.records import (
    LOG_APPEND_TIME,
    MAX_DECOMPRESSED_BYTES,
    LegacyBatch,
    Record,
    RecordBatch,
    codec_for_id,
    read_batches,
)
from kproto.records.layout import (
    CODEC_MASK,
    HEADER_BYTES,
    MESSAGE_OVERHEAD_BYTES,
    MIN_RECORD_BYTES,
)
from kproto.wire.errors import CorruptBatchError, MissingCodecError

from .arena import Arena

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto.records import Codec

__all__ = ["MAX_CHUNK_BYTES", "BatchSection", "MessageSection", "batch_sections", "next_offset"]

# How many bytes of records one chunk of columns may hold before the next one begins. Arrow's
# 32-bit offsets allow 2 GiB; 8 MiB keep a chunk, and what Spark makes of it, small beside a heap.
MAX_CHUNK_BYTES: Final = 8 << 20


@dataclass(slots=True)
class BatchSection:
    """The records of one batch, uncompressed, in `data[start:end]`.

    `data` is a bytearray if it is an arena's memory, which is written again one day.
    """

    batch: RecordBatch
    data: bytes | bytearray
    start: int
    end: int

    @property
    def size(self) -> int:
        """Bytes of records."""
        return self.end - self.start

    @property
    def log_append_time(self) -> bool:
        """Whether the broker's timestamp holds for every record."""
        return self.batch.timestamp_type == LOG_APPEND_TIME

    @property
    def timestamp(self) -> int:
        """What the records' deltas count from, in ms; with log append time the time itself."""
        return self.batch.max_timestamp if self.log_append_time else self.batch.base_timestamp

    def moved(self, start: int) -> BatchSection:
        """The same records at another place, in a buffer that is still to be made."""
        return BatchSection(self.batch, b"", start, start + self.size)

    def corrupt(self, reason: str) -> CorruptBatchError:
        """An error that names this batch."""
        return CorruptBatchError(
            reason, offset=self.batch.position, base_offset=self.batch.base_offset
        )


@dataclass(slots=True)
class MessageSection:
    """The wanted messages of one entry of a message set (magic 0 or 1).

    `size` is what they take uncompressed, in bytes.
    """

    records: list[Record]
    size: int


def batch_sections(
    records: bytes,
    *,
    start: int = 0,
    end: int | None = None,
    arena: Arena | None = None,
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
) -> Iterator[BatchSection | MessageSection]:
    """The data batches in `records` that may hold offsets from `start` up to, not with, `end`.

    A batch outside of these is passed over, as is a last one that was cut short. One that lies
    before `start` is checked first: until then its last offset is only what it says. What stands
    behind a batch that reaches `end` is not looked at. Yields the good batches that stand before
    a broken one, then raises. Messages of magic 0 and 1 come decoded. Compressed batches are
    decompressed into `arena` where they fit.

    Raises:
        CorruptBatchError: a batch is broken.
        MissingCodecError: a batch is compressed with a codec that is not installed.
    """
    for batch in read_batches(records, check_crc=False):
        # A wrapper of magic 0 or 1 has its last message's offset.
        if end is not None and batch.magic == 2 and batch.base_offset >= end:
            return
        batch.check()
        if batch.last_offset >= start and not batch.is_control:
            if isinstance(batch, LegacyBatch):
                yield _messages(batch, start, end, max_decompressed_bytes)
            else:
                yield _records(batch, records, arena, max_decompressed_bytes)
        if end is not None and batch.next_offset >= end:
            return


def _records(batch: RecordBatch, fetched: bytes, arena: Arena | None, limit: int) -> BatchSection:
    """The records of a batch of magic 2, where they stand or decompressed."""
    first = batch.position + HEADER_BYTES
    last = batch.position + batch.size_in_bytes
    section = BatchSection(batch, fetched, first, last)
    codec_id = batch.attributes & CODEC_MASK
    if codec_id and (batch.record_count or first != last):
        _decompress(section, fetched[first:last], codec_for_id(codec_id), arena, limit)
    if batch.record_count * MIN_RECORD_BYTES > section.size:
        raise section.corrupt(f"{batch.record_count} records do not fit into {section.size} bytes")
    return section


def _decompress(
    section: BatchSection, packed: bytes, codec: Codec, arena: Arena | None, limit: int
) -> None:
    """Put what `packed` decompresses to in its place: in the arena, or alone if it does not fit."""
    try:
        if arena is not None:
            start = arena.used
            if arena.decompress(codec, packed, limit):
                section.data, section.start, section.end = arena.buffer, start, arena.used
                return
        section.data = codec.decompress(packed, limit)
    except MissingCodecError:
        raise
    except ValueError as error:
        raise section.corrupt(str(error)) from None
    section.start, section.end = 0, len(section.data)


def _messages(batch: LegacyBatch, start: int, end: int | None, limit: int) -> MessageSection:
    """The messages in the entry; a wrapper's offset is its last one's, so that each is asked."""
    found = batch.records(from_offset=start, max_decompressed_bytes=limit)
    if end is not None:
        found = [record for record in found if record.offset < end]
    size = sum(len(record.key or b"") + len(record.value or b"") for record in found)
    size += len(found) * MESSAGE_OVERHEAD_BYTES[batch.magic]
    return MessageSection(found, size)


def next_offset(records: bytes, fetched_from: int, end: int | None = None) -> int:
    """The offset to fetch from next: the last whole batch's last offset + 1.

    That is true for compacted and for control batches too. Without a batch it is `fetched_from`.
    What stands behind a batch that reaches `end` is not looked at.

    Raises:
        CorruptBatchError: no batch stands where one must, or the first one is cut.
    """
    following = fetched_from
    for batch in read_batches(records, check_crc=False, whole_first=True):
        following = max(following, batch.next_offset)
        if end is not None and following >= end:
            break
    return following
