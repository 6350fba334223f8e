"""What filters of a query say of the ranges to read: partitions, offsets, and since when.

Owns what follows from a filter for offsets. Whatever is left out here has no row that the filter
takes; Spark applies the filter to the rest again. Plain data: knows no class of Spark's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kproto.client import TopicPartition

__all__ = ["ALL", "Predicate", "RangeFilter", "range_filter_of"]


#: A column, how it is compared, and with what: `=`, `>`, `>=`, `<`, `<=` or `in`.
Predicate = tuple[str, str, object]


@dataclass(frozen=True, slots=True)
class RangeFilter:
    """Which partitions, which offsets of each, and records of which time (ms) or later."""

    partitions: frozenset[int] | None = None
    first: int = 0
    end: int | None = None
    since_ms: int | None = None

    def takes(self, part: TopicPartition) -> bool:
        """Whether anything of a partition can be wanted."""
        return self.partitions is None or part[1] in self.partitions

    def cut(
        self, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """Ranges from starts to ends without the offsets that are not wanted."""
        new_starts, new_ends = {}, {}
        for part, start in starts.items():
            if self.takes(part):
                end = ends[part] if self.end is None else min(ends[part], max(self.end, start))
                new_ends[part] = end
                new_starts[part] = min(max(start, self.first), max(start, end))
        return new_starts, new_ends


ALL: Final = RangeFilter()


def range_filter_of(conditions: Iterable[Predicate]) -> RangeFilter:
    """What all conditions together leave; one that says nothing of ranges is passed over."""
    found = ALL
    for column, operator, value in conditions:
        narrow = _RULES.get(column)
        if narrow is not None:
            found = narrow(found, operator, value)
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _by_partition(found: RangeFilter, operator: str, value: object) -> RangeFilter:
    wanted: frozenset[int]
    if operator == "=" and isinstance(value, int):
        wanted = frozenset({value})
    elif operator == "in" and isinstance(value, list | tuple):
        wanted = frozenset(each for each in value if isinstance(each, int))
    else:
        return found
    return replace(
        found, partitions=wanted if found.partitions is None else found.partitions & wanted
    )


def _by_offset(found: RangeFilter, operator: str, value: object) -> RangeFilter:
    if operator == "in" and isinstance(value, list | tuple) and all(map(_is_number, value)):
        lowest, highest = min(value, default=0), max(value, default=-1)
    elif isinstance(value, int) and operator != "in":
        lowest = {"=": value, ">": value + 1, ">=": value}.get(operator, 0)
        highest = {"=": value, "<": value - 1, "<=": value}.get(operator, math.inf)
    else:
        return found
    end = found.end
    if highest != math.inf:
        last = max(0, int(highest) + 1)
        end = last if end is None else min(end, last)
    return replace(found, first=max(found.first, lowest), end=end)


def _by_time(found: RangeFilter, operator: str, value: object) -> RangeFilter:
    """Records before the first of a time are older; behind it any may stand."""
    if operator not in ("=", ">", ">=") or not isinstance(value, datetime) or value.tzinfo is None:
        return found
    since = math.floor(value.timestamp() * 1000)
    if since < 0:
        return found  # records without a time have -1, and brokers find none of these by time
    return replace(found, since_ms=max(since, found.since_ms or 0))


_RULES: Final[Mapping[str, Callable[[RangeFilter, str, object], RangeFilter]]] = {
    "partition": _by_partition,
    "offset": _by_offset,
    "timestamp": _by_time,
}
