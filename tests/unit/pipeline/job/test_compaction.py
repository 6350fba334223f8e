"""Tests which increments are joined, and the manifest of joined increments."""

from __future__ import annotations

import pytest
from kproto_pipeline.job.compaction import group_increments, join_manifests
from kproto_pipeline.job.manifest import JobCounts, Manifest
from kproto_pipeline.spark.planning.offset_ranges import OffsetRange

from kproto.wire.uuid import Uuid

A, B = Uuid(b"a" * 16), Uuid(b"b" * 16)


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [
        ([], []),
        ([1], []),
        ([1, 1], [[1, 2]]),
        ([4, 6, 1, 9, 1], [[1, 2], [3, 4]]),
        ([11, 1, 11, 1, 1], [[4, 5]]),
        ([0, 0, 10, 0, 0], [[1, 2, 3, 4, 5]]),
    ],
)
def test_consecutive_small_increments_are_grouped(
    sizes: list[int], groups: list[list[int]]
) -> None:
    assert group_increments(dict(enumerate(sizes, 1)), 10) == groups


def test_joined_manifest_has_the_sums_and_all_offsets() -> None:
    first = Manifest(3, "r", (OffsetRange("t", 0, 5, 9, A),), JobCounts(4, 4, 0, 0, 4), (7, 20))
    second = Manifest(
        4,
        "s",
        (OffsetRange("t", 0, 0, 2, B), OffsetRange("t", 1, 0, 1, B)),
        JobCounts(3, 1, 1, 1, 2),
        (5, 9),
        ("recreated",),
    )
    joined = join_manifests([first, second])
    assert (joined.increment, joined.first_increment) == (4, 3)
    assert joined.counts == JobCounts(7, 5, 1, 1, 6)
    assert joined.timestamps == (5, 20)
    assert joined.ranges == second.ranges
    assert joined.losses == ("recreated",)
    assert Manifest.from_json(joined.to_json(), path="here") == joined
    third = Manifest(5, "t", (OffsetRange("t", 0, 2, 3, B),), JobCounts(1, 1, 0, 0, 1), None)
    again = join_manifests([joined, third])
    assert (again.first_increment, again.timestamps) == (3, None)
    assert again.ranges == (OffsetRange("t", 0, 0, 3, B),)
