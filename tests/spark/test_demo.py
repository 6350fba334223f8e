"""Tests the demo command: the counts of the stream and of `--batch`, and interrupts."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.exhaustive]

COMMAND = [sys.executable, "-u", "-m", "kproto_pipeline.demo"]


def run_demo(output: Path, *more: str) -> str:
    """Returns the counts and carriers that the demo prints, without addresses and times."""
    finished = subprocess.run(
        [*COMMAND, "--flights", "3000", "--output", output, *more],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    report = re.search(r"counts\n.*(?=\nstage )", finished.stdout, re.DOTALL)
    assert report is not None
    return report[0]


def test_demo_prints_the_same_as_stream_and_batch(tmp_path: Path) -> None:
    output = tmp_path / "out"
    first = run_demo(output)
    assert first.count("  ok\n") == 7
    assert "WRONG" not in first
    assert run_demo(output, "--batch") == first
    assert (output / "delay-by-hour.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in output.iterdir()) == ["delay-by-hour.png", "events"]
    folders = {path.parent.name for path in (output / "events").rglob("*.parquet")}
    assert folders == {
        "type=org.nycflights13.flight.cancelled",
        "type=org.nycflights13.flight.departed",
        "type=__HIVE_DEFAULT_PARTITION__",
    }


def is_written(output: Path) -> bool:
    """Returns True if tasks of the demo's Spark job are writing files."""
    return any(output.glob(".events-writing-*/_kproto/writing-*/_temporary/0/_temporary/*"))


STAGES: dict[str, Callable[[Path, str], bool]] = {
    "it begins": lambda output, log: True,
    "Spark starts": lambda output, log: "NativeCodeLoader" in log,
    "the job writes": lambda output, log: is_written(output),
}


@pytest.mark.parametrize("stage", STAGES)
def test_interrupted_demo_leaves_no_files(tmp_path: Path, stage: str) -> None:
    """The test signals a whole process group, because Ctrl-C in a terminal also does so."""
    output, log = tmp_path / "out", tmp_path / "log"
    with log.open("w") as file:
        demo = subprocess.Popen(
            [*COMMAND, "--flights", "20000", "--output", output],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=file,
            start_new_session=True,
            text=True,
        )
        with demo:
            assert demo.stdout is not None
            broker = demo.stdout.readline()
            while not STAGES[stage](output, log.read_text()):
                assert demo.poll() is None, log.read_text()
                time.sleep(0.01)
            os.killpg(demo.pid, signal.SIGINT)
            os.killpg(demo.pid, signal.SIGINT)
            # Reads until no process has the pipe open any more.
            assert "counts" not in demo.stdout.read()
    assert broker.startswith("broker 127.0.0.1:")
    assert demo.returncode == 130
    text = log.read_text()
    assert text.splitlines()[-1] == "interrupted"
    assert "Traceback" not in text
    assert "\tat " not in text, "a stack of Java"
    assert [path for path in output.rglob("*") if path.is_file()] == []
    assert not list(output.glob(".*"))
