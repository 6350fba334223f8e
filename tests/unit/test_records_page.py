"""Tests that docs/how-to/records.md describes the code; test_pages.py runs the page's programs.

This module is not in tests/unit/records, because those tests also run on compiled modules, in a
folder without the docs.
"""

from __future__ import annotations

import re

from kproto.records import CODECS
from tests.support.pages import page_text


def test_the_table_of_levels_is_that_of_the_codecs() -> None:
    page = page_text("docs/how-to/records.md")
    for codec in CODECS:
        if codec.levels is None:
            continue
        (row,) = re.findall(rf"^\| {codec.name} \|.*\|$", page, re.MULTILINE)
        lowest, highest = codec.levels
        assert f"| {lowest} to {highest}" in row
        assert row.endswith(f"| {codec.default_level} |")
