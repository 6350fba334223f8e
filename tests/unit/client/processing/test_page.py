"""Tests that the docs list the settings of `run`, and the headers of a failed record."""

from __future__ import annotations

import inspect
import re

from kproto.client.processing.failure_headers import FAILURE_HEADERS
from kproto.client.processing.settings import RunSettings
from tests.support.pages import page_text
from tools.docs.settings import settings_table

PAGE = page_text("docs/how-to/handling.md")


def test_every_setting_with_its_default() -> None:
    table = settings_table("run").replace("\\|", "or")
    told = dict(re.findall(r"^\| `(\w+)` \| [^|]* \| `([^|]*)` \|", table, re.MULTILINE))
    parameters = inspect.signature(RunSettings.of).parameters

    def shown(value: object) -> str:
        if isinstance(value, str):
            return f'"{value}"'
        return f"{value:,}" if type(value) is int else str(value)

    assert told == {
        "decode": "None",
        **{name: shown(each.default) for name, each in parameters.items()},
    }


def test_every_header() -> None:
    table = PAGE[PAGE.index("| header |") :].partition("\n\n")[0]
    assert tuple(re.findall(r"^\| `(kproto[\w.]+)` \|", table, re.MULTILINE)) == FAILURE_HEADERS
