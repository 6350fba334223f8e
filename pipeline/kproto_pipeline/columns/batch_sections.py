"""The batches of a fetch response: where each one's records are, checked and decompressed.

Owns the choice of what to skip (control batches, batches wholly outside the wanted offsets), the
buffers that records stand in, and which batches are decoded together. Batch headers, CRC, codecs
and message sets are `kproto.records`'; the records inside a batch are `chunks`'.
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
from kproto.records.any_magic import CODEC_MASK
from kproto.records.legacy.message_header import MESSAGE_OVERHEAD_BYTES
from kproto.records.magic2.batch_header import HEADER_BYTES, MIN_RECORD_BYTES
from kproto.wire.errors import CorruptBatchError, MissingCodecError

from .arena import Arena

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from kproto.records import Codec
    from kproto.stored.aborted import AbortedTransactions

__all__ = ["MAX_CHUNK_BYTES", "BatchGroup", "BatchSection", "section_groups"]

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


@dataclass(slots=True)
class BatchGroup:
    """Batches that are decoded together: all their records stand in one buffer.

    A memoryview is of an arena, whose memory is not written again as long as the view lives.
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
) -> Generator[BatchGroup | list[Record]]:
    """The batches in `fetched` that may hold offsets from `start` up to, not with, `end`.

    A group ends before it passes `chunk_bytes`, and where batches and message sets (magic 0 and 1,
    whose messages come decoded, the wanted ones alone) take turns. A group of batches is to be
    decoded before the next one is asked for. The group before a broken batch is given out before
    that raises.

    A batch outside of the wanted offsets, or of an `aborted` transaction, is passed over, as is a
    last one that was cut short. One that lies before `start` is checked first: until then its last
    offset is only what it says. What stands behind a batch that reaches `end` is not looked at.

    Raises:
        CorruptBatchError: a batch is broken, or its offsets do not rise above those before it.
        MissingCodecError: a batch is compressed with a codec that is not installed.
    """
    batches: list[BatchSection] = []
    messages: list[MessageSection] = []
    size = 0
    arena = Arena(chunk_bytes)
    sections = _sections(fetched, start, end, arena, max_decompressed_bytes, aborted)
    try:
        while True:
            try:
                section = next(sections, None)
            except Exception:
                yield from _grouped(batches, messages)
                raise
            if section is None:
                break
            other_kind = messages if isinstance(section, BatchSection) else batches
            if other_kind or (size and size + section.size > chunk_bytes):
                yield from _grouped(batches, messages)
                batches, messages, size = [], [], 0
                _begin_group(arena, section, fetched)
            if isinstance(section, BatchSection):
                batches.append(section)
            else:
                messages.append(section)
            size += section.size
        yield from _grouped(batches, messages)
    finally:
        arena.close()


def _grouped(
    batches: Sequence[BatchSection], messages: Sequence[MessageSection]
) -> Iterator[BatchGroup | list[Record]]:
    """One group of what there is of either kind; none of nothing."""
    found = [record for section in messages for record in section.records]
    if found:
        yield found
    if batches:
        yield _in_one_buffer(batches)


def _in_one_buffer(sections: Sequence[BatchSection]) -> BatchGroup:
    """The sections over one buffer: the fetch response itself, or an arena's memory.

    Only where both take turns, or a batch did not fit the arena, are all copied together.
    """
    buffer = sections[0].data
    if all(section.data is buffer for section in sections):
        if isinstance(buffer, bytearray):
            # As long as this view lives the arena is not written again.
            return BatchGroup(memoryview(buffer).toreadonly()[: sections[-1].end], sections)
        return BatchGroup(buffer, sections)
    moved: list[BatchSection] = []
    parts: list[bytes | bytearray] = []
    size = 0
    for section in sections:
        parts.append(section.data[section.start : section.end])
        moved.append(section.moved(size))
        size += section.size
    return BatchGroup(b"".join(parts), moved)


def _begin_group(arena: Arena, section: BatchSection | MessageSection, fetched: bytes) -> None:
    """Empty the arena, but for the section if that is decompressed already."""
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
) -> Iterator[BatchSection | MessageSection]:
    """What of the batches is wanted, one by one; decompressed into `arena` where it fits."""
    following: int | None = None
    for batch in read_batches(fetched, check_crc=False):
        # A wrapper of magic 0 or 1 has its last message's offset.
        if end is not None and batch.magic == 2 and batch.base_offset >= end:
            return
        batch.check()
        following = checked_next_offset(batch, following)
        if batch.is_control:
            if aborted is not None and not isinstance(batch, LegacyBatch):
                aborted.see_marker(batch, limit)
        elif batch.last_offset >= start:
            if isinstance(batch, LegacyBatch):
                yield _messages(batch, start, end, limit)
            elif aborted is None or not aborted.hides(batch):
                yield _records(batch, fetched, arena, limit)
        if end is not None and following >= end:
            return


def _records(batch: RecordBatch, fetched: bytes, arena: Arena, limit: int) -> BatchSection:
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
    section: BatchSection, packed: bytes, codec: Codec, arena: Arena, limit: int
) -> None:
    """Put what `packed` decompresses to in its place: in the arena, or alone if it does not fit."""
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


def _messages(batch: LegacyBatch, start: int, end: int | None, limit: int) -> MessageSection:
    """The messages in the entry; a wrapper's offset is its last one's, so that each is asked."""
    found = batch.records(from_offset=start, max_decompressed_bytes=limit)
    if end is not None:
        found = [record for record in found if record.offset < end]
    size = sum(len(record.key or b"") + len(record.value or b"") for record in found)
    size += len(found) * MESSAGE_OVERHEAD_BYTES[batch.magic]
    return MessageSection(found, size)
