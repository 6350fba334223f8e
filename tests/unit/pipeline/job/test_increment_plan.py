"""Tests the plan of a job's increment: positions, new partitions, data loss and limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kproto_pipeline.job import OutputDamagedError
from kproto_pipeline.job.increment_plan import ReadPlan, limit_plan, plan_next, remaining_plan
from kproto_pipeline.job.manifest import JobCounts, Manifest, StoredPlan
from kproto_pipeline.spark.planning.offset_ranges import LogOffsets, OffsetRange

from kproto.wire.uuid import ZERO_UUID, Uuid

A, B = Uuid(b"a" * 16), Uuid(b"b" * 16)


def state(**logs: tuple[Uuid, int, int]) -> LogOffsets:
    """Returns log offsets; a keyword argument is topic_partition=(topic id, earliest, latest)."""
    parts = {(name[:-2], int(name[-1])): log for name, log in logs.items()}
    return LogOffsets(
        {part: log[0] for part, log in parts.items()},
        {part: log[1] for part, log in parts.items()},
        {part: log[2] for part, log in parts.items()},
    )


def spans(plan: ReadPlan) -> dict[str, tuple[int, int]]:
    return {f"{r.topic}_{r.partition}": (r.start, r.end) for r in plan.ranges}


CASES = {
    # log offsets, positions of the job, planned ranges, texts of the reported losses
    "first run": (state(t_0=(A, 3, 9)), {}, {"t_0": (3, 9)}, []),
    "on from there": (state(t_0=(A, 3, 9)), {("t", 0): (5, A)}, {"t_0": (5, 9)}, []),
    "nothing new": (state(t_0=(A, 3, 9)), {("t", 0): (9, A)}, {"t_0": (9, 9)}, []),
    "a new partition": (
        state(t_0=(A, 0, 9), t_1=(A, 0, 4)),
        {("t", 0): (9, A)},
        {"t_0": (9, 9), "t_1": (0, 4)},
        [],
    ),
    "a cut log": (state(t_0=(A, 7, 9)), {("t", 0): (5, A)}, {"t_0": (7, 9)}, ["5 up to 7 are no"]),
    "recreated": (state(t_0=(B, 0, 9)), {("t", 0): (5, A)}, {"t_0": (0, 9)}, ["recreated"]),
    "recreated, no id": (
        state(t_0=(ZERO_UUID, 0, 2)),
        {("t", 0): (5, ZERO_UUID)},
        {"t_0": (0, 2)},
        ["the log ends at 2"],
    ),
    "an id that is new": (state(t_0=(A, 0, 9)), {("t", 0): (5, ZERO_UUID)}, {"t_0": (5, 9)}, []),
    "deleted": (state(), {("t", 0): (5, A)}, {"t_0": (5, 5)}, ["is gone"]),
}


@pytest.mark.parametrize("case", CASES)
def test_the_next_plan(case: str) -> None:
    now, stands, expected, words = CASES[case]
    plan = plan_next(now, stands)
    assert spans(plan) == expected
    assert len(plan.losses) == len(words)
    assert all(word in loss for word, loss in zip(words, plan.losses, strict=True))
    again = plan_next(now, plan.ends())
    assert again.size == 0


def test_first_run_starts_at_the_starting_offsets() -> None:
    now = state(t_0=(A, 3, 9), t_1=(A, 0, 2))
    plan = plan_next(now, {}, {("t", 0): 1, ("t", 1): 5})
    assert spans(plan) == {"t_0": (3, 9), "t_1": (2, 2)}
    assert len(plan.losses) == 2


@given(st.lists(st.integers(0, 10**6), max_size=8), st.integers(1, 10**5))
def test_limited_plans_add_up_to_the_whole(sizes: list[int], most: int) -> None:
    ranges = tuple(OffsetRange("t", n, 5, 5 + size, A) for n, size in enumerate(sizes))
    plan = left = ReadPlan(ranges)
    pieces = 0
    while left.size and pieces < 50:
        piece = limit_plan(left, most)
        assert 0 < piece.size < most + max(1, len(sizes))
        # Each partition that has records makes progress.
        assert all(p.size for p, have in zip(piece.ranges, left.ranges, strict=True) if have.size)
        assert all(p.start == have.start for p, have in zip(piece.ranges, left.ranges, strict=True))
        left = remaining_plan(left, piece)
        pieces += 1
    if pieces < 50:
        assert left.ends() == plan.ends()
    assert limit_plan(plan, None) is plan


def test_manifest_has_the_next_positions() -> None:
    manifest = Manifest(
        increment=7,
        run="r",
        ranges=(OffsetRange("t", 0, 5, 9, A), OffsetRange("t", 12, 0, 0, A)),
        counts=JobCounts(4, 2, 1, 1, 3),
        timestamps=(-5, 2**40),
        losses=("something",),
        dead_letters="file:/x",
    )
    assert Manifest.from_json(manifest.to_json(), path="here") == manifest
    assert manifest.ends() == {("t", 0): (9, A), ("t", 12): (0, A)}


def test_stored_plan_is_read_back() -> None:
    plan = ReadPlan((OffsetRange("t", 0, 5, 9, A), OffsetRange("u", 1, 0, 3, B)), ("something",))
    for version in (None, 0, 2**62):
        stored = StoredPlan(3, "application", plan, version)
        assert StoredPlan.from_json(stored.to_json(), path="here") == stored
    for text in ("{", "[]", '{"kproto_pipeline": 1}'):
        with pytest.raises(OutputDamagedError, match=r"^here is no plan of an increment"):
            StoredPlan.from_json(text, path="here")
    with pytest.raises(OutputDamagedError, match=r"^here has version 9"):
        StoredPlan.from_json('{"kproto_pipeline": 9}', path="here")


def test_manifest_has_the_application_of_a_table() -> None:
    manifest = Manifest(1, "r", (), JobCounts(), application="a")
    assert Manifest.from_json(manifest.to_json(), path="here") == manifest
    assert "application" not in Manifest(1, "r", (), JobCounts()).to_json()
