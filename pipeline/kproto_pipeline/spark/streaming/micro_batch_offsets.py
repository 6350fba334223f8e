"""Offsets of a stream: as text in the checkpoint, limited for a batch, and as ranges to read.

Owns the arithmetic of a micro-batch, which is that of the JVM connector. Decisions on plain data:
asks nobody, and knows neither Spark nor time.
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
    "limited",
    "recreated_partitions",
    "to_json",
    "truncation_losses",
]

Offsets: TypeAlias = "Mapping[TopicPartition, int]"


def to_json(offsets: Offsets) -> dict[str, dict[str, int]]:
    """Offsets as they stand in a checkpoint, in order: Spark compares them as text."""
    found: dict[str, dict[str, int]] = {}
    for topic, partition in sorted(offsets):
        found.setdefault(topic, {})[str(partition)] = offsets[topic, partition]
    return found


def from_json(stored: Any) -> dict[TopicPartition, int]:
    """Offsets out of a checkpoint, ours or the JVM connector's.

    Raises:
        ConfigurationError: it is of another source.
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
            f"the checkpoint holds {str(stored)[:200]!r}, which is no offset of topics: it belongs "
            "to another source; take another checkpointLocation"
        )
    return found


def limited(starts: Offsets, ends: Offsets, most: int) -> dict[TopicPartition, int]:
    """Ends of a batch of about `most` offsets, each partition's share in proportion to its rest.

    A partition with something to read gets one offset at least, so that none starves; the batch
    may pass `most` by that.
    """
    sizes = {part: end - starts[part] for part, end in ends.items() if end > starts[part]}
    total = sum(sizes.values())
    found = dict(ends)
    for part, size in sizes.items():
        share = most * (size / total)
        wanted = math.ceil(share) if share < 1 else math.floor(share)
        found[part] = min(ends[part], starts[part] + wanted)
    return found


def below_min_offsets(starts: Offsets, ends: Offsets, least: int) -> bool:
    """Whether fewer than `least` offsets lie between them."""
    return sum(max(0, end - starts[part]) for part, end in ends.items()) < least


def batch_starts(
    starts: Offsets, ends: Offsets, earliest: Offsets, recreated: Collection[TopicPartition]
) -> dict[TopicPartition, int]:
    """Where each partition of a batch begins: where the stream stands, or its first offset.

    That is for a new one, and for one of `recreated`, whose topic was made anew.
    """
    return {
        part: earliest.get(part, 0) if part in recreated or part not in starts else starts[part]
        for part in ends
    }


def truncation_losses(
    until: Offsets, latest: Offsets, recreated: Collection[TopicPartition]
) -> list[str]:
    """What is lost of a run that is bounded by `until`: logs that end before it by now."""
    return [
        f"{topic}-{number}: offsets {latest[topic, number]} to {end - 1} are gone"
        for (topic, number), end in sorted(until.items())
        if latest.get((topic, number), end) < end and (topic, number) not in recreated
    ]


def available_now_ends(
    until: Offsets, latest: Offsets, starts: Offsets, recreated: Collection[TopicPartition]
) -> dict[TopicPartition, int]:
    """Where a run ends that is bounded by `until`, as the logs are now.

    A partition that is gone is left out, so that this is told once. Of a topic that was made anew
    all is read that is there. One that was not seen when the run began stays where it stands. A log
    that ended before where the stream stands when the run began, and still does, goes back: that is
    a loss, which the batch tells.
    """
    found = {}
    for part, end in latest.items():
        if part in recreated:
            found[part] = end
        elif part in until:
            stands = starts.get(part, 0)
            went_back = max(until[part], end) < stands
            found[part] = min(until[part], end) if went_back else max(min(until[part], end), stands)
        elif part in starts:
            found[part] = starts[part]
    return found


def lagging_partitions(stands: Offsets, latest: Offsets) -> list[TopicPartition]:
    """The partitions that are gone, or whose log ends before where the stream stands."""
    return sorted(part for part, offset in stands.items() if latest.get(part, -1) < offset)


def recreated_partitions(
    known: Mapping[TopicPartition, Uuid], now: Mapping[TopicPartition, Uuid]
) -> list[TopicPartition]:
    """The partitions whose topic is another one of the same name than was known."""
    return sorted(
        part
        for part, topic_id in now.items()
        if topic_id != ZERO_UUID and known.get(part, ZERO_UUID) not in (ZERO_UUID, topic_id)
    )


@dataclass(frozen=True, slots=True)
class BatchRanges:
    """What a micro-batch reads, and what it cannot read any more, in words."""

    ranges: list[OffsetRange]
    losses: list[str]


def batch_ranges(
    starts: Offsets, ends: Offsets, now: LogOffsets, *, recreated: Collection[TopicPartition] = ()
) -> BatchRanges:
    """One range for each partition that has something to read, in order.

    A partition without a start is new, and read from its first offset. One of `recreated` is of a
    topic that was made anew: its start counts offsets of the old one. What the log has no longer,
    or does not have, is told and cut away.
    """
    ranges: list[OffsetRange] = []
    losses: list[str] = []
    gone = sorted(part for part in starts if part not in ends)
    if gone:
        losses.append(f"{_names(gone)}: the topic or partition is gone")
    for part in sorted(ends):
        place = f"{part[0]}-{part[1]}"
        if part not in now.topic_ids:
            losses.append(f"{place}: the topic or partition is gone")
            continue
        first, last, end = now.earliest[part], now.latest[part], ends[part]
        start = first if part in recreated else starts.get(part)
        if start is None:
            start = first
            if first > 0:
                losses.append(f"{place} is new, and its log begins at {first}, not at 0")
        if end < start:
            losses.append(f"{place}: the log went back from {start} to {end}")
            continue
        if start < first:
            losses.append(f"{place}: the log begins at {first} now, and {start} was to be read")
        if end > last:
            losses.append(f"{place}: the log ends at {last} now, and {end} was to be read")
        start, end = max(start, first), min(end, last)
        if start < end:
            ranges.append(OffsetRange(*part, start, end, now.topic_ids[part]))
    return BatchRanges(ranges, losses)


def _names(parts: Collection[TopicPartition]) -> str:
    return ", ".join(f"{topic}-{partition}" for topic, partition in parts)
