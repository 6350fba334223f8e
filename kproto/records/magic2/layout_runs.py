"""Reads many records of one layout in a row with one iterator and the checks of `record_layouts`.

For many uniform records this takes two thirds of the time of one call per record. A run ends at
the first record that differs; the caller reads that one again.
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

#: A run is tried if the record this many places ahead has the same length too.
LEAST_RUN: Final = 16
_RECORDS_A_RUN: Final = 128


def runs(count: int) -> int:
    """Returns how many failed runs a batch of `count` records may have before it tries no more."""
    return 2 + count // _RECORDS_A_RUN


def is_run(data: bytes, pos: int, size: int, length: bytes) -> bool:
    """Returns whether records of `size` bytes, each beginning with `length`, may stand at `pos`."""
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
    """Fills `record`, and as many of `others` as have the layout, from `pos` on.

    `index` is the offset delta of the first record, `timestamp` the timestamp of the delta `seen`.
    Returns the record that was taken and not filled (None if there is none), then `index`, `seen`
    and `timestamp` for the next record.
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
    """Reads values like `read_run`: of one record, and of as many of `others` as have the layout.

    Returns whether a record was taken and not read, then `index` and `seen` for the next record.
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
