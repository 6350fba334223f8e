"""Tests when and how a virtual environment is created; the commands are faked, not run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tools.setup import environments
from tools.setup.environments import InstallError, python_with
from tools.setup.programs import ProgramError


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Returns the list of all commands; the commands are not run.

    A command with `venv` only creates the file of an interpreter.
    """
    commands: list[list[str]] = []

    def run(command: list[str], **_: Any) -> str:
        commands.append(command)
        if "venv" in command:
            python = Path(command[-1]) / "bin" / "python"
            python.parent.mkdir(parents=True)
            python.touch()
        return ""

    monkeypatch.setattr(environments, "run_program", run)
    return commands


def test_it_is_made_once(asked: list[list[str]], tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "peers"
    python = python_with(folder, install=["thing==1"], wanted="1")
    assert python == folder / "bin" / "python"
    assert asked == [
        [sys.executable, "-m", "venv", str(folder)],
        [str(python), "-m", "pip", "install", "--quiet", "thing==1"],
    ]
    assert python_with(folder, install=["thing==1"], wanted="1") == python
    assert len(asked) == 2


def test_it_is_made_anew_when_another_is_wanted_or_its_python_is_gone(
    asked: list[list[str]], tmp_path: Path
) -> None:
    folder = tmp_path / "peers"
    python = python_with(folder, install=["thing==1"], wanted="1")
    python_with(folder, install=["thing==2"], wanted="2")
    assert len(asked) == 4
    python.unlink()
    python_with(folder, install=["thing==2"], wanted="2")
    assert len(asked) == 6


def test_a_failure_says_what_was_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(command: list[str], **_: Any) -> str:
        raise ProgramError("no such package")

    monkeypatch.setattr(environments, "run_program", fail)
    with pytest.raises(InstallError, match=r"-m venv .* failed: no such package"):
        python_with(tmp_path / "peers", install=["thing"], wanted="")
    assert not (tmp_path / "peers" / "installed.txt").exists()
