"""The records inside a batch (magic 2): bytes to `Record` objects.

Owns the loop over the records of one batch, after decompression. A fast loop reads straight on;
when anything does not fit, `check_records` goes over the same bytes again, carefully, and says
which record is broken and how.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..any_magic import CREATE_TIME, LOG_APPEND_TIME
from ..record import Record
from ..varints import int64, read_varint, read_varlong, zigzag
from .batch_header import MIN_RECORD_BYTES

if TYPE_CHECKING:
    from typing import NoReturn

__all__ = ["check_records", "decode_records"]


def decode_records(
    data: bytes,
    start: int,
    limit: int,
    count: int,
    base_offset: int,
    base_timestamp: int,
    log_append_time: int | None = None,
    topic: str = "",
    partition: int = -1,
    position: int = 0,
    from_offset: int | None = None,
) -> list[Record]:
    """Decode `count` records that fill `data[start:limit]` exactly; those from `from_offset` on.

    With `log_append_time` (ms) every record carries it, as `topic` and `partition`. Headers stay
    undecoded; an error in them will name `position`, where the batch begins, and `base_offset`.
    Raises ValueError that says which record is broken and how.
    """
    if not 0 <= count <= (limit - start) // MIN_RECORD_BYTES:
        raise ValueError(f"{count} records cannot stand in {limit - start} bytes")
    # Sums beyond 64 bits go round in Kafka's classes; here only where they can come about.
    wraps = abs(base_timestamp) >> 61 | abs(base_offset) >> 61
    # Kafka writes no negative offset delta, and reads it.
    backwards = 0
    # One tuple for all of them; compiled, a plain one would be made anew for each.
    batch: tuple[int, int] | None = (position, base_offset)
    create = Record.__new__
    records: list[Record] = []
    append = records.append
    pos = start
    try:
        for _ in range(count):
            # Each varint below: one byte, else two, else the reader. Length of the record:
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
            n = data[pos + 1]
            if n < 128:
                pos += 2
            else:
                n += (data[pos + 2] << 7) - 128
                if n < 16384:
                    pos += 3
                else:
                    n, pos = read_varlong(data, pos + 1)
                    wraps |= n >> 62
            record = create(Record)
            record.topic = topic
            record.partition = partition
            record.timestamp = base_timestamp + ((n >> 1) ^ -(n & 1))
            record.timestamp_type = CREATE_TIME
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
            if n & 1:
                backwards = 1
                record.offset = base_offset + ~(n >> 1)
            else:
                record.offset = base_offset + (n >> 1)
            # Key; a slice past the end is found by the comparisons with `end` and `limit`:
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
                if n != 1:
                    break
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
                if n != 1:
                    break
                record.value = None
            else:
                n = pos + (n >> 1)
                record.value = data[pos:n]
                pos = n
            # Header block: from the count to the end of the record.
            if end - pos > 1:
                if not data[pos]:
                    break
            elif end - pos != 1 or data[pos]:
                break
            record._headers = data[pos:end]
            record._batch = batch
            append(record)
            pos = end
    except (IndexError, ValueError):
        _explain(data, start, limit, count)
    if len(records) != count or pos != limit:
        _explain(data, start, limit, count)
    if wraps:
        for record in records:
            record.timestamp = int64(record.timestamp)
            record.offset = int64(record.offset)
    if log_append_time is not None:
        for record in records:
            record.timestamp = log_append_time
            record.timestamp_type = LOG_APPEND_TIME
    if from_offset is not None and (from_offset > base_offset or backwards or wraps):
        return [record for record in records if record.offset >= from_offset]
    return records


def _explain(data: bytes, start: int, limit: int, count: int) -> NoReturn:
    """Say why the records in `data[start:limit]` cannot be read, as ValueError."""
    check_records(data, start, limit, count)
    raise ValueError(f"{count} records do not fill {limit - start} bytes")


def check_records(data: bytes, start: int, limit: int, count: int) -> None:
    """Raise ValueError if `data[start:limit]` is not `count` records; takes no memory for them."""
    if limit - start != len(data):
        data = data[start:limit]
    pos = 0
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
            _, pos = read_varint(data, pos)
            for field in ("key", "value"):
                part = field
                n, pos = read_varint(data, pos)
                length = zigzag(n)
                if length < -1:
                    raise ValueError(f"negative length {length}")
                pos += max(length, 0)
                if pos > end:
                    raise ValueError(f"length {length} goes {pos - end} bytes past the record")
            part = "header count"
            n, after = read_varint(data, pos)
            if after > end:
                raise ValueError("no room is left for it")
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
        raise ValueError(f"{len(data) - pos} bytes behind the last of {count} records")
