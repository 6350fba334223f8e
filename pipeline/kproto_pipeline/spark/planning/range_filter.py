"""Reduces offset ranges by the filters of a query: partitions, offsets, timestamps.

A reduced range excludes only rows that the filters reject. Spark applies the filters again to all
other rows. Works on plain data: imports no Spark.
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


#: A column, an operator (`=`, `>`, `>=`, `<`, `<=` or `in`) and the value to compare the column
#: with.
Predicate = tuple[str, str, object]


@dataclass(frozen=True, slots=True)
class RangeFilter:
    """The partitions, the offset range and the lowest timestamp (ms) that a query needs.

    None means no limit. `end` is exclusive.
    """

    partitions: frozenset[int] | None = None
    min_offset: int = 0
    end: int | None = None
    min_timestamp_ms: int | None = None

    def matches_partition(self, part: TopicPartition) -> bool:
        """Returns True if the query may need records of this partition."""
        return self.partitions is None or part[1] in self.partitions

    def clip(
        self, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """Returns starts and ends without the partitions and offsets that the query rejects."""
        new_starts, new_ends = {}, {}
        for part, start in starts.items():
            if self.matches_partition(part):
                end = ends[part] if self.end is None else min(ends[part], max(self.end, start))
                new_ends[part] = end
                new_starts[part] = min(max(start, self.min_offset), max(start, end))
        return new_starts, new_ends


ALL: Final = RangeFilter()


def range_filter_of(predicates: Iterable[Predicate]) -> RangeFilter:
    """Returns the filter for the predicates on `partition`, `offset` and `timestamp`.

    Ignores predicates on other columns.
    """
    found = ALL
    for column, operator, value in predicates:
        rule = _RULES.get(column)
        if rule is not None:
            found = rule(found, operator, value)
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _by_partition(found: RangeFilter, operator: str, value: object) -> RangeFilter:
    numbers: frozenset[int]
    if operator == "=" and isinstance(value, int):
        numbers = frozenset({value})
    elif operator == "in" and isinstance(value, list | tuple):
        numbers = frozenset(each for each in value if isinstance(each, int))
    else:
        return found
    return replace(
        found,
        partitions=numbers if found.partitions is None else found.partitions & numbers,
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
    return replace(found, min_offset=max(found.min_offset, lowest), end=end)


def _by_time(found: RangeFilter, operator: str, value: object) -> RangeFilter:
    """Returns the filter, narrowed to offsets from the first record at or after `value` on.

    `value` is a timestamp. Narrows the filter only for the operators `=`, `>` and `>=`; for any
    other operator, returns `found`.
    """
    if operator not in ("=", ">", ">=") or not isinstance(value, datetime) or value.tzinfo is None:
        return found
    since = math.floor(value.timestamp() * 1000)
    if since < 0:
        return found  # a record without a timestamp has -1, which ListOffsets does not find
    return replace(found, min_timestamp_ms=max(since, found.min_timestamp_ms or 0))


_RULES: Final[Mapping[str, Callable[[RangeFilter, str, object], RangeFilter]]] = {
    "partition": _by_partition,
    "offset": _by_offset,
    "timestamp": _by_time,
}
