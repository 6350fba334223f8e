"""Finds, checks and decompresses the records sections of the batches in a fetch response.

Skips control batches and batches outside of the requested offsets. Groups the other batches: the
records of a group are in one buffer, and are decoded together. `kproto.records` reads batch
headers, CRC, codecs and message sets; `chunks` decodes the records of a group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kproto.records import (
    LOG_APPEND_TIME,
    LegacyBatch,
    Record,
    RecordBatch,
    checked_next_offset,
    codec_for_id,
    read_batches,
)
from kproto.records.legacy.message_header import MESSAGE_OVERHEAD_BYTES
from kproto.records.log_format import COMPRESSION_CODEC_MASK
from kproto.records.magic2.batch_header import HEADER_BYTES, MIN_RECORD_BYTES
from kproto.records.magic2.unreadable_records import split_batch
from kproto.wire.errors import CorruptBatchError, MissingCodecError, UnreadableRecordError

from .arena import Arena

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from kproto.records import Codec
    from kproto.stored.aborted_transactions import AbortedTransactions

__all__ = ["MAX_CHUNK_BYTES", "BatchGroup", "BatchSection", "readable_records", "section_groups"]

# The most bytes of records in a chunk of columns. Arrow's 32-bit offsets allow 2 GiB; with 8 MiB, a
# chunk and Spark's copy of it stay small compared with the JVM's heap.
MAX_CHUNK_BYTES: Final = 8 << 20


@dataclass(slots=True)
class BatchSection:
    """The records of one batch, uncompressed, in `data[start:end]`.

    If `data` is a bytearray, it is memory of an arena, and the arena reuses the memory for later
    batches.
    """

    batch: RecordBatch
    data: bytes | bytearray
    start: int
    end: int

    @property
    def size(self) -> int:
        """Returns the size of the records in bytes."""
        return self.end - self.start

    @property
    def log_append_time(self) -> bool:
        """Returns True if all records have the broker's log append time as their timestamp."""
        return self.batch.timestamp_type == LOG_APPEND_TIME

    @property
    def timestamp(self) -> int:
        """Returns the timestamp of the batch in ms: its log append time or its base timestamp.

        The result is the log append time if `log_append_time` is True.
        """
        return self.batch.max_timestamp if self.log_append_time else self.batch.base_timestamp

    def relocated(self, start: int) -> BatchSection:
        """Returns a section for the same records after they are copied to another buffer.

        The caller copies the records to position `start` of that buffer later.
        """
        return BatchSection(self.batch, b"", start, start + self.size)

    def corrupt(self, reason: str) -> CorruptBatchError:
        """Returns a CorruptBatchError that names this batch."""
        return CorruptBatchError(
            reason, offset=self.batch.position, base_offset=self.batch.base_offset
        )


@dataclass(slots=True)
class MessageSection:
    """The requested messages of one entry of a message set (magic 0 or 1), as records.

    `size` is their uncompressed size in bytes.

    With `keep_unreadable`, a section may also stand for a batch that cannot be decoded as a whole.
    Then `records` has the readable records of the batch, and an error for each unreadable record;
    `size` is the size of the batch in bytes.
    """

    records: list[Record | UnreadableRecordError]
    size: int


@dataclass(slots=True)
class BatchGroup:
    """Batches that are decoded together: all their records are in `buffer`.

    If `buffer` is a memoryview, it is memory of an arena, which does not reuse the memory while the
    view exists.
    """

    buffer: bytes | memoryview
    sections: Sequence[BatchSection]


def section_groups(
    fetched: bytes,
    *,
    start: int,
    end: int | None,
    chunk_bytes: int,
    max_decompressed_bytes: int,
    aborted: AbortedTransactions | None = None,
    keep_unreadable: bool = False,
) -> Generator[BatchGroup | list[Record | UnreadableRecordError]]:
    """Yields the batches in `fetched` with offsets in `start <= offset < end`, in groups.

    A group has up to `chunk_bytes` of records; a larger batch is alone in its group. Batches of
    magic 2 and message sets (magic 0 and 1) are never in the same group. The requested messages of
    message sets are yielded as a list of records. The caller must decode a group before it requests
    the next one. If a batch is corrupt, yields the batches before it, then raises. With
    `keep_unreadable`, records of batches that cannot be decompressed are yielded like messages.

    Skips control batches, batches outside of the requested offsets, batches of `aborted`
    transactions, and an incomplete last batch. Checks even a batch before `start`, because its last
    offset may be corrupt. Ignores bytes after a batch that reaches `end`.

    Raises:
        CorruptBatchError: a batch is corrupt, or its offsets do not rise above the offsets
        of the previous batch.
        MissingCodecError: a batch is compressed with a codec that is not installed.
    """
    batches: list[BatchSection] = []
    messages: list[MessageSection] = []
    size = 0
    arena = Arena(chunk_bytes)
    sections = _sections(
        fetched, start, end, arena, max_decompressed_bytes, aborted, keep_unreadable
    )
    try:
        while True:
            try:
                section = next(sections, None)
            except Exception:
                yield from _groups(batches, messages)
                raise
            if section is None:
                break
            other_kind = messages if isinstance(section, BatchSection) else batches
            if other_kind or (size and size + section.size > chunk_bytes):
                yield from _groups(batches, messages)
                batches, messages, size = [], [], 0
                _start_group(arena, section, fetched)
            if isinstance(section, BatchSection):
                batches.append(section)
            else:
                messages.append(section)
            size += section.size
        yield from _groups(batches, messages)
    finally:
        arena.close()


def _groups(
    batches: Sequence[BatchSection], messages: Sequence[MessageSection]
) -> Iterator[BatchGroup | list[Record | UnreadableRecordError]]:
    """Yields the records of all `messages` as one list, then all `batches` as one group, if any."""
    found = [record for section in messages for record in section.records]
    if found:
        yield found
    if batches:
        yield _in_one_buffer(batches)


def _in_one_buffer(sections: Sequence[BatchSection]) -> BatchGroup:
    """Returns the sections as a group over one buffer.

    If the sections have different buffers, copies their records to a new buffer.
    """
    buffer = sections[0].data
    if all(section.data is buffer for section in sections):
        if isinstance(buffer, bytearray):
            # The arena cannot be reused while this view exists.
            return BatchGroup(memoryview(buffer).toreadonly()[: sections[-1].end], sections)
        return BatchGroup(buffer, sections)
    at: list[BatchSection] = []
    parts: list[bytes | bytearray] = []
    size = 0
    for section in sections:
        parts.append(section.data[section.start : section.end])
        at.append(section.relocated(size))
        size += section.size
    return BatchGroup(b"".join(parts), at)


def _start_group(arena: Arena, section: BatchSection | MessageSection, fetched: bytes) -> None:
    """Empties the arena for a group of sections that begins with `section`.

    Keeps the records of `section` if they are decompressed already.
    """
    if isinstance(section, MessageSection) or section.data is fetched:
        arena.restart()
        return
    data = bytes(section.data[section.start : section.end])
    arena.restart()
    section.data, section.start, section.end = data, 0, len(data)
    if arena.add(data):
        section.data = arena.buffer


def _sections(
    fetched: bytes,
    start: int,
    end: int | None,
    arena: Arena,
    limit: int,
    aborted: AbortedTransactions | None,
    keep_unreadable: bool,
) -> Iterator[BatchSection | MessageSection]:
    """Yields the requested sections; a batch is decompressed into `arena` if it fits."""
    following: int | None = None
    for batch in read_batches(fetched, check_crc=False):
        # A wrapper message of magic 0 or 1 has the offset of its last message, so earlier messages
        # in it may be before `end`.
        if end is not None and batch.magic == 2 and batch.base_offset >= end:
            return
        batch.check()
        following = checked_next_offset(batch, following)
        if batch.is_control:
            if aborted is not None and not isinstance(batch, LegacyBatch):
                aborted.on_control_batch(batch, limit)
        elif batch.last_offset >= start:
            is_legacy = isinstance(batch, LegacyBatch)
            if is_legacy or aborted is None or not aborted.is_aborted(batch):
                try:
                    yield (
                        _messages(batch, start, end, limit)
                        if isinstance(batch, LegacyBatch)
                        else _records(batch, fetched, arena, limit)
                    )
                except CorruptBatchError:
                    if not keep_unreadable:
                        raise
                    yield MessageSection(
                        readable_records(batch, start, end, limit), batch.size_in_bytes
                    )
        if end is not None and following >= end:
            return


def _records(batch: RecordBatch, fetched: bytes, arena: Arena, limit: int) -> BatchSection:
    """Returns the records of a batch of magic 2; decompresses them if the batch is compressed."""
    first = batch.position + HEADER_BYTES
    last = batch.position + batch.size_in_bytes
    section = BatchSection(batch, fetched, first, last)
    codec_id = batch.attributes & COMPRESSION_CODEC_MASK
    if codec_id and (batch.record_count or first != last):
        _decompress(section, fetched[first:last], codec_for_id(codec_id), arena, limit)
    if batch.record_count * MIN_RECORD_BYTES > section.size:
        raise section.corrupt(f"{batch.record_count} records do not fit into {section.size} bytes")
    return section


def _decompress(
    section: BatchSection, packed: bytes, codec: Codec, arena: Arena, limit: int
) -> None:
    """Decompresses `packed` into the arena; sets `section` to the result.

    If `Arena.decompress` returns False, decompresses `packed` into a new buffer.
    """
    try:
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


def readable_records(
    batch: RecordBatch, start: int, end: int | None, limit: int
) -> list[Record | UnreadableRecordError]:
    """Returns the requested records of a batch, with an error for each unreadable record."""

    def is_requested(record: Record | UnreadableRecordError) -> bool:
        if isinstance(record, UnreadableRecordError):
            offset = record.record_offset
        else:
            offset = record.offset
        return start <= offset and (end is None or offset < end)

    return [each for each in split_batch(batch, max_decompressed_bytes=limit) if is_requested(each)]


def _messages(batch: LegacyBatch, start: int, end: int | None, limit: int) -> MessageSection:
    """Returns the messages of `batch` with `start <= offset < end`.

    None for `end` sets no upper limit. Raises CorruptBatchError if `batch` would decompress to more
    than `limit` bytes.
    """
    found = batch.records(from_offset=start, max_decompressed_bytes=limit)
    if end is not None:
        found = [record for record in found if record.offset < end]
    size = sum(len(record.key or b"") + len(record.value or b"") for record in found)
    size += len(found) * MESSAGE_OVERHEAD_BYTES[batch.magic]
    return MessageSection([*found], size)
