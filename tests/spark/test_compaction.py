"""Tests joining small increments: the rows stay the same, and a killed compaction is finished."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kproto_pipeline.job import (
    JobCounts,
    OutputDamagedError,
    SettingError,
    compact,
    increment_store,
    run,
)
from kproto_pipeline.job.settings import DeadLetterSettings, OutputSettings

from tests.spark.conftest import Topics
from tests.spark.test_increments import send
from tests.spark.test_job import BROKEN, event
from tests.spark.test_killed_jobs import Killed, ids, killed_at, settings

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.exhaustive]

RECORDS = [event(n, "ab"[n % 2]) for n in range(6)] + [BROKEN[0]]


def folders(lake: Path) -> list[int]:
    return sorted(int(path.name.split("=")[1]) for path in lake.glob("increment=*"))


def rows(spark: Any, lake: Path) -> list[tuple[Any, ...]]:
    read = spark.read.parquet(str(lake)).select("offset", "id", "status", "type", "data", "value")
    return sorted((tuple(row) for row in read.collect()), key=repr)


@pytest.mark.parametrize("letters", [pytest.param(False, marks=pytest.mark.thorough), True])
def test_joined_increments_have_the_same_rows(
    spark: Any, embedded_topics: Topics, topic_name: str, tmp_path: Path, letters: bool
) -> None:
    embedded_topics.fill(topic_name, RECORDS)
    dead = DeadLetterSettings(str(tmp_path / "dead")) if letters else None
    wanted = settings(embedded_topics, topic_name, tmp_path, "incremental", dead_letters=dead)
    lake = tmp_path / "lake"
    run(spark, wanted)
    assert folders(lake) == [1, 2, 3, 4]
    before = rows(spark, lake)
    assert compact(spark, wanted, size=1) == []
    assert compact(spark, wanted) == [4]
    assert folders(lake) == [4]
    assert rows(spark, lake) == before
    assert len(list(lake.rglob("status=valid/*/*.parquet"))) == 2  # a file for each type
    send(embedded_topics, topic_name, event(2), event(7))
    found = run(spark, wanted)
    assert found.increments == [5]
    assert found.counts == JobCounts(2, 1, 0, 1, 1)
    assert compact(spark, wanted) == [5]
    assert ids(lake) == dict.fromkeys("0123457", 1)


@pytest.mark.usefixtures("no_undoing")
def test_killed_compaction_is_finished_by_the_next_run(
    spark: Any,
    embedded_topics: Topics,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    embedded_topics.fill(topic_name, RECORDS)
    wanted = settings(embedded_topics, topic_name, tmp_path, "incremental")
    run(spark, wanted)
    made = increment_store.IncrementStore.__init__
    steps = [("manifest written", 1), ("joined", 1), ("moved away", 2), ("replaced increments", 1)]
    for step, times in steps:
        lake = tmp_path / step / "lake"
        shutil.copytree(tmp_path / "lake", lake)
        at = replace(wanted, output=OutputSettings(str(lake)))
        before = rows(spark, lake)

        def killed(
            self: Any, files: Any, step: str = step, times: int = times, **more: Any
        ) -> None:
            made(self, files, **{**more, "on_step": killed_at(step, times)})

        monkeypatch.setattr(increment_store.IncrementStore, "__init__", killed)
        with pytest.raises(Killed):
            compact(spark, at)
        monkeypatch.setattr(increment_store.IncrementStore, "__init__", made)
        assert run(spark, at).counts == JobCounts()
        assert folders(lake) == ([1, 2, 3, 4] if step == "manifest written" else [4]), step
        assert rows(spark, lake) == before, step
        assert not (lake / "_kproto_joined").exists()


def test_output_without_its_first_increments_goes_on(
    spark: Any, embedded_topics: Topics, topic_name: str, tmp_path: Path
) -> None:
    embedded_topics.fill(topic_name, RECORDS)
    wanted = settings(embedded_topics, topic_name, tmp_path, "incremental")
    run(spark, wanted)
    lake = tmp_path / "lake"
    shutil.rmtree(lake / "increment=000001")
    send(embedded_topics, topic_name, event(8), event(1), event(3))
    # The events of the removed increment are no longer found.
    found = run(spark, wanted)
    assert found.increments == [5, 6]
    assert found.counts == JobCounts(3, 2, 0, 1, 2)
    shutil.rmtree(lake / "increment=000004")
    with pytest.raises(OutputDamagedError, match="one is missing"):
        run(spark, wanted)
    with pytest.raises(SettingError, match="only Parquet files can be joined"):
        compact(spark, replace(wanted, output=OutputSettings(str(lake), "orc")))
