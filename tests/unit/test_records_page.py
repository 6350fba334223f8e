"""The programs of docs/records.md run as printed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "records.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_a_program_runs(program: str) -> None:
    scope: dict[str, Any] = {}
    exec(compile(program, "docs/records.md", "exec"), scope)


def test_the_table_of_levels_is_that_of_the_codecs() -> None:
    from kproto.records import CODECS

    for codec in CODECS:
        if codec.levels is None:
            continue
        (row,) = re.findall(rf"^\| {codec.name} \|.*\|$", PAGE, re.MULTILINE)
        lowest, highest = codec.levels
        assert f"| {lowest} to {highest}" in row
        assert row.endswith(f"| {codec.default_level} |")
