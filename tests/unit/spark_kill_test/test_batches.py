"""Tests counting duplicate records per micro-batch, and recognizing the running batch."""

from __future__ import annotations

import json
from pathlib import Path

from tools.spark_kill_test.batches import Checkpoint, Duplicates, count_duplicates


def plan(folder: Path, batch: int, ends: dict[str, int]) -> None:
    path = folder / "offsets" / str(batch)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["v1", "{}", json.dumps({"source": ends})]))


def finish(folder: Path, batch: int) -> None:
    path = folder / "commits" / str(batch)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("v1\n{}")


def test_a_checkpoint_knows_the_batches_that_were_running(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    assert (checkpoint.planned(), checkpoint.finished()) == (-1, -1)
    plan(tmp_path, 0, {"0": 3, "1": 4})
    finish(tmp_path, 0)
    checkpoint.disturbed(checkpoint.finished())
    assert checkpoint.unfinished == set()
    plan(tmp_path, 1, {"0": 5, "1": 4})
    checkpoint.disturbed(checkpoint.finished())
    finish(tmp_path, 1)
    plan(tmp_path, 2, {"0": 5, "1": 6})
    assert checkpoint.unfinished == {1}
    assert checkpoint.ends() == {0: {0: 3, 1: 4}, 1: {0: 5, 1: 4}, 2: {0: 5, 1: 6}}


def test_doubled_records_are_counted_by_their_batch() -> None:
    ends = {0: {0: 3}, 1: {0: 5, 1: 4}, 2: {0: 5, 1: 6}}
    again = [(0, 2, 1), (0, 3, 2), (1, 3, 1), (1, 4, 1), (1, 99, 5)]
    assert count_duplicates(again, ends, {1}) == Duplicates(3, 7, 4)
    assert count_duplicates(again, ends, {0, 1, 2}) == Duplicates(5, 5, 4)
    assert count_duplicates([], ends, {1}) == Duplicates(0, 0, 0)
