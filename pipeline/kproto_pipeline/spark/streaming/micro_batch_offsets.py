"""Computes the offsets of a micro-batch: checkpoint JSON, rate limit, offset ranges, data loss.

Follows the rules of Spark's JVM connector, and uses the same checkpoints. Works on plain data:
sends no request, imports no Spark, reads no clock.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from kproto.wire.errors import ConfigurationError
from kproto.wire.uuid import ZERO_UUID

from ..planning.offset_ranges import OffsetRange

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from kproto.client import TopicPartition
    from kproto.wire.uuid import Uuid

    from ..planning.offset_ranges import LogOffsets

__all__ = [
    "BatchRanges",
    "Offsets",
    "available_now_ends",
    "batch_ranges",
    "batch_starts",
    "below_min_offsets",
    "from_json",
    "lagging_partitions",
    "rate_limited",
    "recreated_partitions",
    "restart_offsets",
    "to_json",
    "truncation_losses",
]

Offsets: TypeAlias = "Mapping[TopicPartition, int]"


def to_json(offsets: Offsets) -> dict[str, dict[str, int]]:
    """Returns offsets as checkpoint JSON; sorted, because Spark compares the text."""
    found: dict[str, dict[str, int]] = {}
    for topic, partition in sorted(offsets):
        found.setdefault(topic, {})[str(partition)] = offsets[topic, partition]
    return found


def from_json(stored: Any) -> dict[TopicPartition, int]:
    """Parses the offsets of a checkpoint, written by this source or by the JVM connector.

    Raises:
        ConfigurationError: the checkpoint belongs to another data source.
    """
    found: dict[TopicPartition, int] = {}
    topics = stored.items() if isinstance(stored, dict) else ()
    try:
        for topic, partitions in topics:
            for partition, offset in partitions.items():
                found[topic, int(partition)] = int(offset)
    except (AttributeError, TypeError, ValueError):
        found.clear()
    if not found and stored != {}:
        raise ConfigurationError(
            f"the checkpoint has {str(stored)[:200]!r}, which are no offsets of partitions: it "
            "belongs to another source; take another checkpointLocation"
        )
    return found


def rate_limited(starts: Offsets, ends: Offsets, most: int) -> dict[TopicPartition, int]:
    """Returns the end offset of each partition in a micro-batch of about `most` offsets.

    `most` is divided in proportion to the lag of the partitions. A partition with offsets to read
    gets at least one offset in each micro-batch. The micro-batch may therefore exceed `most`, at
    most by the number of partitions.
    """
    sizes = {part: end - starts[part] for part, end in ends.items() if end > starts[part]}
    total = sum(sizes.values())
    found = dict(ends)
    for part, size in sizes.items():
        share = most * (size / total)
        share_size = math.ceil(share) if share < 1 else math.floor(share)
        found[part] = min(ends[part], starts[part] + share_size)
    return found


def below_min_offsets(starts: Offsets, ends: Offsets, least: int) -> bool:
    """Returns True if all partitions together have fewer than `least` offsets to read."""
    return sum(max(0, end - starts[part]) for part, end in ends.items()) < least


def batch_starts(
    starts: Offsets, ends: Offsets, earliest: Offsets, recreated: Collection[TopicPartition]
) -> dict[TopicPartition, int]:
    """Returns the start of each partition in `ends`: usually the stream's offset in `starts`.

    A partition that is new or in `recreated` (its topic was deleted and created again) starts at
    the earliest offset of its log.
    """
    return {
        part: earliest.get(part, 0) if part in recreated or part not in starts else starts[part]
        for part in ends
    }


def truncation_losses(
    until: Offsets, latest: Offsets, recreated: Collection[TopicPartition]
) -> list[str]:
    """Describes the data loss of each log whose latest offset is now below its end in `until`.

    Leaves out partitions of recreated topics.
    """
    return [
        f"{topic}-{number}: offsets {latest[topic, number]} to {end - 1} are gone"
        for (topic, number), end in sorted(until.items())
        if latest.get((topic, number), end) < end and (topic, number) not in recreated
    ]


def available_now_ends(
    until: Offsets, latest: Offsets, starts: Offsets, recreated: Collection[TopicPartition]
) -> dict[TopicPartition, int]:
    """Returns the end offsets of an AvailableNow run, adjusted to the present logs.

    `until` has the ends of the run so far; at first, these are the latest offsets at its start.
    `latest` has the present latest offsets, `starts` the offsets that the stream has reached.

    A partition in `until` ends at its offset in `until`, or at its latest offset if the log is
    shorter now. The end is never before the stream's offset in `starts`, with one exception: if the
    log ended before the stream's offset when the run started, and still ends before that offset,
    the partition also ends before that offset, so that the micro-batch reports the loss.

    A partition of a recreated topic ends at its latest offset. A partition that appeared after the
    run started ends at its offset in `starts`; if `starts` lacks the partition, it is left out. A
    deleted partition is left out, so that its loss is reported only once.
    """
    found = {}
    for part, end in latest.items():
        if part in recreated:
            found[part] = end
        elif part in until:
            offsets = starts.get(part, 0)
            went_back = max(until[part], end) < offsets
            found[part] = (
                min(until[part], end) if went_back else max(min(until[part], end), offsets)
            )
        elif part in starts:
            found[part] = starts[part]
    return found


def lagging_partitions(offsets: Offsets, latest: Offsets) -> list[TopicPartition]:
    """Returns the partitions that do not exist, or whose log ends before the stream's offset."""
    return sorted(part for part, offset in offsets.items() if latest.get(part, -1) < offset)


def recreated_partitions(
    known: Mapping[TopicPartition, Uuid], now: Mapping[TopicPartition, Uuid]
) -> list[TopicPartition]:
    """Returns the partitions whose topic was recreated: the topic ids in `known` and `now` differ.

    Leaves out a partition if one of the two ids is missing or all zeros.
    """
    return sorted(
        part
        for part, topic_id in now.items()
        if topic_id != ZERO_UUID and known.get(part, ZERO_UUID) not in (ZERO_UUID, topic_id)
    )


def restart_offsets(
    position: Offsets, earliest: Offsets, recreated: Collection[TopicPartition]
) -> dict[TopicPartition, int]:
    """Returns the earliest offset of each `recreated` partition whose position in the stream is
    another offset.

    A micro-batch with these ends reads nothing of the partitions, but the checkpoint then has the
    start of the new log. A micro-batch up to the latest offset could equal the stream's position,
    and Spark would skip it; and its replay after a restart would begin at the position, because a
    checkpoint has no topic ids.
    """
    return {
        part: earliest[part]
        for part in recreated
        if part in earliest and position.get(part, earliest[part]) != earliest[part]
    }


@dataclass(frozen=True, slots=True)
class BatchRanges:
    """The offset ranges of a micro-batch, and a description of each data loss."""

    ranges: list[OffsetRange]
    losses: list[str]


def batch_ranges(
    starts: Offsets, ends: Offsets, now: LogOffsets, *, recreated: Collection[TopicPartition] = ()
) -> BatchRanges:
    """Returns the sorted non-empty offset ranges of a micro-batch, and its data loss.

    A partition without a start is new, and is read from its earliest offset. A `recreated`
    partition is also read from its earliest offset, because its start is an offset of the deleted
    topic. A range is clipped to the log; offsets that the log lacks are data loss.
    """
    ranges: list[OffsetRange] = []
    losses: list[str] = []
    missing = sorted(part for part in starts if part not in ends)
    if missing:
        losses.append(f"{_names(missing)}: the topic or partition is gone")
    for part in sorted(ends):
        name = f"{part[0]}-{part[1]}"
        if part not in now.topic_ids:
            losses.append(f"{name}: the topic or partition is gone")
            continue
        first, last, end = now.earliest[part], now.latest[part], ends[part]
        start = first if part in recreated else starts.get(part)
        if start is None:
            start = first
            if first > 0:
                losses.append(f"{name} is new, and its log begins at {first}, not at 0")
        if end < start:
            losses.append(f"{name}: the log was truncated from {start} to {end}")
            continue
        if start < first:
            losses.append(f"{name}: the log now begins at {first}, after the start {start}")
        if end > last:
            losses.append(f"{name}: the log now ends at {last}, before the end {end}")
        start, end = max(start, first), min(end, last)
        if start < end:
            ranges.append(OffsetRange(*part, start, end, now.topic_ids[part]))
    return BatchRanges(ranges, losses)


def _names(parts: Collection[TopicPartition]) -> str:
    return ", ".join(f"{topic}-{partition}" for topic, partition in parts)
