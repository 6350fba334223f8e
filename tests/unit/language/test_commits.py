"""Tests the check of the subjects of all commits after a base commit.

If the repository lacks the base commit, no subject is checked.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools.language.commits import check_subjects, subjects_since
from tools.language.rules import load_rules

RULE = load_rules().commits


@pytest.mark.parametrize(
    "subject",
    [
        "consumer: reset positions after log truncation",
        "kproto/study, proxy: rename lines to correlation",
        "import-contracts.toml: name the layers",
        "c: " + "x" * 69,
    ],
)
def test_subject_with_an_area_in_front_is_right(subject: str) -> None:
    assert check_subjects([("abc", subject)], RULE, {}) == []


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        ("c: " + "x" * 70, "73 characters, at most 72"),
        ("Reset positions", "no area in front"),
        ("Consumer: reset positions", "no area in front"),
        ("consumer:reset positions", "no area in front"),
        ("the consumer: resets positions", "no area in front"),
    ],
)
def test_subject_without_an_area_or_too_long_is_found(subject: str, reason: str) -> None:
    (line,) = check_subjects([("abc", subject)], RULE, {})
    assert line.startswith("commit abc: ")
    assert reason in line


def test_excepted_commit_is_left_out() -> None:
    assert check_subjects([("abc1234", "Reset")], RULE, {"abc1234567": "was pushed"}) == []


def test_commits_after_the_base_are_checked_and_merges_are_not(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        settings = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
        command = ["git", "-C", str(tmp_path), *settings, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def commit(subject: str) -> str:
        git("commit", "--allow-empty", "--quiet", "--message", subject)
        return git("rev-parse", "HEAD")

    git("init", "--quiet", "--initial-branch=main")
    base = commit("Before the rule")
    git("checkout", "--quiet", "-b", "side")
    commit("broker: rename a module")
    git("checkout", "--quiet", "main")
    commit("client: rename a module")
    git("merge", "--quiet", "--no-ff", "--message", "Merge of it", "side")

    found = subjects_since(tmp_path, base)
    assert found is not None
    assert sorted(subject for _, subject in found) == [
        "broker: rename a module",
        "client: rename a module",
    ]
    assert subjects_since(tmp_path, "0" * 40) is None


def test_folder_without_a_repository_has_no_subjects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert subjects_since(tmp_path, "HEAD") is None
