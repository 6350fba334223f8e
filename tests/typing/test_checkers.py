"""Tests that both type checkers accept correct code and report exactly the marked mistakes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RIGHT = [
    HERE / "right.py",
    HERE / "cloudevents_right.py",
    HERE / "codecs_right.py",
    HERE / "sync_right.py",
]
#: Files with mistakes, and the least number of mistakes in each.
WRONG = [
    (HERE / "wrong.py", 40),
    (HERE / "cloudevents_wrong.py", 30),
    (HERE / "codecs_wrong.py", 15),
    (HERE / "sync_wrong.py", 23),
]
FILES = [str(path) for path in (*RIGHT, *(path for path, _ in WRONG))]

Found: TypeAlias = dict[Path, dict[int, str]]
"""The errors of each file, by line."""


def run(*command: str) -> str:
    """Returns the output of a checker; accepts exit code 1, which means that it reported errors."""
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


@cache
def mypy() -> Found:
    """Returns mypy's errors in all files; one run for all files saves time."""
    lines = run("-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context", *FILES)
    found: Found = {}
    for line in lines.splitlines():
        parts = re.fullmatch(r"(.+?):(\d+): error: (.*)", line)
        if parts is not None:
            found.setdefault(ROOT / parts[1], {})[int(parts[2])] = parts[3]
    return found


@cache
def pyright() -> Found:
    """Returns pyright's errors in all files; pyright reads its settings from a folder."""
    settings = {"typeCheckingMode": "standard", "pythonVersion": "3.11", "include": FILES}
    with TemporaryDirectory() as folder:
        (Path(folder) / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
        options = ("--project", folder, "--pythonpath", sys.executable, "--outputjson")
        report = json.loads(run("-m", "basedpyright", *options))
    assert report["summary"]["filesAnalyzed"] == len(FILES)
    found: Found = {}
    for finding in report["generalDiagnostics"]:
        if finding["severity"] == "error":
            line = finding["range"]["start"]["line"] + 1
            found.setdefault(Path(finding["file"]), {})[line] = finding["message"]
    return found


Checker = Callable[[], Found]
CHECKERS = pytest.mark.parametrize(
    "checker",
    [mypy, pytest.param(pyright, marks=pytest.mark.exhaustive)],
    ids=["mypy", "pyright"],
)


@pytest.mark.slow
@CHECKERS
def test_checker_reports_no_errors_in_other_files(checker: Checker) -> None:
    assert checker().keys() == {path for path, _ in WRONG}


@pytest.mark.slow
@CHECKERS
@pytest.mark.parametrize("path", RIGHT, ids=lambda path: path.stem)
def test_correct_code_is_accepted(checker: Checker, path: Path) -> None:
    assert checker().get(path, {}) == {}


@pytest.mark.slow
@CHECKERS
@pytest.mark.parametrize(("path", "at_least"), WRONG, ids=lambda each: getattr(each, "stem", ""))
def test_each_mistake_is_reported_on_its_line(checker: Checker, path: Path, at_least: int) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    marked = {number for number, line in enumerate(lines, 1) if "# error: " in line}
    assert len(marked) >= at_least
    found = checker()[path]
    unseen = {number: lines[number - 1].strip() for number in marked - set(found)}
    unmarked = {number: found[number] for number in set(found) - marked}
    assert (unseen, unmarked) == ({}, {})
