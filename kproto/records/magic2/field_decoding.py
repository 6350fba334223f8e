"""Decodes records (magic 2) field by field, for compiled code, which sets the slots by index.

`RecordReader` calls `read_by_fields` if mypyc has compiled it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...wire.c_functions import new_untracked, set_slot
from ..header_block import NO_HEADERS, read_headers
from ..record import Record
from ..varints import read_varint, read_varlong, zigzag

if TYPE_CHECKING:
    from ...wire.native import i64
    from ..header_block import Header
    from ..record import BatchOrigin

__all__ = ["read_by_fields"]


def read_by_fields(
    data: bytes,
    pos: i64,
    count: i64,
    index: i64,
    base_offset: int,
    base_timestamp: int,
    *,
    any_delta: bool,
    origin: BatchOrigin,
    eager_headers: bool,
) -> tuple[list[Record], i64, i64, bool, bool]:
    """Reads `count` records from `pos` on; `index` is the offset delta of the first one.

    With `eager_headers`, decodes the headers too; corrupt headers stay encoded. Offset deltas that
    do not rise are a fault unless `any_delta` is set. Returns the records, the position and the
    offset delta after them, whether a timestamp may have overflowed, and whether an offset delta
    has not risen. Returns fewer records, or raises IndexError or ValueError, if a record is
    corrupt.
    """
    records: list[Record] = []
    kind = Record
    overflows = backwards = False
    end: i64
    n: i64  # the latest varint, before it is decoded from zigzag
    change: int  # the varint of the timestamp delta, which may have 64 bits
    latest = 0  # `change` of the record before
    timestamp: object = base_timestamp
    for _ in range(count):
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
        # The garbage collector need not visit a record: bytes, numbers, header tuples of bytes and
        # str, and the origin are in no reference cycle.
        record = new_untracked(kind)
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
                if change >> 62:
                    overflows = True
        if change != latest:
            latest = change
            timestamp = base_timestamp + ((change >> 1) ^ -(change & 1))
        set_slot(record, "timestamp", 4, timestamp)
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
                if not any_delta:
                    break
                backwards = True
            index = zigzag(n)
        set_slot(record, "offset", 3, base_offset + index)
        index += 1
        # Key. A slice that goes past the record is detected later: `end - pos` is then negative.
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
            set_slot(record, "key", 2, None)
        else:
            n = pos + (n >> 1)
            set_slot(record, "key", 2, data[pos:n])
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
            set_slot(record, "value", 5, None)
        else:
            n = pos + (n >> 1)
            set_slot(record, "value", 5, data[pos:n])
            pos = n
        # Header block: from the count to the end of the record.
        if end - pos > 1:
            if not data[pos]:
                break
            if eager_headers:
                set_slot(record, "_headers", 0, _headers_at(data, pos, end))
            else:
                set_slot(record, "_headers", 0, data[pos:end])
        elif end - pos != 1 or data[pos]:
            break
        elif eager_headers:
            set_slot(record, "_headers", 0, [])
        else:
            set_slot(record, "_headers", 0, NO_HEADERS)
        set_slot(record, "_origin", 1, origin)
        pos = end
        records.append(record)
    return records, pos, index, overflows, backwards


def _headers_at(data: bytes, pos: i64, end: i64) -> bytes | list[Header]:
    """Returns the headers in `data[pos:end]`, or their bytes if they are corrupt."""
    try:
        return read_headers(data, pos, end)
    except (IndexError, ValueError):
        return data[pos:end]
