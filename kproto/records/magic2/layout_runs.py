"""Reads runs of records: consecutive records with the same layout (see `record_layouts`).

A single `struct.iter_unpack` reads the run, which takes two thirds of the time of a call for each
record. A run ends at the first record with a different layout, which the caller reads field by
field.
"""

from __future__ import annotations

from itertools import chain
from struct import iter_unpack
from typing import TYPE_CHECKING, Final

from .record_layouts import KEY_IS_NULL, VALUE_IS_NULL, delta_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..record import Origin, Record
    from .record_layouts import Layout

__all__ = ["LEAST_RUN", "is_run", "read_run", "read_values", "runs"]

#: A run is tried if the last of this many records would have the same length as the first.
LEAST_RUN: Final = 16
_RECORDS_A_RUN: Final = 128


def runs(count: int) -> int:
    """Returns after how many short runs the reader of a batch of `count` records tries no more.

    A run is short if it has fewer than LEAST_RUN records.
    """
    return 2 + count // _RECORDS_A_RUN


def is_run(data: bytes, pos: int, size: int, length: bytes) -> bool:
    """Returns whether a run may begin at `pos`, of records of `size` bytes.

    Compares only the encoded length of the record LEAST_RUN - 1 records ahead with `length`.
    """
    ahead = pos + size * (LEAST_RUN - 1)
    return data[ahead : ahead + 2] == length


def read_run(
    record: Record,
    others: Iterator[Record],
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
    origin: Origin,
) -> tuple[Record | None, int, bytes, int]:
    """Reads records from `pos` on into `record`, then into `others`, while they have the layout.

    `index` is the offset delta of the first record. `seen` is the latest encoded timestamp delta,
    and `timestamp` its timestamp. Returns the `Record` that was taken from `others` and not filled
    (None if all were filled), then `index`, `seen` and `timestamp` for the next record.
    """
    size, _, key_length, value_length, empty, nulls, length, row = layout
    view = memoryview(data)[pos : pos + (limit - pos) // size * size]
    unread: Record | None = record
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
    append: Callable[[bytes | None], None],
    others: Iterator[None],
    data: bytes,
    pos: int,
    limit: int,
    layout: Layout,
    varints: Sequence[bytes],
    index: int,
    seen: bytes,
) -> tuple[bool, int, bytes]:
    """Appends the values of the records from `pos` on, while they have the layout.

    Reads at most one record more than `others` has elements; the arguments are like those of
    `read_run`. Returns whether an element was taken for a record that was not read, then `index`
    and `seen` for the next record.
    """
    size, _, key_length, value_length, empty, nulls, length, row = layout
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
