"""Tests that the table and the examples of docs/reference/client-properties.md are correct."""

from __future__ import annotations

from kproto.security import ScramSha512, Tls
from kproto.security.properties import read_values
from kproto.security.properties_file import parse_properties
from tools.properties.page import PAGE, with_table


def test_the_table_is_that_of_the_data() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_table(page), "run python -m tools.properties.page"


def test_the_file_of_the_page_is_read() -> None:
    _, _, rest = PAGE.read_text(encoding="utf-8").partition("```properties\n")
    entries = parse_properties(rest.partition("```")[0])
    found = read_values({name: entry.value for name, entry in entries.items()})
    assert isinstance(found.settings["tls"], Tls)
    assert found.settings["sasl"] == ScramSha512("alice", "secret")
    assert not found.unused
