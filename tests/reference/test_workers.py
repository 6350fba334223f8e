"""Tests work in several processes: every result is returned, and no process is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.reference.workers import in_parallel

ROOT = Path(__file__).resolve().parents[2]

ENDLESS = """
import time
from tools.reference.workers import in_parallel
if __name__ == "__main__":
    list(in_parallel(time.sleep, [3600, 3600], processes=2))
"""


@pytest.mark.slow
def test_every_result_is_returned() -> None:
    assert sorted(in_parallel(abs, range(-50, 0), processes=2)) == list(range(1, 51))


@pytest.mark.slow
def test_error_of_a_task_is_raised() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        list(in_parallel(int, ["1", "x", "2"], processes=2))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs the child list of Linux")
@pytest.mark.slow
def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    program = tmp_path / "endless.py"
    program.write_text(ENDLESS, encoding="utf-8")
    path = {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'codegen'}"}
    parent = subprocess.Popen([sys.executable, program], env={**os.environ, **path})
    try:
        workers = wait_for(lambda: [pid for pid in children(parent.pid) if is_worker(pid)], 2)
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    wait_for(lambda: [pid for pid in workers if not is_worker(pid)], 2)


def children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii")
    return [int(child) for child in listed.split()]


def is_worker(pid: int) -> bool:
    try:
        return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def wait_for(found: Callable[[], list[int]], count: int) -> list[int]:
    """Waits until `found` returns `count` process ids; fails after a minute."""

    end = time.monotonic() + 60
    while len(pids := found()) < count:
        assert time.monotonic() < end, f"{len(pids)} of {count}"
        time.sleep(0.1)
    return list(pids)
