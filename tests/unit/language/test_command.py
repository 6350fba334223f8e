"""Tests the language check as a command: it prints findings and exits with 1.

The check skips files that other programs generate.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.language import __main__ as command
from tools.language import commits
from tools.language.exceptions import RuleExemptions
from tools.language.rules import load_rules

RULES = load_rules()
NONE = RuleExemptions((), {})


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a folder of files that is not a Git repository."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setattr(command, "ROOT", tmp_path)
    for name, text in {
        "a.md": "Who asks gets it.\n",
        "b/c.py": '"""Reads records."""\n',
        "kproto/messages/d.py": '"""Who asks."""\n',
        "kproto/messages/base.py": '"""Nobody reads this."""\n',
        "e.txt": "Who asks gets it.\n",
        ".venv/f.py": '"""Who asks."""\n',
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.usefixtures("root")
def test_hand_written_files_are_checked() -> None:
    assert command.files(RULES) == ["a.md", "b/c.py", "kproto/messages/base.py"]


@pytest.mark.usefixtures("root")
def test_findings_are_printed_and_end_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.check(RULES, NONE) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "commit subjects are not checked" in lines[0]
    assert lines[1].startswith("a.md:1: opening: “Who asks gets it.”")
    assert lines[-1] == "language: 3 findings (2 opening, 1 word) in 3 files"


@pytest.mark.usefixtures("root")
def test_list_of_a_place_without_files_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.list_findings(RULES, NONE, [str(command.ROOT / "g")]) == 2
    assert "no Python or Markdown file" in capsys.readouterr().out


@pytest.mark.usefixtures("root")
def test_base_of_commits_is_taken_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def subjects(root: Path, base: str) -> list[tuple[str, str]]:
        asked.append(base)
        return [("abc", "Reset positions")]

    monkeypatch.setattr(command, "subjects_since", subjects)
    monkeypatch.setenv("LANGUAGE_BASE", "v1")
    assert command.check(RULES, NONE) == 1
    assert "commit abc: no area in front" in capsys.readouterr().out
    monkeypatch.setenv("LANGUAGE_BASE", "")
    command.check(RULES, NONE)
    assert asked == ["v1", RULES.commits["base"]]


def test_rules_name_a_base_in_full() -> None:
    assert len(RULES.commits["base"]) == 40
    assert commits.subjects_since(Path(__file__).parent, "no such commit") is None
