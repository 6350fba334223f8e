"""Tests that a range filter skips no row that matches the predicates."""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kproto_pipeline.spark.planning.range_filter import ALL, Predicate, RangeFilter, range_filter_of

NUMBERS = st.integers(-3, 12)
COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "in": lambda one, others: one in others,
}
COLUMNS = st.sampled_from(["partition", "offset"])
CONDITIONS = st.lists(
    st.tuples(
        st.sampled_from(["partition", "offset"]),
        st.sampled_from(["=", ">", ">=", "<", "<="]),
        NUMBERS,
    )
    | st.tuples(st.sampled_from(["partition", "offset"]), st.just("in"), st.lists(NUMBERS)),
    max_size=4,
)


@given(CONDITIONS, st.integers(0, 9), st.integers(0, 9))
def test_range_filter_keeps_all_matching_rows(
    conditions: list[Predicate], start: int, size: int
) -> None:
    parts = {("t", number): start for number in range(3)}
    ends = dict.fromkeys(parts, start + size)
    starts, new_ends = range_filter_of(conditions).clip(parts, ends)
    for part in parts:
        for offset in range(start, start + size):
            row = {"partition": part[1], "offset": offset}
            wanted = all(COMPARED[how](row[what], value) for what, how, value in conditions)
            read = part in starts and starts[part] <= offset < new_ends[part]
            assert read or not wanted
    for part, begin in starts.items():
        assert start <= begin <= new_ends[part] <= start + size


@pytest.mark.parametrize(
    ("conditions", "found"),
    [
        ([("partition", "=", 2)], RangeFilter(partitions=frozenset({2}))),
        ([("partition", "in", (1, 2)), ("partition", "=", 1)], RangeFilter(frozenset({1}))),
        ([("offset", ">", 5), ("offset", "<=", 9)], RangeFilter(min_offset=6, end=10)),
        ([("offset", "in", [7, 3])], RangeFilter(min_offset=3, end=8)),
        ([("value", "=", b"x"), ("topic", "=", "t")], ALL),
        (
            [("timestamp", ">=", datetime(2023, 11, 14, 22, 13, 20, 999, tzinfo=UTC))],
            RangeFilter(min_timestamp_ms=1_700_000_000_000),
        ),
        ([("timestamp", "<", datetime(2023, 11, 14, tzinfo=UTC))], ALL),
        # A record without a timestamp has -1, which ListOffsets by timestamp never finds.
        ([("timestamp", ">=", datetime(1969, 12, 31, tzinfo=UTC))], ALL),
    ],
    ids=str,
)
def test_predicates_become_a_range_filter(conditions: list[Predicate], found: RangeFilter) -> None:
    assert range_filter_of(conditions) == found
