"""The programs of docs/testing.md run as printed, each of its tests at least once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_a_program_runs(program: str) -> None:
    scope: dict[str, Any] = {}
    exec(compile(program, "docs/testing.md", "exec"), scope)
    for name in [name for name in scope if name.startswith("test_")]:
        scope[name]()


def test_the_strategies_are_tested_and_named() -> None:
    from kproto.testing import strategies

    assert len(re.findall(r"^def test_", PROGRAMS[0], re.MULTILINE)) == 6
    for name in strategies.__all__:
        assert f"`{name}" in PAGE
