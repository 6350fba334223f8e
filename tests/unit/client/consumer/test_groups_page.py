"""Tests docs/how-to/groups.md: its settings, its consumer methods, and the program at SIGTERM."""

from __future__ import annotations

import inspect
import re
from typing import get_overloads

import pytest

from kproto import Client, GroupConsumer
from kproto.client.consumer.processing_stream import ProcessingStream
from kproto.client.groups.settings import GroupSettings
from tests.support.pages import blocks, page_text, run_program
from tools.docs.settings import settings_table

PAGE = page_text("docs/how-to/groups.md")

OF_ANY_CONSUMER = {
    "self",
    "topics",
    "group",
    "key",
    "value",
    "undecodable",
    "max_partition_fetch_bytes",
    "max_wait_ms",
    "read_committed",
    "fetch_min_bytes",
    "fetch_max_bytes",
    "queued_max_bytes",
    "max_poll_records",
    "allow_auto_create_topics",
}


def of_a_group() -> dict[str, object]:
    """Returns the default of each group setting, from the signature of `Client.consumer`."""
    (overload,) = [
        each
        for each in get_overloads(Client.consumer)
        if each.__annotations__.get("group") == "str"
    ]
    return {
        name: parameter.default
        for name, parameter in inspect.signature(overload).parameters.items()
        if name not in OF_ANY_CONSUMER and parameter.kind is not parameter.VAR_KEYWORD
    }


def test_program_that_stops_at_sigterm_redelivers_the_record_in_progress(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (program,) = [each for each in blocks(PAGE, "python") if "SIGTERM" in each]
    run_program(program, "docs/how-to/groups.md")
    *values, committed = capsys.readouterr().out.splitlines()
    assert values == ["b'1'", "b'2'", "b'3'"]
    assert "offset=2" in committed


def test_every_setting_with_its_default() -> None:
    table = settings_table("group").replace("\\|", "or")
    told = dict(re.findall(r"^\| `(\w+)` \| [^|]* \| `([^|]*)` \|", table, re.MULTILINE))

    def shown(value: object) -> str:
        if isinstance(value, str):
            return f'"{value}"'
        return f"{value:,}" if type(value) is int else str(value)

    assert told == {name: shown(value) for name, value in of_a_group().items()}


def test_the_defaults_are_those_of_the_settings() -> None:
    settings = GroupSettings("g")
    told = of_a_group()
    for name in told.keys() & set(GroupSettings.__slots__):
        assert getattr(settings, name) == told[name]
    own = {"start", "on_assigned", "on_revoked", "on_lost"}
    assert told.keys() - own == set(GroupSettings.__slots__) - {
        "group_id",
        "explicit_settings",
        "resolved_assignors",
    }


def test_every_call_is_named() -> None:
    table = PAGE[PAGE.index("| call |") :].partition("\n\n")[0]
    told = set(re.findall(r"`(?:await )?(\w+)[(`]", table))
    iterations = {"record_lists", "values", "raw_batches"}
    names = {*vars(GroupConsumer), *vars(ProcessingStream)}
    public = {name for name in names if not name.startswith("_")} | {"poll", "positions"}
    assert told - {"CommittedOffset", "offset", "leader_epoch", "metadata"} == public - iterations
