"""Reads exceptions.toml, and removes the findings that its entries allow.

An entry for a finding has a path, a rule, optionally a part of the text, and a reason. If no
finding matches an entry, the check fails, so that obsolete entries are removed. An entry for a
commit subject has a hash and a reason.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .rules import Finding

__all__ = ["RuleExemptions", "is_below", "load_exceptions"]

EXCEPTIONS: Final = Path(__file__).with_name("exceptions.toml")


@dataclass(frozen=True, slots=True)
class AllowedFinding:
    """Allows the findings of `rule` at `path` (a file or folder) whose text contains `text`."""

    path: str
    rule: str
    text: str
    reason: str

    def matches(self, finding: Finding) -> bool:
        """Returns True if this exception allows `finding`."""
        return (
            is_below(finding.path, self.path)
            and finding.rule == self.rule
            and self.text.lower() in finding.text.lower()
        )


@dataclass(frozen=True, slots=True)
class RuleExemptions:
    """All exceptions: allowed findings, and allowed commits with their reasons."""

    allowed: tuple[AllowedFinding, ...]
    commits: Mapping[str, str]

    def remaining(self, findings: Iterable[Finding]) -> list[Finding]:
        """Returns the findings that no exception allows."""
        return [each for each in findings if not any(row.matches(each) for row in self.allowed)]

    def unused(self, findings: list[Finding]) -> list[str]:
        """Returns a line for each exception that matches no finding."""
        return [
            f"exceptions.toml: `{row.text}` ({row.rule}) is not found in {row.path}: remove it"
            for row in self.allowed
            if not any(map(row.matches, findings))
        ]


def is_below(path: str, place: str) -> bool:
    """Returns True if `path` is the file `place`, or is in the folder `place`."""
    place = place.rstrip("/")
    return place in ("", ".") or path == place or path.startswith(f"{place}/")


def load_exceptions(path: Path = EXCEPTIONS) -> RuleExemptions:
    """Returns the exceptions in the file at `path`. Raises ValueError if one has no reason."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    rows = table.get("exception", [])
    commits = table.get("commit", [])
    for row in (*rows, *commits):
        if not row.get("reason", "").strip():
            raise ValueError(f"{path}: an exception has no reason: {row}")
    return RuleExemptions(
        allowed=tuple(
            AllowedFinding(row["path"], row["rule"], row.get("text", ""), row["reason"])
            for row in rows
        ),
        commits={row["hash"]: row["reason"] for row in commits},
    )
