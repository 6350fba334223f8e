"""The demo from its command line: every count right, twice the same."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.exhaustive]


def run_demo(output: Path) -> str:
    """What the demo prints of counts and carriers, without addresses and times."""
    finished = subprocess.run(
        [sys.executable, "-m", "kproto_pipeline.demo", "--flights", "3000", "--output", output],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    report = re.search(r"counts\n.*(?=\nstage )", finished.stdout, re.DOTALL)
    assert report is not None
    return report[0]


def test_the_demo_run_twice_gives_the_same(tmp_path: Path) -> None:
    output = tmp_path / "out"
    first = run_demo(output)
    assert first.count("  ok\n") == 7
    assert "WRONG" not in first
    assert run_demo(output) == first
    assert (output / "delay-by-hour.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in output.iterdir()) == ["delay-by-hour.png", "events"]
    folders = {path.parent.name for path in (output / "events").rglob("*.parquet")}
    assert folders == {
        "type=org.nycflights13.flight.cancelled",
        "type=org.nycflights13.flight.departed",
        "type=__HIVE_DEFAULT_PARTITION__",
    }
