"""Tests how the progress of a run is tracked and formatted."""

from __future__ import annotations

from kproto_pipeline.job.increment_plan import ReadPlan
from kproto_pipeline.job.manifest import JobCounts, Manifest
from kproto_pipeline.job.progress import Progress, bar_chart, format_lag, summary
from kproto_pipeline.spark.planning.offset_ranges import OffsetRange


def test_progress_of_a_run() -> None:
    progress = Progress()
    assert progress.line() == "0 increments, waiting  0 read  behind nothing"
    ranges = (OffsetRange("t", 0, 100, 700), OffsetRange("t", 1, 0, 400), OffsetRange("u", 0, 5, 5))
    progress.on_increment_started(3, ReadPlan(ranges), now=10.0)
    assert progress.lag == {"t": 1000, "u": 0}
    progress.ends["t"] = 1500  # the job has listed the offsets again
    progress.sample(0.5, now=12.0)
    progress.sample(0.25, now=12.0)  # a stage has ended, so its tasks no longer count
    assert progress.line() == (
        "increment 3 ██████████··········  50%  500 read  250/s  behind t 900, u 0  about 4 s left"
    )
    progress.on_increment_published(
        Manifest(3, "r", ranges, JobCounts(1000, 990, 5, 5, 995)), now=14.0
    )
    assert progress.lag == {"t": 400, "u": 0}
    assert progress.rate == 250
    assert progress.line().startswith("1 increments, waiting  1,000 read  250/s  behind t 400, u 0")


def test_many_topics_are_summed_up() -> None:
    lag = {f"t{n}": n for n in range(6)}
    assert format_lag(lag) == "t5 5, t4 4, t3 3, 3 others 3"


def test_a_summary_names_each_count() -> None:
    lines = summary(JobCounts(9, 4, 3, 2, 7), 2, {"the job took": 1.25})
    assert [line.split()[0] for line in lines[:6]] == [
        "read",
        "valid",
        "invalid",
        "duplicates",
        "written",
        "increments",
    ]
    assert lines[-1].endswith("1.2 s")


def test_a_chart_of_text() -> None:
    assert bar_chart("t", []) == []
    lines = bar_chart("by type", [("a", 10), *((f"b{n:02}", 1) for n in range(20))])
    assert lines[0] == "by type"
    assert lines[1].split() == ["a", "█" * 40, "10"]
    assert lines[-1].split()[:2] == ["9", "others"]
    assert len(lines) == 14
