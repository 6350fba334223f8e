"""Tests a job that is killed at any step and restarted: each valid event is in the output once."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from kproto_pipeline.job import (
    JobSettings,
    OutputBusyError,
    OutputDamagedError,
    increment_writer,
    output_files,
    run,
)
from kproto_pipeline.job.output_lock import lock_output
from kproto_pipeline.job.settings import DeadLetterSettings, OutputSettings

from tests.spark.conftest import Topics
from tests.spark.test_job import BROKEN, event

pytestmark = [pytest.mark.spark]

RECORDS = [event(1), event(2), event(1), BROKEN[0], event(3, "b"), event(2, "b", mode="structured")]


class Killed(BaseException):
    """Simulates the kill of a process."""


def killed_at(step: str, times: int = 1) -> Callable[[str], None]:
    """Returns a step listener that raises Killed when `step` is reached the `times`th time."""
    steps: list[str] = []

    def at(reached: str) -> None:
        steps.append(reached)
        if steps.count(step) == times:
            raise Killed

    return at


def ids(folder: Path) -> Counter[str]:
    """Returns the ids of the valid events that a reader of the folder sees."""
    if not folder.exists():
        return Counter()
    table = ds.dataset(str(folder), format="parquet", partitioning="hive").to_table()
    if "status" not in table.column_names:
        return Counter()
    return Counter(row["id"] for row in table.to_pylist() if row["status"] == "valid")


def settings(topics: Topics, topic: str, folder: Path, mode: Any, **more: Any) -> JobSettings:
    source = {"kafka.bootstrap.servers": topics.bootstrap, "subscribe": topic}
    return JobSettings(
        source, OutputSettings(str(folder / "lake")), mode=mode, max_records=2, **more
    )


#: The steps of an increment of files, whose plan is not stored.
ALL_STEPS = [step for step in increment_writer.STEPS if step != "plan stored"]
STEPS = [step for step in ALL_STEPS if step != "dead letters written"]


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.usefixtures("no_undoing")
@pytest.mark.parametrize(
    ("letters", "times"),
    [
        (True, 2),
        pytest.param(False, 1, marks=pytest.mark.thorough),
        pytest.param(False, 2, marks=pytest.mark.thorough),
        pytest.param(True, 1, marks=pytest.mark.thorough),
    ],
)
def test_restart_after_a_kill_at_each_step(
    spark: Any, embedded_topics: Topics, topic_name: str, tmp_path: Path, letters: bool, times: int
) -> None:
    embedded_topics.fill(topic_name, RECORDS)
    for step in ALL_STEPS if letters else STEPS:
        folder = tmp_path / step
        wanted = settings(
            embedded_topics,
            topic_name,
            folder,
            "incremental",
            dead_letters=DeadLetterSettings(str(folder / "dead")) if letters else None,
        )
        if not (step == "dead letters written" and times == 2):
            with pytest.raises(Killed):
                run(spark, wanted, on_step=killed_at(step, times))
        before = ids(folder / "lake")
        assert all(number == 1 for number in before.values()), (step, before)
        run(spark, wanted)
        assert ids(folder / "lake") == {"1": 1, "2": 1, "3": 1}, step
        names = sorted(path.name for path in folder.iterdir())
        assert names == (["dead", "lake"] if letters else ["lake"]), step
        shown = sorted(path.name for path in (folder / "lake").iterdir())
        assert shown == ["increment=000001", "increment=000002", "increment=000003"], step
        if letters:
            dead = ds.dataset(str(folder / "dead"), format="parquet").to_table().to_pylist()
            assert [(row["key"], row["value"]) for row in dead] == [(b"k1", b"no event")], step


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.usefixtures("no_undoing")
def test_restart_after_a_kill_during_replacement(
    spark: Any,
    embedded_topics: Topics,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    embedded_topics.fill(topic_name, RECORDS)
    wanted = settings(embedded_topics, topic_name, tmp_path, "once")
    run(spark, wanted)
    move = output_files.OutputFiles.move
    for moves in (1, 2, 3):  # moves of the increment, of the old output and of the new output
        last = killed_at("move", moves)

        def killed(self: Any, source: str, target: str, last: Any = last) -> None:
            move(self, source, target)
            last("move")

        monkeypatch.setattr(output_files.OutputFiles, "move", killed)
        again = JobSettings(wanted.source, OutputSettings(str(tmp_path / "lake"), overwrite=True))
        with pytest.raises(Killed):
            run(spark, again)
        monkeypatch.setattr(output_files.OutputFiles, "move", move)
        # The next run continues from the old or the new output; each is complete.
        run(spark, settings(embedded_topics, topic_name, tmp_path, "incremental"))
        assert ids(tmp_path / "lake") == {"1": 1, "2": 1, "3": 1}
        assert [path.name for path in tmp_path.iterdir()] == ["lake"]


@pytest.mark.exhaustive
@pytest.mark.usefixtures("no_undoing")
def test_restart_after_a_kill_without_atomic_rename(
    spark: Any,
    embedded_topics: Topics,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without atomic renames, the job moves files first and writes the manifest last.

    An increment without a manifest does not count, so the next run writes it again.
    """
    monkeypatch.setattr(output_files, "ATOMIC", frozenset())
    embedded_topics.fill(topic_name, RECORDS)
    wanted = settings(embedded_topics, topic_name, tmp_path, "incremental")
    with pytest.raises(Killed):
        run(spark, wanted, on_step=killed_at("moved without manifest"))
    reported: list[str] = []
    run(spark, wanted, listener=Reports(reported))
    assert ids(tmp_path / "lake") == {"1": 1, "2": 1, "3": 1}
    assert "a reader may see a part of an increment" in reported[0]


class Reports:
    """Collects the data losses and guarantees that a run reports."""

    def __init__(self, reported: list[str]) -> None:
        self.reported = reported

    def on_increment_started(self, number: int, plan: Any, behind: int) -> None:
        pass

    def on_increment_published(self, manifest: Any) -> None:
        pass

    def on_data_loss(self, what: str) -> None:
        self.reported.append(what)

    def on_delivery_guarantee(self, what: str) -> None:
        self.reported.append(what)


def test_one_run_at_a_time(
    spark: Any, embedded_topics: Topics, topic_name: str, tmp_path: Path
) -> None:
    embedded_topics.fill(topic_name, RECORDS)
    wanted = settings(embedded_topics, topic_name, tmp_path, "incremental")
    with lock_output(tmp_path / "lake"), pytest.raises(OutputBusyError, match="another run writes"):
        run(spark, wanted)

    def overtaken(step: str) -> None:
        """Simulates another run that finishes first, on a file system without locks."""
        if step == "manifest written":
            (unpublished,) = (tmp_path / "lake" / "_kproto").iterdir()
            shutil.copytree(unpublished, tmp_path / "lake" / "increment=000001")

    with pytest.raises(OutputBusyError, match="appeared during this run"):
        run(spark, wanted, on_step=overtaken)
    run(spark, wanted)
    assert ids(tmp_path / "lake") == {"1": 1, "2": 1, "3": 1}


@pytest.fixture
def existing_output(
    spark: Any, embedded_topics: Topics, topic_name: str, tmp_path: Path
) -> Iterator[tuple[JobSettings, Path]]:
    """Returns the settings and the folder of an existing output with three increments."""
    embedded_topics.fill(topic_name, RECORDS)
    wanted = settings(embedded_topics, topic_name, tmp_path, "incremental")
    run(spark, wanted)
    return wanted, tmp_path / "lake"  # type: ignore[return-value]


def test_damaged_output_is_refused(spark: Any, existing_output: tuple[JobSettings, Path]) -> None:
    wanted, lake = existing_output
    manifest = lake / "increment=000003" / "_kproto.json"
    text = manifest.read_text()
    content = json.loads(text)
    assert content["counts"]["read"] == 2
    for damage, words in (
        (lambda: (lake / "mine.parquet").write_text("x"), "holds mine.parquet, which is no"),
        (lambda: manifest.write_text("{"), "is no manifest of an increment"),
        (lambda: manifest.write_text('{"kproto_pipeline": 2}'), "has version 2"),
        (manifest.unlink, "_kproto.json is missing"),
        (lambda: shutil.rmtree(lake / "increment=000002"), "one is missing"),
    ):
        damage()
        with pytest.raises(OutputDamagedError, match=words):
            run(spark, wanted)
        (lake / "mine.parquet").unlink(missing_ok=True)
        manifest.write_text(text)
