"""Finds offsets by timestamp, including the special (negative) timestamps of ListOffsets."""

from __future__ import annotations

from typing import Final, NamedTuple

from ...records import NO_TIMESTAMP
from ...wire.errors import CorruptBatchError, MissingCodecError
from ..api_error import api_error
from .log import PartitionLog, TimestampedOffset

__all__ = [
    "EARLIEST",
    "EARLIEST_LOCAL",
    "EARLIEST_PENDING_UPLOAD",
    "LARGEST_TIMESTAMP",
    "LATEST",
    "LATEST_TIERED",
    "NOT_FOUND",
    "FoundOffset",
    "fetch_offset_by_timestamp",
    "legacy_offsets_before",
]

LATEST: Final = -1
EARLIEST: Final = -2
LARGEST_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6

_NONE: Final = -1


class FoundOffset(NamedTuple):
    """Holds an offset with its timestamp (ms) and leader epoch; each is -1 if there is none."""

    offset: int
    timestamp: int
    leader_epoch: int


NOT_FOUND: Final = FoundOffset(_NONE, NO_TIMESTAMP, _NONE)


def fetch_offset_by_timestamp(
    log: PartitionLog, timestamp: int, end_offset: int | None = None
) -> FoundOffset:
    """Returns the offset for a timestamp, as ListOffsets does.

    `end_offset` is the end of the log for the client; None stands for the log end offset. LATEST
    returns this end. EARLIEST returns the log start offset. There is no remote storage:
    EARLIEST_LOCAL also returns the log start offset, and the other timestamps of remote storage
    return NOT_FOUND. A timestamp in ms returns the offset of the first record whose timestamp is at
    least `timestamp`, or NOT_FOUND if no record before the end has such a timestamp.

    Raises CORRUPT_MESSAGE and UNSUPPORTED_COMPRESSION_TYPE if the batch with the record cannot be
    decoded.
    """
    if timestamp == LATEST:
        if end_offset is None or end_offset == log.end_offset:
            return FoundOffset(log.end_offset, NO_TIMESTAMP, log.epochs.current)
        return FoundOffset(end_offset, NO_TIMESTAMP, log.epochs.at(end_offset))
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return FoundOffset(log.start_offset, NO_TIMESTAMP, log.epochs.at(log.start_offset))
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return NOT_FOUND
    record = _record_at(log, timestamp)
    if record is None or (end_offset is not None and record.offset >= end_offset):
        return NOT_FOUND
    return FoundOffset(record.offset, record.timestamp, log.epochs.at(record.offset))


def _record_at(log: PartitionLog, timestamp: int) -> TimestampedOffset | None:
    try:
        if timestamp == LARGEST_TIMESTAMP:
            return log.offset_of_largest_time()
        return log.offset_for_time(timestamp)
    except CorruptBatchError as error:
        raise api_error("CORRUPT_MESSAGE", str(error)) from None
    except MissingCodecError as error:
        raise api_error("UNSUPPORTED_COMPRESSION_TYPE", str(error)) from None


def legacy_offsets_before(log: PartitionLog, timestamp: int, most: int, now_ms: int) -> list[int]:
    """Returns the offsets of ListOffsets v0, newest first, as for a log of one segment.

    The log end offset has the time `now_ms`; the log start offset has the time of the last append.
    For an empty log, there is only the log start offset. Returns at most `most` offsets, and only
    offsets whose time is at most `timestamp`. LATEST matches both offsets, EARLIEST only the log
    start offset.
    """
    known = [TimestampedOffset(log.start_offset, log.last_append_time)]
    if log.end_offset > log.start_offset:
        known.append(TimestampedOffset(log.end_offset, now_ms))
    if timestamp == EARLIEST:
        known = known[:1]
    elif timestamp != LATEST:
        known = [entry for entry in known if entry.timestamp <= timestamp]
    return [entry.offset for entry in reversed(known)][: max(0, most)]
