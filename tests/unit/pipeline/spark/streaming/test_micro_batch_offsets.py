"""Tests the offsets of micro-batches: checkpoints, rate limits, ranges and data loss."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kproto_pipeline.spark.planning.offset_ranges import LogOffsets, OffsetRange
from kproto_pipeline.spark.streaming.micro_batch_offsets import (
    batch_ranges,
    batch_starts,
    below_min_offsets,
    from_json,
    lagging_partitions,
    rate_limited,
    recreated_partitions,
    to_json,
)

from kproto.wire.errors import ConfigurationError
from kproto.wire.uuid import ZERO_UUID, Uuid

A, B, C = ("t", 0), ("t", 1), ("u", 10)
PARTS = st.sampled_from([("t", 0), ("t", 2), ("t", 10), ("u", 0)])
OFFSETS = st.dictionaries(PARTS, st.integers(0, 2**62), min_size=1)


@given(OFFSETS)
def test_checkpoint_json_is_sorted(offsets: dict[tuple[str, int], int]) -> None:
    stored = to_json(offsets)
    assert from_json(json.loads(json.dumps(stored))) == offsets
    again = dict(sorted(offsets.items(), reverse=True))
    assert json.dumps(to_json(again)) == json.dumps(stored)
    assert [(t, int(p)) for t, each in stored.items() for p in each] == sorted(offsets)


@pytest.mark.parametrize("stored", [[1], {"t": 5}, {"t": {"x": 1}}, {"t": {"0": None}}, "a", 7])
def test_checkpoint_of_another_source_is_an_error(stored: Any) -> None:
    with pytest.raises(ConfigurationError, match="belongs to another source"):
        from_json(stored)
    assert from_json({}) == {}


@given(
    st.dictionaries(PARTS, st.tuples(st.integers(0, 1_000), st.integers(0, 1_000)), min_size=1),
    st.integers(1, 5_000),
)
def test_rate_limit_bounds_a_micro_batch(
    logs: dict[tuple[str, int], tuple[int, int]], most: int
) -> None:
    starts = {part: start for part, (start, _) in logs.items()}
    ends = {part: start + size for part, (start, size) in logs.items()}
    found = rate_limited(starts, ends, most)
    rests = {part: size for part, (_, size) in logs.items() if size}
    total = sum(found[part] - starts[part] for part in logs)
    assert total <= max(most, 0) + len(rests)
    for part, size in rests.items():
        assert starts[part] < found[part] <= ends[part], "none starves, none passes its end"
        assert found[part] - starts[part] <= max(1, most * size / sum(rests.values())) + 1
    if sum(rests.values()) <= most:
        assert found == ends


def test_rate_limit_shares_are_those_of_the_connector() -> None:
    assert rate_limited({A: 0, B: 0}, {A: 30, B: 10}, 20) == {A: 15, B: 5}
    assert rate_limited({A: 5, B: 0, C: 3}, {A: 6, B: 1_000, C: 3}, 10) == {A: 6, B: 9, C: 3}


def test_micro_batch_below_min_offsets_is_detected() -> None:
    assert below_min_offsets({A: 3}, {A: 5}, 3)
    assert not below_min_offsets({A: 3, B: 0}, {A: 5, B: 1}, 3)


def log(latest: dict[tuple[str, int], int], **earliest: int) -> LogOffsets:
    first = {part: earliest.get(f"{part[0]}{part[1]}", 0) for part in latest}
    return LogOffsets(dict.fromkeys(latest, ZERO_UUID), first, latest)


def test_ranges_of_a_micro_batch() -> None:
    found = batch_ranges({A: 3, B: 0}, {A: 9, B: 0, C: 4}, log({A: 12, B: 0, C: 4}))
    assert found.ranges == [OffsetRange(*A, 3, 9), OffsetRange(*C, 0, 4)]
    assert found.losses == []


@pytest.mark.parametrize(
    ("starts", "ends", "now", "ranges", "lost"),
    [
        ({A: 3, B: 0}, {A: 9}, log({A: 9}), [OffsetRange(*A, 3, 9)], "t-1: the topic or"),
        ({A: 3}, {A: 9}, log({}), [], "t-0: the topic or partition is gone"),
        (
            {A: 3},
            {A: 9},
            log({A: 9}, t0=5),
            [OffsetRange(*A, 5, 9)],
            "the log now begins at 5, after the start 3",
        ),
        (
            {A: 3},
            {A: 9},
            log({A: 7}),
            [OffsetRange(*A, 3, 7)],
            "the log now ends at 7, before the end 9",
        ),
        ({A: 9}, {A: 4}, log({A: 4}), [], "the log was truncated from 9 to 4"),
        ({}, {A: 9}, log({A: 9}, t0=5), [OffsetRange(*A, 5, 9)], "is new, and its log begins at 5"),
    ],
)
def test_losses_are_described(
    starts: dict[Any, int], ends: dict[Any, int], now: LogOffsets, ranges: list[Any], lost: str
) -> None:
    found = batch_ranges(starts, ends, now)
    assert found.ranges == ranges
    assert len(found.losses) == 1
    assert lost in found.losses[0]


def test_recreated_topic_starts_at_earliest() -> None:
    old, new = Uuid.random(), Uuid.random()
    assert recreated_partitions({A: old, B: old}, {A: new, B: old, C: new}) == [A]
    assert recreated_partitions({A: ZERO_UUID}, {A: new}) == []
    assert recreated_partitions({A: old}, {A: ZERO_UUID}) == []
    assert batch_starts({A: 50, B: 2}, {A: 6, B: 9, C: 4}, {A: 0, C: 1}, {A}) == {A: 0, B: 2, C: 1}
    found = batch_ranges({A: 50}, {A: 6}, log({A: 6}), recreated={A})
    assert found.ranges == [OffsetRange(*A, 0, 6)]
    assert found.losses == []


def test_missing_or_short_logs_are_lagging() -> None:
    assert lagging_partitions({A: 5, B: 1, C: 0}, {A: 4, B: 1}) == [A, C]
