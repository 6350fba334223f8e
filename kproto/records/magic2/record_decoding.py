"""Decodes the decompressed records of a batch (magic 2) to `Record` objects.

A fast loop reads the records. If the loop finds a fault, `check_records` reads the same bytes
again, slowly, and raises an error that names the corrupt record and field.
"""

from __future__ import annotations

from itertools import repeat
from struct import error as struct_error
from typing import TYPE_CHECKING, Final

from ...wire.compiled import __compiled__
from ..header_block import NO_HEADERS, latest_names
from ..log_format import CREATE_TIME, LOG_APPEND_TIME
from ..record import BatchOrigin, Record
from ..varints import VARINTS, int64, read_varint, read_varlong, zigzag
from . import record_layouts
from .batch_header import MIN_RECORD_BYTES
from .layout_runs import LEAST_RUN, is_run, read_run, runs
from .record_layouts import KEY_IS_NULL, NO_LAYOUT, RECORDS, VALUE_IS_NULL

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from ...wire.native import i64
    from .record_layouts import Layout

__all__ = [
    "RecordReader",
    "check_count",
    "check_offset_delta",
    "check_records",
    "explain",
]

#: The encoded timestamp delta 0, which the first record usually has.
_FIRST_DELTA: Final = b"\x00"
#: How many `Record` objects are created at once: as many as fit into the processor's cache.
_MADE_AT_ONCE: Final = 1024


def _may_read_by_fields() -> bool:
    if not __compiled__:
        return False
    # Only compiled code needs them.
    from ...wire.c_functions import has_slots, list_descriptor, track_when_set

    if not has_slots(Record):
        return False
    Record.headers = list_descriptor(Record, "headers", 0, latest_names)  # type: ignore[assignment, method-assign]
    track_when_set(Record)
    return True


#: True if `field_decoding` reads the records: in compiled code that can set slots by index.
_READS_BY_FIELDS: Final = _may_read_by_fields()


class RecordReader:
    """Decodes the `count` records that fill `data[start:limit]` exactly, some at a time.

    Each record carries `topic` and `partition`. If `log_append_time` (ms) is not None, it is the
    timestamp of each record. Headers stay encoded; their errors name `position`, the start of the
    batch in the buffer, and `base_offset`. Raises ValueError if `count` is negative, or if the
    bytes, or the offset deltas up to `last_offset_delta`, are too few for `count` records.

    The offset deltas of the records must rise from 0 or more to `last_offset_delta` or less. If
    `last_offset_delta` is None, they may have any value, as in Kafka's classes.
    """

    __slots__ = (
        "_base_offset",
        "_base_timestamp",
        "_count",
        "_data",
        "_index",
        "_last_offset_delta",
        "_limit",
        "_log_append_time",
        "_origin",
        "_pos",
        "_remaining_runs",
        "_seen",
        "_start",
        "_timestamp",
        "_tries",
        "any_offset",
        "remaining",
    )

    def __init__(
        self,
        data: bytes,
        start: int,
        limit: int,
        count: int,
        base_offset: int,
        base_timestamp: int,
        last_offset_delta: int | None,
        log_append_time: int | None = None,
        topic: str = "",
        partition: int = -1,
        position: int = 0,
    ) -> None:
        most = count if last_offset_delta is None else last_offset_delta + 1
        if not 0 < count <= (limit - start) // MIN_RECORD_BYTES or count > most:
            check_count(start, limit, count, last_offset_delta)
        timestamp_type = CREATE_TIME if log_append_time is None else LOG_APPEND_TIME
        self._origin = BatchOrigin(topic, partition, timestamp_type, position, base_offset)
        self._data = data
        self._start = start
        self._limit = limit
        self._count = count
        self._base_offset = base_offset
        self._base_timestamp = base_timestamp
        self._last_offset_delta = last_offset_delta
        self._log_append_time = log_append_time
        self._pos = start
        self._index = 0
        self._seen = _FIRST_DELTA
        self._timestamp = base_timestamp
        # Compiled code reads a record field by field in less time than by its layout.
        self._tries = record_layouts.tries(count) if count > 1 and not __compiled__ else 0
        self._remaining_runs = runs(count)
        #: The number of records that have not been read yet.
        self.remaining = count
        #: True if the latest read may have returned offsets before the base offset of the batch.
        self.any_offset = False

    @property
    def size_in_bytes(self) -> int:
        """Returns the size of all records in bytes."""
        return self._limit - self._start

    def read(self, most: int, *, eager_headers: bool = False) -> list[Record]:
        """Returns the next `most` records, or all that are left.

        With `eager_headers`, compiled code decodes the headers in the same pass. Corrupt headers
        stay encoded, and so do all headers in code that is not compiled: `decode_headers_of`
        decodes them.

        Raises ValueError if a record is corrupt; the text names the record and the field.
        """
        if _READS_BY_FIELDS:
            return self._read_by_fields(most, eager_headers)
        data = self._data
        base_offset = self._base_offset
        base_timestamp = self._base_timestamp
        origin = self._origin
        # In Kafka's classes, offsets and timestamps beyond 64 bits overflow. Nonzero if that can
        # occur; only then is the overflow computed below.
        wraps = abs(base_timestamp) >> 61 | abs(base_offset) >> 61
        last_offset_delta = self._last_offset_delta
        # Whether an offset delta is not greater than the one before it. No producer writes that.
        backwards = 0
        tries = self._tries
        index: i64 = self._index  # the offset delta of the next record, if there is no gap
        find: Callable[[bytes], Layout | None] | None = None
        varints = record_layouts.offset_varints(self._count) if tries else VARINTS
        timestamp = self._timestamp  # the timestamp of the delta `seen`
        seen = self._seen
        # The latest layout and the encoded length of its records; empty if there is none.
        last = b""
        layout = NO_LAYOUT
        size, unpack, key_length, value_length, empty, nulls = layout[:6]
        remaining_runs = self._remaining_runs
        records: list[Record] = []
        count = min(self.remaining, most)
        pos: i64 = self._pos
        end: i64
        n: i64  # the latest varint, before it is decoded from zigzag
        change: int  # the varint of the timestamp delta, which may have 64 bits
        try:
            while len(records) < count:
                # Creating many objects at once takes less time for each. They are not all created
                # at once, because the count may be wrong.
                remaining = count - len(records)
                if remaining > _MADE_AT_ONCE:
                    remaining = _MADE_AT_ONCE
                if tries:
                    remaining = min(remaining, record_layouts.same_sizes(index))
                    find = RECORDS.of_sizes(len(seen), len(varints[index]))
                    last = data[pos : pos + 2]
                    layout = find(last) or NO_LAYOUT
                    if layout is NO_LAYOUT:
                        last = b""
                    size, unpack, key_length, value_length, empty, nulls = layout[:6]
                records_to_fill = list(map(Record.__new__, repeat(Record, remaining)))
                others = iter(records_to_fill)
                for record in others:
                    if find is not None:
                        if remaining_runs and last:
                            first = index
                            if is_run(data, pos, size, last):
                                unread, index, seen, timestamp = read_run(
                                    record,
                                    others,
                                    records_to_fill,
                                    data,
                                    pos,
                                    self._limit,
                                    layout,
                                    varints,
                                    index,
                                    base_offset,
                                    base_timestamp,
                                    seen,
                                    timestamp,
                                    origin,
                                )
                                pos += (index - first) * size
                                if unread is None:
                                    continue
                                record = unread
                            if index - first < LEAST_RUN:
                                remaining_runs -= 1
                        length = data[pos : pos + 2]
                        if length != last:
                            found = find(length)
                            if found is None:
                                last = b""
                            else:
                                last = length
                                layout = found
                                size, unpack, key_length, value_length, empty, nulls = layout[:6]
                        if last:
                            delta, at, key_is, record.key, value_is, record.value, headers = unpack(
                                data, pos
                            )
                            if (
                                at == varints[index]
                                and key_is == key_length
                                and value_is == value_length
                                and (headers == empty if empty else headers[0])
                                and (delta == seen or record_layouts.delta_of(delta) >= 0)
                            ):
                                if delta != seen:
                                    seen = delta
                                    change = record_layouts.delta_of(delta)
                                    timestamp = base_timestamp + ((change >> 1) ^ -(change & 1))
                                record.timestamp = timestamp
                                record.offset = base_offset + index
                                record._headers = headers
                                record._origin = origin
                                if nulls:
                                    if nulls & KEY_IS_NULL:
                                        record.key = None
                                    if nulls & VALUE_IS_NULL:
                                        record.value = None
                                pos += size
                                index += 1
                                continue
                    start = pos
                    # Varints of one or two bytes are read inline, longer ones by `read_varint`.
                    # Length of the record:
                    n = data[pos]
                    if n < 128:
                        pos += 1
                    else:
                        n += (data[pos + 1] << 7) - 128
                        if n < 16384:
                            pos += 2
                        else:
                            n, pos = read_varint(data, pos)
                    end = pos + (n >> 1)
                    if n & 1:
                        break
                    # Attributes (one byte, unused), then the timestamp delta:
                    change = data[pos + 1]
                    if change < 128:
                        pos += 2
                    else:
                        change += (data[pos + 2] << 7) - 128
                        if change < 16384:
                            pos += 3
                        else:
                            change, pos = read_varlong(data, pos + 1)
                            wraps |= change >> 62
                    record.timestamp = base_timestamp + ((change >> 1) ^ -(change & 1))
                    # Offset delta:
                    n = data[pos]
                    if n < 128:
                        pos += 1
                    else:
                        n += (data[pos + 1] << 7) - 128
                        if n < 16384:
                            pos += 2
                        else:
                            n, pos = read_varint(data, pos)
                    if n != index << 1:
                        # The deltas have a gap, or do not rise.
                        if n & 1 or n >> 1 < index:
                            if last_offset_delta is not None:
                                break
                            backwards = 1
                        index = zigzag(n)
                    record.offset = base_offset + index
                    index += 1
                    # Key. A slice that goes past the record is detected later: `end - pos` is
                    # then negative.
                    n = data[pos]
                    if n < 128:
                        pos += 1
                    else:
                        n += (data[pos + 1] << 7) - 128
                        if n < 16384:
                            pos += 2
                        else:
                            n, pos = read_varint(data, pos)
                    if n & 1:
                        record.key = None
                    else:
                        n = pos + (n >> 1)
                        record.key = data[pos:n]
                        pos = n
                    # Value:
                    n = data[pos]
                    if n < 128:
                        pos += 1
                    else:
                        n += (data[pos + 1] << 7) - 128
                        if n < 16384:
                            pos += 2
                        else:
                            n, pos = read_varint(data, pos)
                    if n & 1:
                        record.value = None
                    else:
                        n = pos + (n >> 1)
                        record.value = data[pos:n]
                        pos = n
                    # Header block: from the count to the end of the record.
                    if end - pos > 1:
                        if not data[pos]:
                            break
                        record._headers = data[pos:end]
                    elif end - pos != 1 or data[pos]:
                        break
                    else:
                        record._headers = NO_HEADERS
                    record._origin = origin
                    pos = end
                    if find is not None:
                        tries -= 1
                        if tries <= 0 or backwards or index >= len(varints):
                            tries = 0
                            find = None
                        else:
                            find = RECORDS.learn(data, start)
                            last = b""
                else:
                    records += records_to_fill
                    continue
                break
        except (IndexError, ValueError, struct_error):
            explain(data, self._start, self._limit, self._count, last_offset_delta)
        records = self._checked(records, count, pos, index, wraps)
        if self.remaining:
            self._tries = tries
            self._remaining_runs = remaining_runs
            self._seen = seen
            self._timestamp = timestamp
        self.any_offset = (backwards or wraps) != 0
        return records

    def _read_by_fields(self, most: int, eager_headers: bool) -> list[Record]:
        """Reads as `read` does, by `field_decoding`."""
        from .field_decoding import read_by_fields

        base_offset, base_timestamp = self._base_offset, self._base_timestamp
        last_offset_delta = self._last_offset_delta
        count = min(self.remaining, most)
        try:
            records, pos, index, overflows, backwards = read_by_fields(
                self._data,
                self._pos,
                count,
                self._index,
                base_offset,
                base_timestamp,
                any_delta=last_offset_delta is None,
                origin=self._origin,
                eager_headers=eager_headers,
            )
        except (IndexError, ValueError):
            explain(self._data, self._start, self._limit, self._count, last_offset_delta)
        wraps = abs(base_timestamp) >> 61 | abs(base_offset) >> 61 | overflows
        self.any_offset = backwards or wraps != 0
        return self._checked(records, count, pos, index, wraps)

    def _checked(
        self, records: list[Record], count: int, pos: int, index: int, wraps: int
    ) -> list[Record]:
        """Returns the records that a read of `count` records has read up to `pos`.

        `index` is the offset delta after them. If `wraps` is not 0, offsets and timestamps beyond
        64 bits overflow. Sets the timestamps of a batch with log append time. Raises ValueError if
        a record is corrupt.
        """
        last_offset_delta = self._last_offset_delta
        self.remaining -= len(records)
        if (
            len(records) != count
            or pos > self._limit
            or (not self.remaining and pos != self._limit)
            or (last_offset_delta is not None and index + self.remaining > last_offset_delta + 1)
        ):
            explain(self._data, self._start, self._limit, self._count, last_offset_delta)
        self._pos = pos
        if self.remaining:
            self._index = index
        if wraps:
            for record in records:
                record.timestamp = int64(record.timestamp)
                record.offset = int64(record.offset)
        if self._log_append_time is not None:
            for record in records:
                record.timestamp = self._log_append_time
        return records


def check_count(start: int, limit: int, count: int, last_offset_delta: int | None) -> None:
    """Raises ValueError if `count`, the number of records in a batch, is not possible.

    A count is not possible if it is negative, if the records do not fit into the bytes from `start`
    to `limit`, or if they need more offsets than `last_offset_delta` + 1.
    """
    if not 0 <= count <= (limit - start) // MIN_RECORD_BYTES:
        raise ValueError(f"{count} records cannot fit into {limit - start} bytes")
    if last_offset_delta is not None and count > last_offset_delta + 1 and count:
        raise ValueError(f"{count} records, but a last offset delta of {last_offset_delta}")


def check_offset_delta(delta: int, least: int, last_offset_delta: int, later: int) -> None:
    """Raises ValueError if a record has an offset delta that its batch does not allow.

    `least` is the least allowed delta: one more than the delta of the previous record. `later` is
    the number of records after this one; their deltas must rise to at most `last_offset_delta`.
    """
    most = last_offset_delta - later
    if not least <= delta <= most:
        raise ValueError(
            f"{delta} is outside of {least} to {most}, the range that the batch leaves for it"
        )


def explain(
    data: bytes, start: int, limit: int, count: int, last_offset_delta: int | None
) -> NoReturn:
    """Raises ValueError that names the fault in the records in `data[start:limit]`."""
    check_records(data, start, limit, count, last_offset_delta)
    raise ValueError(f"{count} records do not fill {limit - start} bytes")


def check_records(
    data: bytes, start: int, limit: int, count: int, last_offset_delta: int | None
) -> None:
    """Raises ValueError if `data[start:limit]` is not exactly `count` records.

    Does not create `Record` objects. Checks the header count, but not the headers. Checks the
    offset deltas as `RecordReader` does.
    """
    if limit - start != len(data):
        data = data[start:limit]
    pos = 0
    least = 0
    for index in range(count):
        part = "length"
        try:
            n, pos = read_varint(data, pos)
            length = zigzag(n)
            if length < 0:
                raise ValueError(f"negative length {length}")
            end = pos + length
            if end > len(data):
                raise ValueError(f"length {length}, but {len(data) - pos} bytes are left")
            part = "timestamp delta"
            _, pos = read_varlong(data, pos + 1)
            part = "offset delta"
            n, pos = read_varint(data, pos)
            if last_offset_delta is not None:
                check_offset_delta(zigzag(n), least, last_offset_delta, count - 1 - index)
                least = zigzag(n) + 1
            for field in ("key", "value"):
                part = field
                n, pos = read_varint(data, pos)
                length = zigzag(n)
                pos += max(length, 0)
                if pos > end:
                    raise ValueError(f"length {length} goes {pos - end} bytes past the record")
            part = "header count"
            n, after = read_varint(data, pos)
            if after > end:
                raise ValueError("no bytes are left for it")
            if n == 0 and after != end:
                raise ValueError(f"no headers, but {end - after} bytes are left in the record")
            if n == 1 or (n & 1):
                raise ValueError("negative header count")
            if n and after == end:
                raise ValueError(f"{n >> 1} headers, but no byte is left in the record")
            pos = end
        except IndexError:
            raise ValueError(f"record {index}, {part}: the batch ends inside it") from None
        except ValueError as error:
            raise ValueError(f"record {index}, {part}: {error}") from None
    if pos != len(data):
        raise ValueError(f"{len(data) - pos} bytes after the last of {count} records")
