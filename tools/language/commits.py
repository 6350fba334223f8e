"""Checks the subjects of commits: an area, then an imperative, at most 72 characters. Runs git."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["check_subjects", "subjects_since"]


def subjects_since(root: Path, base: str) -> list[tuple[str, str]] | None:
    """Returns hash and subject of each commit in `base`..HEAD except merges, newest first.

    Returns None if `base` does not exist: in a shallow clone, or without a repository.
    """
    if _git(root, "rev-parse", "--verify", "--quiet", f"{base}^{{commit}}") is None:
        return None
    log = _git(root, "log", "--no-merges", "--format=%h %s", f"{base}..HEAD")
    if log is None:
        return None
    return [(line.split(" ", 1)[0], line.partition(" ")[2]) for line in log.splitlines()]


def check_subjects(
    subjects: list[tuple[str, str]], rule: Mapping[str, Any], allowed: Mapping[str, str]
) -> list[str]:
    """Returns a line per subject that breaks `rule`; ignores commits whose hash is in `allowed`."""
    wrong = []
    for name, subject in subjects:
        if any(name.startswith(each) or each.startswith(name) for each in allowed):
            continue
        if len(subject) > rule["most"]:
            wrong.append(
                f"commit {name}: {len(subject)} characters, at most {rule['most']}: {subject}"
            )
        elif not re.match(rule["subject"], subject):
            wrong.append(f"commit {name}: no area in front (`consumer: reset …`): {subject}")
    return wrong


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError:  # git is not installed
        return None
    return done.stdout if done.returncode == 0 else None
