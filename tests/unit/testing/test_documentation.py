"""Tests that docs/how-to/testing.md names existing code; test_pages.py runs its programs."""

from __future__ import annotations

import re

from kproto.testing import strategies
from tests.support.pages import blocks, page_text


def test_the_strategies_are_tested_and_named() -> None:
    page = page_text("docs/how-to/testing.md")
    assert len(re.findall(r"^def test_", blocks(page, "python")[0], re.MULTILINE)) == 6
    for name in strategies.__all__:
        assert f"`{name}" in page
