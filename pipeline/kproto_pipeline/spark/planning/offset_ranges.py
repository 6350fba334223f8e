"""Ranges of offsets: which to read, and in how many pieces.

Owns the check of wanted against available offsets, and the cut into ranges. Decisions on plain
data: knows nothing of Spark, sockets, or how offsets are asked for.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kproto.wire.errors import ConfigurationError, KprotoError
from kproto.wire.uuid import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kproto.client import TopicPartition
    from kproto.wire.uuid import Uuid

__all__ = [
    "DataLossError",
    "LogOffsets",
    "OffsetRange",
    "coalesce_ranges",
    "plan_ranges",
    "split_ranges",
]


@dataclass(frozen=True, slots=True)
class LogOffsets:
    """The topic id, the earliest and the latest (next) offset of each partition's log.

    A topic id is all zeros if the brokers are too old to report it.
    """

    topic_ids: Mapping[TopicPartition, Uuid]
    earliest: Mapping[TopicPartition, int]
    latest: Mapping[TopicPartition, int]


class DataLossError(KprotoError):
    """Offsets that were asked for are not, or no longer, in the log."""


@dataclass(frozen=True, slots=True, order=True)
class OffsetRange:
    """Offsets `start` up to, not with, `end` of one partition.

    `topic_id` says of which topic of that name: one that is deleted and made anew has another
    (KIP-516). It is all zeros where the broker is too old to tell it.
    """

    topic: str
    partition: int
    start: int
    end: int
    topic_id: Uuid = ZERO_UUID

    @property
    def size(self) -> int:
        """How many offsets; compaction and control batches may leave fewer records."""
        return self.end - self.start

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} [{self.start}, {self.end})"


def plan_ranges(
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    earliest: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, int],
    *,
    fail_on_data_loss: bool,
) -> list[OffsetRange]:
    """One range for each partition that has something to read, in order of topic and partition.

    Raises:
        DataLossError: with `fail_on_data_loss`, when a range reaches out of the log. Without,
            the range is cut to what the log has.
        ConfigurationError: a start that lies after its end.
    """
    ranges = []
    for topic, partition in sorted(starts):
        part = (topic, partition)
        start, end = starts[part], ends[part]
        first, last = earliest[part], latest[part]
        if start > end:
            raise ConfigurationError(
                f"{topic}-{partition}: the starting offset {start} lies after the ending offset "
                f"{end}; the log holds {first} up to {last}"
            )
        if start < first or end > last:
            if fail_on_data_loss:
                raise DataLossError(
                    f"{topic}-{partition}: offsets {start} up to {end} were asked for, the log "
                    f"holds {first} up to {last}; set failOnDataLoss to false to read what is there"
                )
            start, end = min(max(start, first), last), min(max(end, first), last)
        if start < end:
            ranges.append(OffsetRange(topic, partition, start, end))
    return ranges


def split_ranges(
    ranges: Sequence[OffsetRange],
    *,
    min_partitions: int | None = None,
    max_records: int | None = None,
) -> list[OffsetRange]:
    """Cut ranges so that there are at least `min_partitions`, none above `max_records` offsets.

    Pieces of one range differ by at most one offset. The next cut always goes to the range whose
    pieces are the largest; a piece never gets below one offset.
    """
    pieces = [1 if max_records is None else -(-r.size // max_records) for r in ranges]
    total = sum(pieces)
    if min_partitions is not None and total < min_partitions:
        largest = [
            (-r.size / n, index) for index, (r, n) in enumerate(zip(ranges, pieces, strict=True))
        ]
        heapq.heapify(largest)
        while largest and total < min_partitions:
            _, index = heapq.heappop(largest)
            if pieces[index] < ranges[index].size:
                pieces[index] += 1
                total += 1
                heapq.heappush(largest, (-ranges[index].size / pieces[index], index))
    return [
        replace(
            r,
            start=r.start + r.size * piece // count,
            end=r.start + r.size * (piece + 1) // count,
        )
        for r, count in zip(ranges, pieces, strict=True)
        for piece in range(count)
    ]


def coalesce_ranges(ranges: Iterable[OffsetRange], most: int) -> list[list[OffsetRange]]:
    """Ranges in their order, together with the one before up to `most` offsets."""
    groups: list[list[OffsetRange]] = []
    size = 0
    for each in ranges:
        if groups and size + each.size <= most:
            groups[-1].append(each)
            size += each.size
        else:
            groups.append([each])
            size = each.size
    return groups
