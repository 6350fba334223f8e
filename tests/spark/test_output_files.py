"""Tests file and folder operations through Hadoop's API, which also serves remote file systems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kproto_pipeline.job import JobSettings, OutputBusyError, SettingError, output_files, run
from kproto_pipeline.job.output_files import OutputFiles
from kproto_pipeline.job.settings import DeadLetterSettings, OutputSettings

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("atomic", [True, False])
def test_files_of_another_file_system(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, atomic: bool
) -> None:
    monkeypatch.setattr(OutputFiles, "local", None)
    if not atomic:
        monkeypatch.setattr(output_files, "ATOMIC", frozenset())
    files = OutputFiles(spark, str(tmp_path / "out"))
    assert files.root == f"file:{tmp_path}/out"
    assert files.atomic is atomic
    files.make_folder(files.child_path("a"))
    files.write(files.child_path("a", "text"), "größer\n")
    assert files.read(files.child_path("a", "text")) == "größer\n"
    files.move(files.child_path("a"), files.child_path("b"))
    assert [name for name in files.names(files.root) if not name.startswith(".")] == ["b"]
    assert (tmp_path / "out" / "b" / "text").read_text() == "größer\n"
    files.make_folder(files.child_path("a"))
    with pytest.raises(OutputBusyError, match="another run writes to the same output"):
        files.move(files.child_path("a"), files.child_path("b"))
    # Another run creates the folder between the check and the move.
    monkeypatch.setattr(files, "exists", lambda path: False)
    if atomic:
        with pytest.raises(OutputBusyError, match="another run writes to the same output"):
            files.move(files.child_path("a"), files.child_path("b"))
        assert (tmp_path / "out" / "a").is_dir()
    files.delete(files.child_path("nothing"))


def test_output_is_restored_after_a_killed_replacement(spark: Any, tmp_path: Path) -> None:
    files = OutputFiles(spark, str(tmp_path / "out"))
    files.restore()
    assert list(tmp_path.iterdir()) == []
    left = Path(files.new_sibling("replaced").removeprefix("file:"))
    left.mkdir()
    (left / "kept").write_text("")
    files.restore()
    assert (tmp_path / "out" / "kept").exists()
    assert not left.exists()


@pytest.mark.parametrize(
    ("output", "letters", "words"),
    [
        (
            "lake{1}",
            None,
            r"output.path is .*/lake\{1\}: Spark takes a path with \{ \} for a pattern",
        ),
        ("lake", "a/../lake/letters", "dead_letters.path is in the folder of output.path"),
        ("letters/lake", "letters", "output.path is in the folder of dead_letters.path"),
        ("lake", "lake/", "dead_letters.path equals output.path"),
    ],
)
def test_path_that_no_second_run_can_use_is_refused(
    spark: Any,
    tmp_path: Path,
    output: str,
    letters: str | None,
    words: str,
) -> None:
    """A program passes no settings file; the job compares absolute paths."""
    settings = JobSettings(
        {"kafka.bootstrap.servers": "localhost:1", "subscribe": "t"},
        OutputSettings(str(tmp_path / output)),
        "incremental",
        None if letters is None else DeadLetterSettings(f"file:{tmp_path}/{letters}"),
    )
    with pytest.raises(SettingError, match=words):
        run(spark, settings)
    assert list(tmp_path.iterdir()) == []
