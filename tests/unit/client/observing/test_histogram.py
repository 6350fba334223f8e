"""Tests the buckets of `Histogram`, and its result in Prometheus's format."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kproto.client.observing.histogram import BATCH_BYTES, BATCH_RECORDS, LATENCY_MS, Histogram


def test_bounds_are_part_of_their_bucket() -> None:
    histogram = Histogram((1, 10))
    for value in (0, 1, 1.5, 10, 11):
        histogram.add(value)
    assert histogram.as_dict() == {
        "count": 5,
        "sum": 23.5,
        "buckets": {"1": 2, "10": 4, "+Inf": 5},
    }


@given(st.lists(st.integers(0, 100_000)))
def test_buckets_count_what_is_at_most_their_bound(values: list[int]) -> None:
    histogram = Histogram(LATENCY_MS)
    for value in values:
        histogram.add(value)
    told = histogram.as_dict()
    for bound in LATENCY_MS:
        assert told["buckets"][str(bound)] == sum(value <= bound for value in values)
    assert told["buckets"]["+Inf"] == told["count"] == len(values)
    assert told["sum"] == sum(values)


def test_bounds_rise() -> None:
    for bounds in (LATENCY_MS, BATCH_RECORDS, BATCH_BYTES):
        assert list(bounds) == sorted(set(bounds))
