"""Limits the first fetch of a small offset range to about the size of its records.

A task of a stream may read 1,000 records of a log of millions. A fetch of full size would bring
megabytes of other records with each micro-batch. Earlier fetches have shown how large the records
of a topic are: the first fetch of a range requests twice the estimate, and later ones full size.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ..planning.offset_ranges import OffsetRange

__all__ = ["first_fetch_bytes", "record_fetch_size"]

#: The least bytes of a first fetch: a few batches, however small the last records were.
_MIN_BYTES: Final = 64 << 10

#: The most topics with a known size; when there are more, all sizes are dropped.
_MAX_TOPICS: Final = 1_000

_OFFSET_AND_LENGTH: Final = struct.Struct(">qi")

#: Topic -> bytes of an offset, as of the last fetch. Used on the loop of the clients only.
_bytes_of_offset: dict[str, float] = {}


def first_fetch_bytes(offset_range: OffsetRange, most: int) -> int:
    """Returns how many bytes the first fetch of a range requests, `most` at most."""
    each = _bytes_of_offset.get(offset_range.topic)
    if each is None:
        return most
    return min(most, _MIN_BYTES + int(2 * each * offset_range.size))


def record_fetch_size(topic: str, records: bytes, offsets: int, end: int) -> None:
    """Records the size of the batches before offset `end`, which hold so many `offsets`."""
    at = 0
    while at + _OFFSET_AND_LENGTH.size <= len(records):
        base_offset, length = _OFFSET_AND_LENGTH.unpack_from(records, at)
        if base_offset >= end or length < 0:
            break
        at += _OFFSET_AND_LENGTH.size + length
    if len(_bytes_of_offset) >= _MAX_TOPICS:
        _bytes_of_offset.clear()
    _bytes_of_offset[topic] = min(at, len(records)) / offsets
