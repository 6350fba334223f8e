"""Plans the next increment of a job: its offset ranges, new partitions, data loss and size limit.

Works on plain data: sends no request, and imports no Spark.
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

#: By partition: the offset at which the next increment starts, and the topic id.
Positions: TypeAlias = "Mapping[TopicPartition, tuple[int, Uuid]]"


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """The offset ranges of an increment, and a description of each data loss.

    `ranges` is sorted, and has one range for each partition; the range is empty if no offset is to
    be read.
    """

    ranges: tuple[OffsetRange, ...]
    losses: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Returns the number of offsets to read; compaction may leave fewer records."""
        return sum(each.size for each in self.ranges)

    def ends(self) -> dict[TopicPartition, tuple[int, Uuid]]:
        """Returns the next offset and the topic id of each partition, after this increment."""
        return {(each.topic, each.partition): (each.end, each.topic_id) for each in self.ranges}


def plan_next(
    log_offsets: LogOffsets,
    positions: Positions,
    starts: Mapping[TopicPartition, int] | None = None,
) -> ReadPlan:
    """Plans ranges from the positions of the job up to the latest offsets.

    `starts` are the starting offsets of the first run. A partition that is neither in `positions`
    nor in `starts` is new: it is read from its earliest offset, and no data loss is reported.

    The plan reports data loss in these cases. If a topic was recreated, or a position is before the
    earliest or after the latest offset, the partition is read from its earliest offset. A start
    before the earliest offset becomes the earliest offset. A start after the latest offset becomes
    the latest offset. If a partition or its topic is missing, its position is kept and nothing is
    read, because brokers that have just started may not know the topic yet.
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
    """Returns a plan of about `most` offsets, divided in proportion to the sizes of the ranges.

    Each partition with offsets to read gets at least one offset, so that no partition starves. The
    result may therefore exceed `most`, at most by the number of partitions. Returns `plan` itself
    if `most` is None or the plan is small enough.
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
    """Returns the ranges of `plan` that remain after the ranges of `done`.

    Both plans must have the same partitions, in the same order. Leaves out the data losses that
    `plan` reports.
    """
    ranges = [
        OffsetRange(each.topic, each.partition, read.end, each.end, each.topic_id)
        for each, read in zip(plan.ranges, done.ranges, strict=True)
    ]
    return ReadPlan(tuple(ranges))
