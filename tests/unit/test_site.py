"""Tests the documentation site: links, navigation, marks, tables filled by code, API reference.

`make docs` builds the site; these tests do not need its builder.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from kproto.broker.config_table import BROKER, config_defs
from tests.support.environment import ROOT
from tests.support.pages import page_text
from tools.docs.commands import PROGRAMS, help_of, subcommands
from tools.docs.configs import configs_table
from tools.docs.filling import MARK, fill
from tools.docs.links import anchors, broken_links, pages, rewrite_links
from tools.docs.protocol_tables import error_codes, message_index
from tools.docs.settings import TABLES, settings, settings_table

PAGES = pages()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    assert broken_links(page) == []


def test_broken_links_are_told(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    text = "## Two `words`: a [link](page.md#none)\n\n```text\n# no [heading](x)\n```\n"
    text += (
        "## Two words: a link\n`[b](c.md)` [d](none.md) [e](#two-words-a-link_1) [f](https://g)\n"
    )
    page.write_text(text, encoding="utf-8")
    assert anchors(page) == {"two-words-a-link", "two-words-a-link_1"}
    assert broken_links(page) == [
        f"{page}: page.md#none: there is no such heading",
        f"{page}: none.md: there is no such file",
    ]
    assert rewrite_links(text, lambda target: target) == text
    assert rewrite_links(text, str.upper).count(".MD") == 2


def test_every_page_is_in_the_navigation() -> None:
    named = set(re.findall(r"([\w/-]+\.md)$", page_text("mkdocs.yml"), re.MULTILINE))
    here = {str(page.relative_to(ROOT / "docs")) for page in PAGES if page.parent != ROOT}
    at_the_root = {"project/contributing.md", "project/security.md", "project/changelog.md"}
    assert named == here | at_the_root


def test_every_mark_has_its_table() -> None:
    found = [match[0] for page in PAGES for match in MARK.finditer(page.read_text("utf-8"))]
    assert len(found) == len(set(found)) == len(TABLES) + 6
    with pytest.raises(LookupError, match="there is no nothing"):
        fill("<!-- tools.docs: nothing -->")
    assert fill("a\n<!-- tools.docs: error-codes -->\nb") == f"a\n{error_codes()}\nb"


def test_every_config_of_a_broker_is_in_the_table() -> None:
    found = set(re.findall(r"`([a-z0-9.]+)`", configs_table("brokers")))
    assert set(config_defs(BROKER)) <= found
    with pytest.raises(LookupError, match="no table of the configs of nothing"):
        configs_table("nothing")


@pytest.mark.parametrize("of", TABLES)
def test_every_setting_has_a_row(of: str) -> None:
    row = r"^\| `(\w+)` \| `.+` \| `.+` \| (?:ms|s|min|bytes|) \| "
    named = re.findall(row, settings_table(of), re.MULTILINE)
    assert named == [each.name for each in settings(of)]
    for each in settings(of):
        assert (each.unit == "ms") is each.name.endswith("_ms")


def test_settings_bear_the_names_of_kafka() -> None:
    found = {(of, each.name): each.kafka for of in TABLES for each in settings(of)}
    assert found["client", "connections_max_idle_ms"] == ("connections.max.idle.ms",)
    assert found["group", "instance_id"] == ("group.instance.id",)
    assert found["producer", "linger_ms"] == ("linger.ms", "queue.buffering.max.ms")


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_command_prints_its_help(program: str) -> None:
    commands = subcommands(program)
    assert commands
    for command in commands:
        assert help_of(program, command).startswith(f"usage: {program} {command}")


def test_the_commands_of_kproto_are_all_listed() -> None:
    assert subcommands("kproto") == list(import_module("kproto.cli.whole_parser").COMMANDS)


def test_every_message_is_in_the_index() -> None:
    messages = import_module("kproto.messages")
    assert set(re.findall(r"^\| `(\w+)` \|", message_index(), re.MULTILINE)) == {
        name for name in messages.__all__ if hasattr(getattr(messages, name), "VALID_VERSIONS")
    }


@pytest.mark.parametrize(
    ("package", "page"),
    [
        ("kproto", "kproto"),
        ("kproto.client.admin", "admin"),
        ("kproto.codecs", "codecs"),
        ("kproto_cloudevents", "cloudevents"),
        ("kproto_pipeline", "pipeline"),
    ],
)
def test_every_public_name_is_in_the_reference(package: str, page: str) -> None:
    told = re.findall(
        rf"^::: {package}\.(\w+)$", page_text(f"docs/reference/api/{page}.md"), re.MULTILINE
    )
    assert sorted(told) == sorted(import_module(package).__all__)
