"""Decodes many record batches at once into columns, without a Python loop over fields.

Converts the `records` bytes of a Fetch response to chunks of columns, and names a corrupt batch.
`batch_sections` finds the records of each batch and groups batches. `field_reader` reads one field
of many records at once. `arrow_records` and `arrow_events` convert columns to Arrow arrays.

`kproto.records` decodes messages of magic 0 and 1, which few brokers still have.
"""

from __future__ import annotations

from contextlib import closing
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from kproto.records import LOG_APPEND_TIME, MAX_DECOMPRESSED_BYTES
from kproto.records.log_format import as_buffer
from kproto.wire.errors import CorruptBatchError

from .batch_sections import MAX_CHUNK_BYTES, BatchGroup, readable_records, section_groups
from .field_reader import FieldReader, header_ranges, record_ends
from .record_columns import ByteRanges, RecordColumns, columns_of_records

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kproto.records import RecordBatch
    from kproto.stored.aborted_transactions import AbortedTransactions

    from .batch_sections import BatchSection
    from .record_columns import Int32s, Int64s

__all__ = ["column_chunks"]

# Positions in a buffer are int32, as in Arrow.
_MAX_BUFFER_BYTES: Final = 2**31 - 1
# The largest dynamic threshold of glibc (DEFAULT_MMAP_THRESHOLD_MAX), less a block's overhead.
_LARGEST_KEPT_BYTES: Final = (32 << 20) - (1 << 16)


def column_chunks(
    fetched: bytes | bytearray | memoryview,
    *,
    start: int = 0,
    end: int | None = None,
    chunk_bytes: int = MAX_CHUNK_BYTES,
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
    aborted: AbortedTransactions | None = None,
    keep_unreadable: bool = False,
) -> Iterator[RecordColumns]:
    """Yields the data records of a fetch response with `start <= offset < end`, as columns.

    Skips control batches and an incomplete last batch; with `aborted`, also batches of aborted
    transactions. Usually yields one chunk. Yields more if the decompressed batches exceed
    `chunk_bytes`, or if batches alternate with message sets (magic 0 and 1). If a batch is corrupt,
    yields the chunks before it, then raises. A batch may decompress to at most
    `max_decompressed_bytes`.

    Checks the batches that end before `start`, but does not decode them. Ignores the bytes after
    the batch that reaches `end`. Raises for a corrupt record of a decoded batch even if the record
    was not requested. With `keep_unreadable`, a requested record that cannot be decoded is a row
    with its error instead; see `RecordColumns.unreadable`.

    Raises:
        CorruptBatchError: a batch or its records are corrupt, its offsets do not rise above those
        of the previous batch, or it exceeds Arrow's 32-bit offsets.
        MissingCodecError: a batch is compressed with a codec that is not installed.
    """
    _keep_freed_memory()
    groups = section_groups(
        as_buffer(fetched),
        start=start,
        end=end,
        chunk_bytes=chunk_bytes,
        max_decompressed_bytes=max_decompressed_bytes,
        aborted=aborted,
        keep_unreadable=keep_unreadable,
    )
    with closing(groups):
        for group in groups:
            if isinstance(group, BatchGroup):
                yield from _group_columns(
                    group, start, end, max_decompressed_bytes, keep_unreadable
                )
            else:
                yield columns_of_records(group)


@cache
def _keep_freed_memory() -> None:
    """Makes glibc keep freed blocks of up to 32 MiB for reuse; runs once per process.

    By default, glibc returns blocks of some hundred kilobytes to the system, unless a larger block
    was freed before (mallopt(3), M_MMAP_THRESHOLD). New pages for the arrays of each chunk would
    take a sixth of the decoding time. This function therefore frees one large block. The block
    is never written, so the call takes microseconds. Without glibc, this function has no effect.
    """
    bytearray(_LARGEST_KEPT_BYTES)


def _group_columns(
    group: BatchGroup,
    start: int,
    end: int | None,
    max_decompressed_bytes: int,
    keep_unreadable: bool,
) -> Iterator[RecordColumns]:
    """Yields the records of a batch group with offsets in `start <= offset < end`.

    If a batch is corrupt, yields the records of the batches before it, then raises.
    """
    try:
        columns = _section_columns(group.buffer, group.sections, start, end)
    except CorruptBatchError:
        for section in group.sections:
            try:
                columns = _section_columns(group.buffer, [section], start, end)
            except CorruptBatchError as error:
                if keep_unreadable:
                    found = readable_records(section.batch, start, end, max_decompressed_bytes)
                    if found:
                        yield columns_of_records(found)
                    continue
                # The record decoder reports the fault more precisely.
                section.batch.records(
                    eager_headers=True, max_decompressed_bytes=max_decompressed_bytes
                )
                raise section.corrupt(error.reason) from None
            if len(columns):
                yield columns
        if not keep_unreadable:
            raise
        return
    if len(columns):
        yield columns


def _section_columns(
    buffer: bytes | memoryview, sections: Sequence[BatchSection], start: int, end: int | None
) -> RecordColumns:
    """Decodes the records of the sections by field. Raises CorruptBatchError without a position."""
    _require(len(buffer) <= _MAX_BUFFER_BYTES, "the buffer of the records exceeds 2 GiB")
    found = [section.batch for section in sections]
    starts = [section.start for section in sections]
    record_counts = [batch.record_count for batch in found]
    ends = record_ends(buffer, starts, [section.end for section in sections], record_counts)
    counts = np.array(record_counts, dtype=np.int64)

    # A record begins at the end of the previous record, and the first record of a section begins at
    # the start of the section.
    begins = np.empty_like(ends)
    begins[1:] = ends[:-1]
    firsts = np.cumsum(counts) - counts
    filled = counts > 0
    begins[firsts[filled]] = np.array(starts, dtype=np.int64)[filled]

    reader = FieldReader(buffer, begins)
    length = reader.varints()
    _require(length.min(initial=0) >= 0, "a record has a negative length")
    length += reader.position
    _require(np.array_equal(length, ends), "a record's length is wrong")
    reader.skip(1)  # attributes: none are defined
    timestamps = reader.varlongs()
    offsets = reader.varints()
    bases = np.array([batch.base_offset for batch in found], dtype=np.int64)
    offsets += np.repeat(bases, counts)
    _check_offsets(offsets, found, counts)
    types = _resolve_timestamps(timestamps, sections, counts)

    rows = len(offsets)
    keys, values = np.empty((rows, 2), dtype=np.int32), np.empty((rows, 2), dtype=np.int32)
    null_keys, null_values = reader.byte_strings(keys), reader.byte_strings(values)
    header_offsets = np.zeros(rows + 1, dtype=np.int64)
    header_counts = reader.varints()
    # A header has at least two bytes: check the counts before allocating arrays.
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
    )
    # All records were decoded and checked; return only the requested ones.
    selected = offsets >= start
    if end is not None:
        selected &= offsets < end
    return columns if selected.all() else columns.filter(selected)


def _check_offsets(offsets: Int64s, batches: Sequence[RecordBatch], counts: Int64s) -> None:
    """Raises CorruptBatchError for an offset outside of its batch or not above its predecessor.

    The batches are in the order of their offsets, so the offsets must also rise between batches.
    """
    filled = counts > 0
    ends = np.cumsum(counts)[filled]
    least = np.array([batch.base_offset for batch in batches], dtype=np.int64)[filled]
    most = np.array([batch.last_offset for batch in batches], dtype=np.int64)[filled]
    fits = (
        (offsets[ends - counts[filled]] >= least).all()
        and (offsets[ends - 1] <= most).all()
        and (offsets[1:] > offsets[:-1]).all()
    )
    _require(bool(fits), "the offsets of the records do not rise inside of their batch")


def _resolve_timestamps(
    timestamps: Int64s, sections: Sequence[BatchSection], counts: Int64s
) -> Int32s:
    """Converts timestamp deltas to timestamps, in place; returns the timestamp types."""
    by_broker = np.array([section.log_append_time for section in sections], dtype=np.bool_)
    types = np.zeros(len(timestamps), dtype=np.int32)
    if by_broker.any():
        # The log append time of a batch is its max_timestamp.
        types += np.repeat(by_broker, counts)
        timestamps[types == LOG_APPEND_TIME] = 0
    bases = np.array([section.timestamp for section in sections], dtype=np.int64)
    timestamps += np.repeat(bases, counts)
    return types


def _require(condition: bool | np.bool_, what: str) -> None:
    if not condition:
        raise CorruptBatchError(what)
