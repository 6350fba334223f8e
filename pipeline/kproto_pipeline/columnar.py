"""Record batches to columns: a whole fetch response at a time, without a loop over fields.

Owns the way from the `records` bytes of a fetch response to columns, and what is read together: a
chunk of batches over one buffer. How the fields of many records are read at once is `lockstep`'s
to know, how columns become Arrow arrays `arrow_columns`'.

Messages of magic 0 and 1, which few brokers still hold, go through the record decoder.

Knows nothing of sockets, of Spark or of CloudEvents.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from kproto.records import LOG_APPEND_TIME, MAX_DECOMPRESSED_BYTES
from kproto.records.batch import as_buffer
from kproto.wire.errors import CorruptBatchError

from .arena import Arena
from .arrow_columns import HEADERS_TYPE, RECORD_FIELDS, record_batch
from .batches import MAX_CHUNK_BYTES, BatchSection, MessageSection, batch_sections
from .columns import ByteRanges, RecordColumns, columns_of
from .lockstep import FieldReader, header_ranges, record_ends

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .columns import Int32s, Int64s

__all__ = ["HEADERS_TYPE", "RECORD_FIELDS", "RecordColumns", "decode_records", "record_batch"]


# Places in a buffer are int32, as Arrow's are.
_MAX_BUFFER_BYTES: Final = 2**31 - 1
# The most that glibc looks at (DEFAULT_MMAP_THRESHOLD_MAX), less what it puts around a block.
_LARGEST_KEPT_BYTES: Final = (32 << 20) - (1 << 16)


def decode_records(
    records: bytes | bytearray | memoryview,
    *,
    start: int = 0,
    end: int | None = None,
    chunk_bytes: int = MAX_CHUNK_BYTES,
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
) -> Iterator[RecordColumns]:
    """The data records of a fetch response with `start <= offset < end`, as columns.

    Control batches are left out, as is a last batch that was cut short. Usually one chunk comes
    out; more where decompressed batches pass `chunk_bytes`, and where batches and message sets
    (magic 0 and 1, which the record decoder reads one by one) take turns. Chunks before a broken
    batch are yielded before it raises. A batch may decompress to `max_decompressed_bytes`.

    Batches wholly before `start` are checked and passed over; what stands behind a batch that
    reaches `end` is not looked at. Header keys that are not UTF-8 are found when somebody asks
    for them, as `Record.headers` finds them; every other fault of a record is found here, also
    in one that is not wanted.

    Raises:
        CorruptBatchError: a batch or a record in it is broken, or stands in more bytes than
            Arrow's 32-bit offsets reach.
        MissingCodecError: a batch is compressed with a codec that is not installed.
    """
    _keep_freed_memory()
    records = as_buffer(records)
    batches: list[BatchSection] = []
    messages: list[MessageSection] = []
    size = 0
    arena = Arena(chunk_bytes)
    sections = batch_sections(
        records,
        start=start,
        end=end,
        arena=arena,
        max_decompressed_bytes=max_decompressed_bytes,
    )

    def decode_group() -> Iterator[RecordColumns]:
        return _decode_group(batches, messages, start, end, max_decompressed_bytes)

    try:
        while True:
            try:
                section = next(sections, None)
            except Exception:
                yield from decode_group()
                raise
            if section is None:
                break
            other_kind = messages if isinstance(section, BatchSection) else batches
            if other_kind or (size and size + section.size > chunk_bytes):
                yield from decode_group()
                batches, messages, size = [], [], 0
                _begin_chunk(arena, section, records)
            if isinstance(section, BatchSection):
                batches.append(section)
            else:
                messages.append(section)
            size += section.size
        yield from decode_group()
    finally:
        arena.close()


@cache
def _keep_freed_memory() -> None:
    """Make glibc keep freed blocks of this size for the next; once a process.

    It gives blocks of some hundred kilobytes back to the system unless a larger one was freed
    before (mallopt(3), M_MMAP_THRESHOLD), and to get fresh pages for the arrays of each chunk takes
    a sixth of the time. The block is not touched, so that it costs microseconds. Elsewhere this
    does nothing.
    """
    bytearray(_LARGEST_KEPT_BYTES)


def _begin_chunk(arena: Arena, section: BatchSection | MessageSection, fetched: bytes) -> None:
    """Empty the arena, but for the section if that is decompressed already."""
    if isinstance(section, MessageSection) or section.data is fetched:
        arena.restart()
        return
    data = bytes(section.data[section.start : section.end])
    arena.restart()
    section.data, section.start, section.end = data, 0, len(data)
    if arena.add(data):
        section.data = arena.buffer


def _decode_group(
    batches: Sequence[BatchSection],
    messages: Sequence[MessageSection],
    start: int,
    end: int | None,
    max_decompressed_bytes: int,
) -> Iterator[RecordColumns]:
    """The columns of what fits one chunk: batches, or messages; on a broken one, those before."""
    if messages:
        found = [record for section in messages for record in section.records]
        if found:
            yield columns_of(found)
    if not batches:
        return
    try:
        columns = _decode_sections(batches, start, end)
    except CorruptBatchError:
        for section in batches:
            try:
                columns = _decode_sections([section], start, end)
            except CorruptBatchError as error:
                # The record decoder knows better what is wrong where.
                section.batch.records(
                    eager_headers=True, max_decompressed_bytes=max_decompressed_bytes
                )
                raise section.corrupt(error.reason) from None
            if len(columns):
                yield columns
        raise
    if len(columns):
        yield columns


def _decode_sections(
    sections: Sequence[BatchSection], start: int, end: int | None
) -> RecordColumns:
    """All records of the sections, field by field. Raises CorruptBatchError, without a place."""
    buffer, sections = _one_buffer(sections)
    _require(len(buffer) <= _MAX_BUFFER_BYTES, "2 GiB at a time are the most; pass less at once")
    found = [section.batch for section in sections]
    starts = [section.start for section in sections]
    record_counts = [batch.record_count for batch in found]
    ends = record_ends(buffer, starts, [section.end for section in sections], record_counts)
    counts = np.array(record_counts, dtype=np.int64)

    # A record begins where the one before it ends; the first of a section where that begins.
    begins = np.empty_like(ends)
    begins[1:] = ends[:-1]
    firsts = np.cumsum(counts) - counts
    filled = counts > 0
    begins[firsts[filled]] = np.array(starts, dtype=np.int64)[filled]

    reader = FieldReader(buffer, begins)
    length = reader.varints()
    _require(length.min(initial=0) >= 0, "a record has a negative length")
    length += reader.position
    _require(np.array_equal(length, ends), "a record's length is broken")
    reader.skip(1)  # attributes: none are defined
    timestamps = reader.varlongs()
    offsets = reader.varints()
    offsets += np.repeat(np.array([batch.base_offset for batch in found], dtype=np.int64), counts)
    types = _stamp(timestamps, sections, counts)

    rows = len(offsets)
    keys, values = np.empty((rows, 2), dtype=np.int32), np.empty((rows, 2), dtype=np.int32)
    null_keys, null_values = reader.byte_strings(keys), reader.byte_strings(values)
    header_offsets = np.zeros(rows + 1, dtype=np.int64)
    header_counts = reader.varints()
    # A header takes two bytes at least: the counts are checked before anything is allocated.
    fits = header_counts.min(initial=0) >= 0 and int(header_counts.sum()) * 2 <= len(buffer)
    _require(fits, "a record's header count does not fit")
    np.cumsum(header_counts, out=header_offsets[1:])
    header_keys, header_values = header_ranges(reader, header_counts, ends)
    _require(np.array_equal(reader.position, ends), "a record's fields do not fill its length")

    columns = RecordColumns(
        buffer=buffer,
        offsets=offsets,
        timestamps=timestamps,
        timestamp_types=types,
        keys=ByteRanges(keys, null_keys),
        values=ByteRanges(values, null_values),
        header_offsets=header_offsets,
        header_keys=header_keys,
        header_values=header_values,
        places=[
            (first, batch.position, batch.base_offset)
            for first, batch in zip(firsts.tolist(), found, strict=True)
        ],
    )
    # All records of a batch are checked, wanted or not.
    wanted = offsets >= start
    if end is not None:
        wanted &= offsets < end
    return columns if wanted.all() else columns.where(wanted)


def _stamp(timestamps: Int64s, sections: Sequence[BatchSection], counts: Int64s) -> Int32s:
    """Make timestamps of deltas, in place; returns the timestamp types."""
    by_broker = np.array([section.log_append_time for section in sections], dtype=np.bool_)
    types = np.zeros(len(timestamps), dtype=np.int32)
    if by_broker.any():
        # The broker's timestamp stands in the batch's maximum alone.
        types += np.repeat(by_broker, counts)
        timestamps[types == LOG_APPEND_TIME] = 0
    bases = np.array([section.timestamp for section in sections], dtype=np.int64)
    timestamps += np.repeat(bases, counts)
    return types


def _require(condition: bool | np.bool_, what: str) -> None:
    if not condition:
        raise CorruptBatchError(what)


def _one_buffer(
    sections: Sequence[BatchSection],
) -> tuple[bytes | memoryview, Sequence[BatchSection]]:
    """The sections over one buffer: the fetch response itself, or an arena's memory.

    Only where both take turns, or a batch did not fit the arena, are all copied together.
    """
    buffer = sections[0].data
    if all(section.data is buffer for section in sections):
        if isinstance(buffer, bytearray):
            # As long as this view lives the arena is not written again.
            return memoryview(buffer).toreadonly()[: sections[-1].end], sections
        return buffer, sections
    moved: list[BatchSection] = []
    parts: list[bytes | bytearray] = []
    size = 0
    for section in sections:
        parts.append(section.data[section.start : section.end])
        moved.append(section.moved(size))
        size += section.size
    return b"".join(parts), moved
