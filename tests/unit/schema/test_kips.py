"""Tests the table of KIPs: every version has a row, and every row has a source.

The fields that a row names must be fields of the request or the response.
"""

from __future__ import annotations

import re
import tomllib

import pytest

from kproto.schema import study
from kproto.schema.definitions import union
from kproto.schema.kips import version_note, version_notes
from kproto.schema.unknown_names import UnknownNameError
from tests.support.environment import ROOT

APIS = [name for _, name in sorted(study.api_names().items())]

TABLES = tomllib.loads((ROOT / "kproto" / "schema" / "kips.toml").read_text())


def test_the_table_has_every_api_by_key() -> None:
    assert [name for name in TABLES if name != "kips"] == APIS


def test_versions_without_a_kip_are_known() -> None:
    """Most of these versions are older than KIPs, or change what no KIP describes."""
    without = {
        f"{note.api} {note.version}" for api in APIS for note in version_notes(api) if not note.kips
    }
    assert len(without) == 24
    assert without >= {"Produce 0", "OffsetCommit 2", "Metadata 4", "ControlledShutdown 0"}


@pytest.mark.parametrize("api", APIS)
def test_every_version_has_a_row(api: str) -> None:
    notes = version_notes(api)
    assert [note.version for note in notes] == list(union()[f"{api}Request"].valid_versions)
    for note in notes:
        assert note.change.endswith(".")
        assert len(note.change) <= 100
        assert re.fullmatch(r"definition \d\.\d\.\d|https://\S+", note.source)
        assert note.kips or note.source.startswith("definition"), note


@pytest.mark.parametrize("api", APIS)
def test_fields_that_a_row_names_are_those_of_its_messages(api: str) -> None:
    messages = (union()[f"{api}Request"], union()[f"{api}Response"])
    held = [
        fields
        for message in messages
        for fields in (message.fields, *(struct.fields for struct in message.structs()))
    ]
    known = {field.name for fields in held for field in fields}
    for note in version_notes(api):
        named = set(re.findall(r"\b[A-Z][a-z0-9]+(?:[A-Z][A-Za-z0-9]*)+", note.change))
        apis = {"ZooKeeper", "DescribeCluster", "SaslAuthenticate"}
        assert named - apis <= known, note


@pytest.mark.parametrize("api", APIS)
def test_a_flexible_version_says_so(api: str) -> None:
    flexible = union()[f"{api}Request"].flexible_versions
    saying = [note.version for note in version_notes(api) if "flexible" in note.change]
    assert saying == ([flexible.lowest] if flexible and flexible.lowest else [])


def test_every_kip_is_used_and_stands_in_order() -> None:
    used = {kip.number for api in APIS for note in version_notes(api) for kip in note.kips}
    assert [int(number) for number in TABLES["kips"]] == sorted(used)


def test_asking() -> None:
    note = version_note("FetchRequest", 13)
    assert note is not None
    assert note == version_note(1, 13)
    assert [str(kip) for kip in note.kips] == ["KIP-516"]
    assert note.kips[0].title == "Topic Identifiers"
    assert note.to_json()["kips"][0]["address"].startswith("https://cwiki.apache.org/")
    assert version_note("Fetch", 99) is None
    assert version_note("FetchRequest", -1) is None
    with pytest.raises(UnknownNameError, match="the nearest: Fetch"):
        version_notes("Fetsch")
