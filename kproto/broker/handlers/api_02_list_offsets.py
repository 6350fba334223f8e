"""ListOffsets (2), v0 to v11.

v0      a list of offsets at which segments begin, newest first
v1      one offset and its timestamp (KIP-79)
v2      isolation level (KIP-98), throttle time
v4      leader epoch (KIP-320)
v6      flexible
v7      timestamp -3, the record with the largest timestamp (KIP-734)
v8      timestamp -4, the start of what is kept locally (KIP-405)
v9      timestamp -5, the end of what is in remote storage (KIP-1005)
v10     a time-out for remote storage (KIP-1075)
v11     timestamp -6, the first offset not yet in remote storage (KIP-1023)

Left out: remote storage, so that -4 is the start of the log, and -5 and -6 find nothing; more
than one segment, which v0 would list.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from ...messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
)
from ...messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ...wire.errors import BrokerResponseError, CorruptBatchError, MissingCodecError
from ..log import LEADER_EPOCH, PartitionLog, TimestampedOffset
from ..refusal import refusal
from ..registry import handles
from ..state import BrokerState
from ._leader_epoch import check_leader_epoch

LATEST: Final = -1
EARLIEST: Final = -2
LARGEST_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6

#: From which version on a negative timestamp is known.
_FIRST_VERSION: Final = {
    LATEST: 0,
    EARLIEST: 0,
    LARGEST_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}

_NONE: Final = -1


class _Found(NamedTuple):
    offset: int = _NONE
    timestamp: int = _NONE
    leader_epoch: int = _NONE


@handles(ListOffsetsRequest, versions=range(12))
def list_offsets(
    state: BrokerState, request: ListOffsetsRequest, version: int
) -> ListOffsetsResponse:
    """Look up every partition's offset."""
    times = Counter(
        (topic.name, wanted.partition_index)
        for topic in request.topics
        for wanted in topic.partitions
    )
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    _partition(
                        state,
                        topic.name,
                        wanted,
                        version,
                        times[topic.name, wanted.partition_index],
                    )
                    for wanted in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _partition(
    state: BrokerState, topic: str, wanted: ListOffsetsPartition, version: int, times: int
) -> ListOffsetsPartitionResponse:
    response = ListOffsetsPartitionResponse(partition_index=wanted.partition_index)
    try:
        if times > 1 and version > 0:
            raise refusal("INVALID_REQUEST", "the partition is named more than once")
        log = state.topics.named(topic).partition(wanted.partition_index).log
        check_leader_epoch(wanted.current_leader_epoch)
        if version == 0:
            response.old_style_offsets = old_style_offsets(
                log, wanted.timestamp, wanted.max_num_offsets, state.now_ms()
            )
        else:
            found = _find(log, wanted.timestamp, version)
            response.offset, response.timestamp = found.offset, found.timestamp
            if version >= 4:
                response.leader_epoch = found.leader_epoch
    except BrokerResponseError as error:
        response.error_code = error.code
    return response


def _find(log: PartitionLog, timestamp: int, version: int) -> _Found:
    if timestamp < 0 and version < _FIRST_VERSION.get(timestamp, version + 1):
        raise refusal("UNSUPPORTED_VERSION", f"ListOffsets v{version} has no timestamp {timestamp}")
    if timestamp == LATEST:
        return _Found(log.end_offset, leader_epoch=LEADER_EPOCH)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return _Found(log.start_offset, leader_epoch=LEADER_EPOCH)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return _Found()
    record = _record_at(log, timestamp)
    if record is None:
        return _Found()
    return _Found(record.offset, record.timestamp, LEADER_EPOCH)


def _record_at(log: PartitionLog, timestamp: int) -> TimestampedOffset | None:
    try:
        if timestamp == LARGEST_TIMESTAMP:
            return log.offset_of_largest_time()
        return log.offset_for_time(timestamp)
    except CorruptBatchError as error:
        raise refusal("CORRUPT_MESSAGE", str(error)) from None
    except MissingCodecError as error:
        raise refusal("UNSUPPORTED_COMPRESSION_TYPE", str(error)) from None


def old_style_offsets(log: PartitionLog, timestamp: int, most: int, now_ms: int) -> list[int]:
    """What v0 lists of a log of one segment: its end (as of now), and its start, newest first."""
    known = [TimestampedOffset(log.start_offset, log.last_append_time)]
    if log.end_offset > log.start_offset:
        known.append(TimestampedOffset(log.end_offset, now_ms))
    if timestamp == EARLIEST:
        known = known[:1]
    elif timestamp != LATEST:
        known = [entry for entry in known if entry.timestamp <= timestamp]
    return [entry.offset for entry in reversed(known)][: max(0, most)]
