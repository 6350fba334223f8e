"""Both type checkers accept right code, and find each marked mistake of wrong code and no other."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RIGHT = [HERE / "right.py", HERE / "cloudevents_right.py"]
#: With the number of mistakes that there are at least.
WRONG = [(HERE / "wrong.py", 40), (HERE / "cloudevents_wrong.py", 30)]


def run(*command: str) -> str:
    """What a checker prints; it exits with 1 when it has found something."""
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def mypy(path: Path, _: Path) -> dict[int, str]:
    """What mypy finds, by line."""
    lines = run("-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context", str(path))
    found = {}
    for line in lines.splitlines():
        parts = re.fullmatch(r"(.+?):(\d+): error: (.*)", line)
        if parts is not None:
            assert ROOT / parts[1] == path, f"an error outside {path.name}: {line}"
            found[int(parts[2])] = parts[3]
    return found


def pyright(path: Path, folder: Path) -> dict[int, str]:
    """What pyright finds, by line; its settings stand in `folder`."""
    settings = {"typeCheckingMode": "standard", "pythonVersion": "3.11", "include": [str(path)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    options = ("--project", str(folder), "--pythonpath", sys.executable, "--outputjson")
    report = json.loads(run("-m", "basedpyright", *options))
    assert report["summary"]["filesAnalyzed"] == 1
    found = {}
    for finding in report["generalDiagnostics"]:
        assert Path(finding["file"]) == path, f"an error outside {path.name}: {finding}"
        if finding["severity"] == "error":
            found[finding["range"]["start"]["line"] + 1] = finding["message"]
    return found


Checker = Callable[[Path, Path], dict[int, str]]
CHECKERS = pytest.mark.parametrize("checker", [mypy, pyright])


@pytest.mark.slow
@CHECKERS
@pytest.mark.parametrize("path", RIGHT, ids=lambda path: path.stem)
def test_right_code_is_accepted(checker: Checker, path: Path, tmp_path: Path) -> None:
    assert checker(path, tmp_path) == {}


@pytest.mark.slow
@CHECKERS
@pytest.mark.parametrize(("path", "at_least"), WRONG, ids=lambda each: getattr(each, "stem", ""))
def test_each_mistake_is_found_on_its_line(
    checker: Checker, path: Path, at_least: int, tmp_path: Path
) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    marked = {number for number, line in enumerate(lines, 1) if "# error: " in line}
    assert len(marked) >= at_least
    found = checker(path, tmp_path)
    unseen = {number: lines[number - 1].strip() for number in marked - set(found)}
    unmarked = {number: found[number] for number in set(found) - marked}
    assert (unseen, unmarked) == ({}, {})
