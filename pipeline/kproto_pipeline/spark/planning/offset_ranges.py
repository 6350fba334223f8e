"""Plans offset ranges: checks requested offsets against the logs, and splits ranges into tasks.

This module works on plain data, without Spark or a client.
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
    """The topic id, the earliest offset and the latest (next) offset of each partition's log.

    The topic id is all zeros if the brokers do not support topic ids (KIP-516).
    """

    topic_ids: Mapping[TopicPartition, Uuid]
    earliest: Mapping[TopicPartition, int]
    latest: Mapping[TopicPartition, int]


class DataLossError(KprotoError):
    """Requested offsets are not in the log, for example because retention deleted them."""


@dataclass(frozen=True, slots=True, order=True)
class OffsetRange:
    """The offsets of one partition from `start` (inclusive) to `end` (exclusive).

    `topic_id` tells a topic from a recreated topic of the same name (KIP-516). It is all zeros if
    the brokers do not support topic ids.
    """

    topic: str
    partition: int
    start: int
    end: int
    topic_id: Uuid = ZERO_UUID

    @property
    def size(self) -> int:
        """The number of offsets; compaction and control batches may leave fewer records."""
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
    """Returns the non-empty offset range of each partition, ordered by topic and partition.

    Raises:
        DataLossError: with `fail_on_data_loss`, a range exceeds the log. Without it, the range is
        clipped to the log.
        ConfigurationError: a start is after its end.
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
                    f"{topic}-{partition}: offsets {start} up to {end} were requested, the log "
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
    """Splits ranges into at least `min_partitions` pieces of at most `max_records` offsets.

    Always splits the range with the largest pieces next, but never below one offset. The pieces of
    a range differ by at most one offset.
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
    """Groups consecutive ranges up to `most` offsets; a larger range is alone in its group."""
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
