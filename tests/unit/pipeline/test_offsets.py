"""Offset JSON, and ranges planned from offsets."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kproto_pipeline.offsets import (
    EARLIEST,
    LATEST,
    DataLossError,
    OffsetRange,
    concrete_offsets,
    parse_offset_spec,
    plan_ranges,
    split_ranges,
)

from kproto.wire.errors import ConfigurationError

LOG_START = {("a", 0): 10, ("a", 1): 0, ("b", 0): 0}
LOG_END = {("a", 0): 30, ("a", 1): 0, ("b", 0): 5}


def test_words_and_json_are_read() -> None:
    assert parse_offset_spec("startingOffsets", "Earliest", refused="latest") == EARLIEST
    assert parse_offset_spec("endingOffsets", "latest", refused="earliest") == LATEST
    text = '{"a": {"0": 23, "1": -2}, "b": {"0": 0}}'
    assert parse_offset_spec("startingOffsets", text, refused="latest") == {
        ("a", 0): 23,
        ("a", 1): EARLIEST,
        ("b", 0): 0,
    }


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("latest", "cannot be 'latest' in a batch read"),
        ("soonest", "must be 'earliest', 'latest' or JSON"),
        ("[1]", "must be 'earliest', 'latest' or JSON"),
        ("{", "must be 'earliest', 'latest' or JSON"),
        ("{}", "names no partition"),
        ('{"a": 3}', "topic 'a' needs its partitions"),
        ('{"a": {"x": 3}}', "'x' of topic 'a' is no partition number"),
        ('{"a": {"0": "3"}}', "a-0 has '3'"),
        ('{"a": {"0": true}}', "a-0 has True"),
        ('{"a": {"0": -3}}', "a-0 has -3"),
        ('{"a": {"0": -1}}', r"a-0 cannot be -1 \(latest\)"),
    ],
)
def test_a_wrong_offset_json_names_option_and_fault(text: str, what: str) -> None:
    with pytest.raises(ConfigurationError, match=what) as caught:
        parse_offset_spec("startingOffsets", text, refused="latest")
    assert str(caught.value).startswith("startingOffsets")


@given(
    st.dictionaries(
        st.text(min_size=1),
        st.dictionaries(st.integers(0, 99), st.integers(-2, 2**62), min_size=1),
        min_size=1,
    )
)
def test_offset_json_round_trips(offsets: dict[str, dict[int, int]]) -> None:
    usable = {
        t: {p: max(o, 0) if o == -1 else o for p, o in of.items()} for t, of in offsets.items()
    }
    parsed = parse_offset_spec("startingOffsets", json.dumps(usable), refused="latest")
    assert parsed == {(t, p): o for t, of in usable.items() for p, o in of.items()}


def test_sentinels_become_offsets_of_the_log() -> None:
    parts = list(LOG_END)
    assert concrete_offsets("endingOffsets", LATEST, parts, LOG_START, LOG_END) == LOG_END
    spec = {("a", 0): 12, ("a", 1): EARLIEST, ("b", 0): LATEST}
    assert concrete_offsets("endingOffsets", spec, parts, LOG_START, LOG_END) == {
        ("a", 0): 12,
        ("a", 1): 0,
        ("b", 0): 5,
    }


def test_offsets_must_name_exactly_what_is_read() -> None:
    with pytest.raises(ConfigurationError, match="missing a-1, b-0; not read c-7"):
        concrete_offsets(
            "startingOffsets", {("a", 0): 1, ("c", 7): 1}, list(LOG_END), LOG_START, LOG_END
        )


def test_partitions_without_records_get_no_range() -> None:
    assert plan_ranges(LOG_START, LOG_END, LOG_START, LOG_END, fail_on_data_loss=True) == [
        OffsetRange("a", 0, 10, 30),
        OffsetRange("b", 0, 0, 5),
    ]


def test_offsets_out_of_the_log_fail_or_are_cut() -> None:
    starts, ends = {("a", 0): 3}, {("a", 0): 99}
    with pytest.raises(DataLossError, match=r"offsets 3 up to 99 .* holds 10 up to 30"):
        plan_ranges(starts, ends, LOG_START, LOG_END, fail_on_data_loss=True)
    assert plan_ranges(starts, ends, LOG_START, LOG_END, fail_on_data_loss=False) == [
        OffsetRange("a", 0, 10, 30)
    ]


def test_a_start_behind_its_end_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match=r"starting offset 20 lies after .* 15"):
        plan_ranges({("a", 0): 20}, {("a", 0): 15}, LOG_START, LOG_END, fail_on_data_loss=True)


sizes = st.lists(st.integers(1, 10_000), min_size=1, max_size=6)


@given(sizes, st.none() | st.integers(1, 50), st.none() | st.integers(1, 5_000))
def test_pieces_cover_their_ranges(
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


def test_the_largest_range_is_cut_first() -> None:
    ranges = [OffsetRange("t", 0, 0, 100), OffsetRange("t", 1, 0, 1000)]
    pieces = split_ranges(ranges, min_partitions=4)
    assert [piece.partition for piece in pieces] == [0, 1, 1, 1]
