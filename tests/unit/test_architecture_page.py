"""Tests that docs/explanation/architecture.md and CONTRIBUTING.md name existing code."""

from __future__ import annotations

import re
from functools import cache

import pytest

from tests.support.environment import ROOT

SOURCES = ("kproto", "codegen", "cloudevents", "pipeline", "tools", "tests", "examples")
SUFFIXES = (".py", ".js", ".toml", ".json", ".jsonl")


@cache
def known_names() -> frozenset[str]:
    """Returns the names of all files and folders in `SOURCES`, and all identifiers in the files."""
    found: set[str] = set()
    for folder in SOURCES:
        for path in (ROOT / folder).rglob("*"):
            if "__pycache__" in path.parts:
                continue
            found |= {path.name, path.stem}
            if path.suffix in SUFFIXES and path.is_file():
                found |= set(re.findall(r"[A-Za-z_]\w*", path.read_text(encoding="utf-8")))
    return frozenset(found)


@pytest.mark.parametrize("page", ["docs/explanation/architecture.md", "CONTRIBUTING.md"])
def test_names_of_the_page_are_present(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"`([A-Za-z_][\w.]*)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL)))
    named |= {f"{stem}.py" for stem in re.findall(r"^    .*?\b(\w+)\.py\b", text, re.MULTILINE)}
    unknown = {
        name
        for name in named
        if name not in known_names() and name.rpartition(".")[2] not in known_names()
    }
    assert {name for name in unknown if not (ROOT / name).exists()} == set()
    assert len(named) > 40
