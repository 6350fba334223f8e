"""Limits the first fetch of a small offset range to about the size of its records.

A task of a stream may read 1,000 records of a log of millions. A fetch of full size would return
megabytes of other records in each micro-batch. Earlier fetches show the size of a topic's records:
the first fetch of a range requests twice the estimate, and later ones the full size.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ..planning.offset_ranges import OffsetRange

__all__ = ["first_fetch_bytes", "record_fetch_size"]

#: The fewest bytes of a first fetch: a few batches, even if recent records were small.
_MIN_BYTES: Final = 64 << 10

#: The most topics with a recorded size; when there are more, all sizes are cleared.
_MAX_TOPICS: Final = 1_000

_OFFSET_AND_LENGTH: Final = struct.Struct(">qi")

#: By topic: bytes per offset in the last fetch. Used only in the thread of the client loop.
_bytes_of_offset: dict[str, float] = {}


def first_fetch_bytes(offset_range: OffsetRange, most: int) -> int:
    """Returns the bytes that the first fetch of a range requests; at most `most`."""
    each = _bytes_of_offset.get(offset_range.topic)
    if each is None:
        return most
    return min(most, _MIN_BYTES + int(2 * each * offset_range.size))


def record_fetch_size(topic: str, records: bytes, offsets: int, end: int) -> None:
    """Records the bytes per offset of a fetch: `offsets` in the batches before offset `end`."""
    at = 0
    while at + _OFFSET_AND_LENGTH.size <= len(records):
        base_offset, length = _OFFSET_AND_LENGTH.unpack_from(records, at)
        if base_offset >= end or length < 0:
            break
        at += _OFFSET_AND_LENGTH.size + length
    if len(_bytes_of_offset) >= _MAX_TOPICS:
        _bytes_of_offset.clear()
    _bytes_of_offset[topic] = min(at, len(records)) / offsets
