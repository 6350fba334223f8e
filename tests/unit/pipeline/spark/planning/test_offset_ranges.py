"""Tests how offset ranges are resolved, planned, clipped and split."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kproto_pipeline.spark.options.offset_spec import EARLIEST, LATEST
from kproto_pipeline.spark.planning.offset_ranges import (
    DataLossError,
    OffsetRange,
    plan_ranges,
    resolve_offsets,
    split_ranges,
)

from kproto.wire.errors import ConfigurationError

LOG_START = {("a", 0): 10, ("a", 1): 0, ("b", 0): 0}
LOG_END = {("a", 0): 30, ("a", 1): 0, ("b", 0): 5}


def test_sentinels_are_resolved_to_log_offsets() -> None:
    parts = list(LOG_END)
    assert resolve_offsets("endingOffsets", LATEST, parts, LOG_START, LOG_END) == LOG_END
    spec = {("a", 0): 12, ("a", 1): EARLIEST, ("b", 0): LATEST}
    assert resolve_offsets("endingOffsets", spec, parts, LOG_START, LOG_END) == {
        ("a", 0): 12,
        ("a", 1): 0,
        ("b", 0): 5,
    }


def test_offsets_for_other_partitions_are_an_error() -> None:
    with pytest.raises(ConfigurationError, match="missing a-1, b-0; not read c-7"):
        resolve_offsets(
            "startingOffsets", {("a", 0): 1, ("c", 7): 1}, list(LOG_END), LOG_START, LOG_END
        )


def test_partitions_without_records_get_no_range() -> None:
    assert plan_ranges(LOG_START, LOG_END, LOG_START, LOG_END, fail_on_data_loss=True) == [
        OffsetRange("a", 0, 10, 30),
        OffsetRange("b", 0, 0, 5),
    ]


def test_offsets_beyond_the_log_fail_or_are_clipped() -> None:
    starts, ends = {("a", 0): 3}, {("a", 0): 99}
    with pytest.raises(DataLossError, match=r"offsets 3 up to 99 .* holds 10 up to 30"):
        plan_ranges(starts, ends, LOG_START, LOG_END, fail_on_data_loss=True)
    assert plan_ranges(starts, ends, LOG_START, LOG_END, fail_on_data_loss=False) == [
        OffsetRange("a", 0, 10, 30)
    ]


def test_start_after_its_end_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match=r"starting offset 20 lies after .* 15"):
        plan_ranges({("a", 0): 20}, {("a", 0): 15}, LOG_START, LOG_END, fail_on_data_loss=True)


sizes = st.lists(st.integers(1, 10_000), min_size=1, max_size=6)


@given(sizes, st.none() | st.integers(1, 50), st.none() | st.integers(1, 5_000))
def test_split_ranges_cover_their_ranges(
    lengths: list[int], min_partitions: int | None, max_records: int | None
) -> None:
    ranges = [OffsetRange("t", n, 7, 7 + length) for n, length in enumerate(lengths)]
    pieces = split_ranges(ranges, min_partitions=min_partitions, max_records=max_records)
    for whole in ranges:
        of_it = [piece for piece in pieces if piece.partition == whole.partition]
        assert (of_it[0].start, of_it[-1].end) == (whole.start, whole.end)
        assert all(one.end == two.start for one, two in pairwise(of_it))
        assert max(p.size for p in of_it) - min(p.size for p in of_it) <= 1
    assert all(piece.size >= 1 for piece in pieces)
    assert len(pieces) >= min(min_partitions or 0, sum(lengths))
    if max_records is None:
        assert len(pieces) == max(len(ranges), min(min_partitions or 0, sum(lengths)))
    else:
        assert all(piece.size <= max_records for piece in pieces)


def test_largest_range_is_split_first() -> None:
    ranges = [OffsetRange("t", 0, 0, 100), OffsetRange("t", 1, 0, 1000)]
    pieces = split_ranges(ranges, min_partitions=4)
    assert [piece.partition for piece in pieces] == [0, 1, 1, 1]
