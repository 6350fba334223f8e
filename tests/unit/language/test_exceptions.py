"""Tests exceptions from the language rules: each removes its finding.

An exception without a finding is an error.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.language.exceptions import RuleExemptions, is_below, load_exceptions
from tools.language.rules import Finding

FINDING = Finding("docs/a.md", 3, "word", "In hand are two records", "write in flight")


def load(tmp_path: Path, text: str) -> RuleExemptions:
    path = tmp_path / "exceptions.toml"
    path.write_text(text)
    return load_exceptions(path)


def row(path: str = "docs", rule: str = "word", text: str = "in hand", reason: str = "x") -> str:
    fields = {"path": path, "rule": rule, "text": text, "reason": reason}
    return "[[exception]]\n" + "".join(f'{name} = "{value}"\n' for name, value in fields.items())


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        (row(), True),
        (row(path="docs/a.md"), True),
        (row(path="docs/a.md", text=""), True),
        (row(path="docs/b.md"), False),
        (row(path="doc"), False),
        (row(rule="opening"), False),
        (row(text="on hand"), False),
    ],
)
def test_exception_allows_path_rule_and_text(tmp_path: Path, text: str, allowed: bool) -> None:
    exceptions = load(tmp_path, text)
    assert exceptions.remaining([FINDING]) == ([] if allowed else [FINDING])
    assert bool(exceptions.unused([FINDING])) is not allowed


def test_exception_without_a_reason_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no reason"):
        load(tmp_path, row(reason=" "))


def test_commits_are_read_with_their_reasons(tmp_path: Path) -> None:
    exceptions = load(tmp_path, '[[commit]]\nhash = "abc"\nreason = "was pushed"\n')
    assert exceptions.commits == {"abc": "was pushed"}


def test_path_is_below_itself_its_folder_and_the_root() -> None:
    assert is_below("a/b.py", "a/b.py")
    assert is_below("a/b.py", "a/")
    assert is_below("a/b.py", ".")
    assert not is_below("a/b.py", "a/b")
