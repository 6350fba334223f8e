"""Where a job stands in its topics, and what it reads next.

Owns the decisions between two increments: what goes on where, what is new, what was lost, how much
is read at once. Plain data; asks nobody, and knows neither Spark nor files.
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

__all__ = ["Positions", "ReadPlan", "limit_plan", "plan_next", "rest"]

#: Where the next increment begins, by partition, and of which topic of that name.
Positions: TypeAlias = "Mapping[TopicPartition, tuple[int, Uuid]]"


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """One range for each partition, in order, also where it is empty; what was lost, in words."""

    ranges: tuple[OffsetRange, ...]
    losses: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many offsets; there may be fewer records."""
        return sum(each.size for each in self.ranges)

    def ends(self) -> dict[TopicPartition, tuple[int, Uuid]]:
        """Where the job stands when this is done."""
        return {(each.topic, each.partition): (each.end, each.topic_id) for each in self.ranges}


def plan_next(
    now: LogOffsets, stands: Positions, starts: Mapping[TopicPartition, int] | None = None
) -> ReadPlan:
    """Everything from where the job stands up to the end of the logs.

    `starts` are the offsets at which a first run begins. A partition that is in neither is new, and
    read from its first offset. Lost is what stood between the job and the first offset of a log,
    and all that was not read of a topic that is deleted or was made anew; the plan goes on with
    what there is. Of what is gone the place is kept: brokers that have just started may not know a
    topic for a moment.
    """
    ranges, losses = [], []
    for part in sorted(now.topic_ids):
        topic, partition = part
        first, last, topic_id = now.earliest[part], now.latest[part], now.topic_ids[part]
        place = f"{topic}-{partition}"
        if part in stands:
            start, known = stands[part]
            if ZERO_UUID not in (known, topic_id) and known != topic_id:
                losses.append(
                    f"{place}: the topic was made anew; read up to {start} of the old one"
                )
                start = first
            elif start > last:
                losses.append(f"{place}: read up to {start}, but the log ends at {last}")
                start = first
        else:
            start = (starts or {}).get(part, first)
            if start > last:
                losses.append(f"{place}: was to begin at {start}, but the log ends at {last}")
                start = last
        if start < first:
            losses.append(f"{place}: offsets {start} up to {first} are no longer in the log")
            start = first
        ranges.append(OffsetRange(topic, partition, start, last, topic_id))
    for topic, partition in sorted(set(stands) - set(now.topic_ids)):
        start, known = stands[topic, partition]
        losses.append(f"{topic}-{partition}: read up to {start}, but it is there no more")
        ranges.append(OffsetRange(topic, partition, start, start, known))
    return ReadPlan(tuple(sorted(ranges)), tuple(losses))


def limit_plan(plan: ReadPlan, most: int | None) -> ReadPlan:
    """The beginning of a plan: at most `most` offsets, shared out by what each partition has.

    Every partition that has something gives at least one, so that none waits for ever; by that,
    a piece may have as many more as there are partitions.
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


def rest(plan: ReadPlan, done: ReadPlan) -> ReadPlan:
    """What is left of a plan when its beginning is done."""
    ranges = [
        OffsetRange(each.topic, each.partition, read.end, each.end, each.topic_id)
        for each, read in zip(plan.ranges, done.ranges, strict=True)
    ]
    return ReadPlan(tuple(ranges))
