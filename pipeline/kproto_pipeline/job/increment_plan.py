"""Plans the next increment of a job: its offset ranges, new partitions, data loss, its size.

Works on plain data: sends no request, and knows neither Spark nor files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from kproto.wire.uuid import ZERO_UUID

from ..spark.planning.offset_ranges import OffsetRange

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kproto.client import TopicPartition
    from kproto.wire.uuid import Uuid

    from ..spark.planning.offset_ranges import LogOffsets

__all__ = ["Positions", "ReadPlan", "limit_plan", "plan_next", "remaining_plan"]

#: Partition -> the offset at which the next increment starts, and the topic id.
Positions: TypeAlias = "Mapping[TopicPartition, tuple[int, Uuid]]"


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """A range for each partition, in order, empty ones too; and a description of each loss."""

    ranges: tuple[OffsetRange, ...]
    losses: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """The number of offsets; there may be fewer records."""
        return sum(each.size for each in self.ranges)

    def ends(self) -> dict[TopicPartition, tuple[int, Uuid]]:
        """Returns the positions of the job after this plan."""
        return {(each.topic, each.partition): (each.end, each.topic_id) for each in self.ranges}


def plan_next(
    log_offsets: LogOffsets,
    positions: Positions,
    starts: Mapping[TopicPartition, int] | None = None,
) -> ReadPlan:
    """Plans the ranges from the positions of the job up to the latest offsets.

    `starts` are the offsets at which a first run starts. A partition in neither is new, and read
    from its earliest offset. Offsets between a position and the earliest offset are lost, and so
    are the unread ones of a deleted or recreated topic; the plan continues with what exists. The
    position of a missing partition is kept, because brokers that have just started may not know a
    topic for a moment.
    """
    ranges, losses = [], []
    for part in sorted(log_offsets.topic_ids):
        topic, partition = part
        first, last, topic_id = (
            log_offsets.earliest[part],
            log_offsets.latest[part],
            log_offsets.topic_ids[part],
        )
        partition_name = f"{topic}-{partition}"
        if part in positions:
            start, known = positions[part]
            if ZERO_UUID not in (known, topic_id) and known != topic_id:
                losses.append(
                    f"{partition_name}: the topic was recreated; read up to {start} of the old one"
                )
                start = first
            elif start > last:
                losses.append(f"{partition_name}: read up to {start}, but the log ends at {last}")
                start = first
        else:
            start = (starts or {}).get(part, first)
            if start > last:
                losses.append(
                    f"{partition_name}: was to begin at {start}, but the log ends at {last}"
                )
                start = last
        if start < first:
            losses.append(
                f"{partition_name}: offsets {start} up to {first} are no longer in the log"
            )
            start = first
        ranges.append(OffsetRange(topic, partition, start, last, topic_id))
    for topic, partition in sorted(set(positions) - set(log_offsets.topic_ids)):
        start, known = positions[topic, partition]
        losses.append(
            f"{topic}-{partition}: read up to {start}, but the topic or partition is gone"
        )
        ranges.append(OffsetRange(topic, partition, start, start, known))
    return ReadPlan(tuple(sorted(ranges)), tuple(losses))


def limit_plan(plan: ReadPlan, most: int | None) -> ReadPlan:
    """Returns a plan of at most `most` offsets, in proportion to the size of each partition.

    Each partition with offsets gets at least one, so that none starves; the plan may exceed `most`
    by the number of partitions.
    """
    total = plan.size
    if most is None or total <= most:
        return plan
    shares: Sequence[int] = [
        max(1, each.size * most // total) if each.size else 0 for each in plan.ranges
    ]
    return ReadPlan(
        tuple(
            OffsetRange(each.topic, each.partition, each.start, each.start + share, each.topic_id)
            for each, share in zip(plan.ranges, shares, strict=True)
        ),
        plan.losses,
    )


def remaining_plan(plan: ReadPlan, done: ReadPlan) -> ReadPlan:
    """Returns what remains of a plan after `done`, a plan of the same partitions."""
    ranges = [
        OffsetRange(each.topic, each.partition, read.end, each.end, each.topic_id)
        for each, read in zip(plan.ranges, done.ranges, strict=True)
    ]
    return ReadPlan(tuple(ranges))
