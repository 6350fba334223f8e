"""Reads runs of records: consecutive records with the same layout (see `record_layouts`).

A single `struct.iter_unpack` reads the run in two thirds of the time that a call for each record
takes. A run ends at the first record with a different layout, which the caller reads field by
field.
"""

from __future__ import annotations

from itertools import chain, islice, repeat
from operator import length_hint
from struct import iter_unpack
from typing import TYPE_CHECKING, Final

from .layout_columns import count_same_time, count_uniform
from .record_layouts import KEY_IS_NULL, VALUE_IS_NULL, delta_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..record import BatchOrigin, Record
    from .record_layouts import Layout

__all__ = ["LEAST_RUN", "is_run", "read_run", "read_values", "runs"]

#: The reader tries to read a run only if the first and the 16th record have the same length.
LEAST_RUN: Final = 16
_RECORDS_A_RUN: Final = 128


def runs(count: int) -> int:
    """Returns the number of short runs after which the reader of a batch looks for no more runs.

    A run is a sequence of records with the same layout. It is short if it has fewer than LEAST_RUN
    records. `count` is the number of records in the batch.
    """
    return 2 + count // _RECORDS_A_RUN


def is_run(data: bytes, pos: int, size: int, length: bytes) -> bool:
    """Returns True if a run of records of `size` bytes may begin at `pos`.

    Checks only the position at which the LEAST_RUN-th record of the run would begin: the encoded
    length at this position must be equal to `length`.
    """
    ahead = pos + size * (LEAST_RUN - 1)
    return data[ahead : ahead + 2] == length


def read_uniform(
    records: list[Record],
    data: bytes,
    pos: int,
    limit: int,
    layout: Layout,
    varints: Sequence[bytes],
    index: int,
    base_offset: int,
    base_timestamp: int,
    seen: bytes,
    timestamp: int,
    origin: BatchOrigin,
) -> tuple[int, bytes, int]:
    """Fills the first of `records` with the records from `pos` on that certainly have `layout`.

    The layout has no null. The other arguments are as in `read_run`. Returns the number of filled
    records, and `seen` and `timestamp` for the next record.
    """
    uniform = count_uniform(data, pos, limit, layout, varints, index, len(seen), len(records))
    if not uniform:
        return 0, seen, timestamp
    size, _, _, _, _, _, _, _, _, fields, timed, _ = layout
    same = count_same_time(data, pos, layout, seen, uniform)
    middle = pos + same * size
    end = pos + uniform * size
    unfilled = iter(records)
    offset = base_offset + index
    for (key, value, headers), each, number in zip(
        iter_unpack(fields, memoryview(data)[pos:middle]),
        unfilled,
        range(offset, offset + same),
        strict=False,  # the list may have more records
    ):
        each.timestamp = timestamp
        each.offset = number
        each.key = key
        each.value = value
        each._headers = headers
        each._origin = origin
    if same < uniform:
        for (delta, key, value, headers), each, number in zip(
            iter_unpack(timed, memoryview(data)[middle:end]),
            unfilled,
            range(offset + same, offset + uniform),
            strict=False,
        ):
            if delta != seen:
                n = delta_of(delta)
                seen = delta
                timestamp = base_timestamp + ((n >> 1) ^ -(n & 1))
            each.timestamp = timestamp
            each.offset = number
            each.key = key
            each.value = value
            each._headers = headers
            each._origin = origin
    return uniform, seen, timestamp


def read_run(
    record: Record,
    others: Iterator[Record],
    records: list[Record],
    data: bytes,
    pos: int,
    limit: int,
    layout: Layout,
    varints: Sequence[bytes],
    index: int,
    base_offset: int,
    base_timestamp: int,
    seen: bytes,
    timestamp: int,
    origin: BatchOrigin,
) -> tuple[Record | None, int, bytes, int]:
    """Reads records from `pos` on, until the bytes of a record do not have `layout`.

    Fills `record` with the first record, and the `Record`s of `others` with the next records;
    `records` is the list that `others` iterates over. `index` is the offset delta of the first
    record. `seen` is the encoded timestamp delta of the record before `pos`, and `timestamp` is its
    timestamp (ms). Returns four values. The first is the `Record` that was taken from `others` but
    not filled, or `record` if nothing was read; None if all taken records were filled. The other
    three values are `index`, `seen` and `timestamp` for a call that reads the next record.
    """
    size, _, key_length, value_length, empty, nulls, length, row, _, _, _, _ = layout
    unread: Record | None = record
    if not nulls:
        first = len(records) - length_hint(others) - 1
        uniform, seen, timestamp = read_uniform(
            records[first:] if first else records,
            data,
            pos,
            limit,
            layout,
            varints,
            index,
            base_offset,
            base_timestamp,
            seen,
            timestamp,
            origin,
        )
        if uniform:
            next(islice(others, uniform - 1, uniform - 1), None)  # skips the filled records
            index += uniform
            pos += uniform * size
            unread = next(others, None)
            if unread is None:
                return None, index, seen, timestamp
            record = unread
    view = memoryview(data)[pos : pos + (limit - pos) // size * size]
    for (length_is, delta, at, key_is, key, value_is, value, headers), unread in zip(
        iter_unpack(row, view), chain((record,), others), strict=False
    ):
        if (
            at != varints[index]
            or length_is != length
            or key_is != key_length
            or value_is != value_length
            or (headers != empty if empty else not headers[0])
        ):
            break
        if delta != seen:
            n = delta_of(delta)
            if n < 0:
                break
            seen = delta
            timestamp = base_timestamp + ((n >> 1) ^ -(n & 1))
        unread.timestamp = timestamp
        unread.offset = base_offset + index
        unread.key = key
        unread.value = value
        unread._headers = headers
        unread._origin = origin
        if nulls:
            if nulls & KEY_IS_NULL:
                unread.key = None
            if nulls & VALUE_IS_NULL:
                unread.value = None
        index += 1
    else:
        if view:
            unread = None
    return unread, index, seen, timestamp


def read_values(
    values: list[bytes | None],
    others: Iterator[None],
    data: bytes,
    pos: int,
    limit: int,
    layout: Layout,
    varints: Sequence[bytes],
    index: int,
    seen: bytes,
) -> tuple[bool, int, bytes]:
    """Appends the values of consecutive records from `pos` on that have the layout.

    Stops at the first record with another layout. Takes an element of `others` for each record
    after the first one; the caller has taken the element for the first record. The other arguments
    are as in `read_run`. Returns three values: True if an element was taken for a record that was
    not read, and `index` and `seen` for the next record.
    """
    size, _, key_length, value_length, empty, nulls, length, row, places, fields, _, _ = layout
    most = 1 + length_hint(others)
    uniform = count_uniform(data, pos, limit, layout, varints, index, len(seen), most)
    if uniform:
        end = pos + uniform * size
        if nulls:
            values.extend(repeat(None, uniform))
        else:
            unpacked = iter_unpack(fields, memoryview(data)[pos:end])
            values.extend(chain.from_iterable(unpacked))
        index += uniform
        time_at = end - size + places[0]
        seen = data[time_at : time_at + len(seen)]
        pos = end
        next(islice(others, uniform - 1, uniform - 1), None)  # skips those of the other records
        if not length_hint(others):
            return False, index, seen
        next(others)
    append = values.append
    view = memoryview(data)[pos : pos + (limit - pos) // size * size]
    for (length_is, delta, at, key_is, value_is, value, headers), _ in zip(
        iter_unpack(row, view), chain((None,), others), strict=False
    ):
        if (
            at != varints[index]
            or length_is != length
            or key_is != key_length
            or value_is != value_length
            or (headers != empty if empty else not headers[0])
        ):
            break
        if delta != seen:
            if delta_of(delta) < 0:
                break
            seen = delta
        append(None if nulls else value)
        index += 1
    else:
        return not view, index, seen
    return True, index, seen
