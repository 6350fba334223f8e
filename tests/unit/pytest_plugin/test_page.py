"""Runs the tests on the page about the plugin, and compares its tables with the code."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

import kproto.pytest_plugin
from kproto.pytest_plugin.options import BrokerOptions
from tests.support.pages import blocks, page_text

from .conftest import RunTests

PAGE = "docs/how-to/pytest.md"
PROGRAMS = blocks(page_text(PAGE), "python")


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=["first test", "helpers"])
def test_tests_of_the_page_pass(run_tests: RunTests, program: str) -> None:
    expected = len(re.findall(r"^def test_", program, re.MULTILINE))
    run_tests(program).assert_outcomes(passed=expected)


def test_page_lists_every_fixture_and_option() -> None:
    rows = [line for line in page_text(PAGE).splitlines() if line.startswith("| `")]
    listed = {name for row in rows for name in re.findall(r"`(\w+)[`=]", row.split(" | ")[0])}
    fixtures = set(kproto.pytest_plugin.__all__) - {"session_kafka_options"}
    options = {each.name for each in fields(BrokerOptions)}
    assert fixtures | options <= listed
