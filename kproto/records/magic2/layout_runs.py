"""Records of one layout in a row: taken apart by one iterator, with the checks of `record_layouts`.

Where many records are alike this takes two thirds of the time of one call for each. A run ends at
the first record that is not as expected; that one is read anew, by whatever fits.
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

#: Where the last of so many records has the same length too, it is worth trying a run of them.
LEAST_RUN: Final = 16
_RECORDS_A_RUN: Final = 128


def runs(count: int) -> int:
    """How often a batch of `count` records may have no run before none is looked for any more."""
    return 2 + count // _RECORDS_A_RUN


def is_run(data: bytes, pos: int, size: int, length: bytes) -> bool:
    """Whether records of `size` bytes, which begin with `length`, may well stand from `pos` on."""
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
    """Fill `record`, and as many of `others` as are of that layout, from `pos` on.

    `index` is the offset delta of the first, `timestamp` that of the delta that was `seen` last.
    Returns the record that was taken and not filled, None where there is none; and `index`, `seen`
    and `timestamp` as they are for the next one.
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
    """`read_run` of values alone: of one record, and of as many of `others`.

    Returns whether one was taken and not read; and `index` and `seen` for the next one.
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
