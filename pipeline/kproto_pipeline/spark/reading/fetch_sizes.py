"""How much to ask for where a range is small and the log behind it is long.

A task of a stream may have 1,000 records of a log of millions: a fetch of full size brings
megabytes of which nothing is wanted, with each micro-batch again. How large the records of a topic
are is known from the fetches before. The first fetch of a range asks for twice of what they would
be; where that is too little, those behind it ask for all there is room for.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ..planning.offset_ranges import OffsetRange

__all__ = ["first_fetch_bytes", "record_fetch_size"]

#: What is asked for at least: a few batches, whatever the last records were like.
_LEAST_BYTES: Final = 64 << 10

#: How many topics are remembered; then all are forgotten.
_MOST_TOPICS: Final = 1_000

_OFFSET_AND_LENGTH: Final = struct.Struct(">qi")

#: Topic -> bytes of each offset, as of the last fetch. On the loop of this process's clients.
_bytes_of_offset: dict[str, float] = {}


def first_fetch_bytes(wanted: OffsetRange, most: int) -> int:
    """How many bytes the first fetch of a range asks for, `most` at most."""
    each = _bytes_of_offset.get(wanted.topic)
    if each is None:
        return most
    return min(most, _LEAST_BYTES + int(2 * each * wanted.size))


def record_fetch_size(topic: str, records: bytes, offsets: int, end: int) -> None:
    """Remember what the batches before `end` take, which hold that many offsets."""
    at = 0
    while at + _OFFSET_AND_LENGTH.size <= len(records):
        base_offset, length = _OFFSET_AND_LENGTH.unpack_from(records, at)
        if base_offset >= end or length < 0:
            break
        at += _OFFSET_AND_LENGTH.size + length
    if len(_bytes_of_offset) >= _MOST_TOPICS:
        _bytes_of_offset.clear()
    _bytes_of_offset[topic] = min(at, len(records)) / offsets
