"""Plans offset ranges: resolves requested offsets, checks them against the logs, and splits ranges.

This module works on plain data, without Spark or a client.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kproto.wire.errors import ConfigurationError, KprotoError
from kproto.wire.uuid import ZERO_UUID

from ..options.errors import OptionError
from ..options.offset_spec import EARLIEST, LATEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kproto.client import TopicPartition
    from kproto.wire.uuid import Uuid

    from ..options.offset_spec import OffsetSpec

__all__ = [
    "DataLossError",
    "LogOffsets",
    "OffsetRange",
    "check_partitions_named",
    "coalesce_ranges",
    "plan_ranges",
    "resolve_offsets",
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
        """Returns the number of offsets; compaction and control batches may leave fewer records."""
        return self.end - self.start

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} [{self.start}, {self.end})"


def resolve_offsets(
    option: str,
    spec: OffsetSpec,
    partitions: Iterable[TopicPartition],
    earliest: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """Returns the offset of each partition of a read; resolves "earliest" and "latest" to offsets.

    In `spec`, -2 means the earliest offset of a partition, and -1 means the latest offset.

    Raises:
        OptionError: the spec does not name exactly the partitions that are read.
    """
    if isinstance(spec, Mapping):
        check_partitions_named(option, spec, partitions)
        offsets = dict(spec)
    else:
        offsets = dict.fromkeys(partitions, spec)
    known = {EARLIEST: earliest, LATEST: latest}
    return {
        part: known[offset][part] if offset in known else offset for part, offset in offsets.items()
    }


def check_partitions_named(
    option: str, named: Iterable[TopicPartition], read: Iterable[TopicPartition]
) -> None:
    """Raises OptionError if the option does not name exactly the partitions that are read.

    `named` has the partitions that the option names, `read` has the partitions that are read.
    """
    expected, given = set(read), set(named)
    missing, unknown = sorted(expected - given), sorted(given - expected)
    if missing or unknown:
        raise OptionError(
            f"{option} must name every partition that is read and no other: "
            f"{_listed('missing', missing)}{'; ' if missing and unknown else ''}"
            f"{_listed('not read', unknown)}"
        )


def _listed(what: str, partitions: Sequence[TopicPartition]) -> str:
    if not partitions:
        return ""
    names = ", ".join(f"{topic}-{partition}" for topic, partition in partitions[:10])
    return f"{what} {names}{' …' if len(partitions) > 10 else ''}"


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
        DataLossError: with `fail_on_data_loss`, a range exceeds the log. Without
        `fail_on_data_loss`, the range is clipped to the log.
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
    """Splits each range into parts whose sizes differ by at most one offset; returns all parts.

    If `max_records` is set, no part exceeds this number of offsets. If there are fewer than
    `min_partitions` parts, repeatedly splits the range with the largest parts into one more part. A
    part has at least one offset, so fewer offsets than `min_partitions` give fewer parts.
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
    """Groups consecutive ranges; a group has at most `most` offsets, or a single larger range."""
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
