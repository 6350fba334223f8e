"""Tests the first releases of stored records: every version has one, in ascending order."""

from __future__ import annotations

import json

import pytest

from kproto.schema import study
from kproto.schema.definitions import union
from kproto.schema.unknown_names import UnknownNameError
from tests.support.environment import ROOT

STORED = {
    name: spec
    for name, spec in union().items()
    if spec.type not in {"request", "response", "header"}
}


def number(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def test_every_version_of_every_stored_message_has_a_release_line() -> None:
    assert list(study.stored_releases()) == sorted(STORED)
    lines = {release.rpartition(".")[0] for release in study.releases()}
    for name, rows in study.stored_releases().items():
        assert list(rows) == list(STORED[name].valid_versions), name
        assert set(rows.values()) <= lines, name
        assert list(rows.values()) == sorted(rows.values(), key=number), name


@pytest.mark.parametrize("release", ["3.9.2", "4.4.0"])
def test_versions_are_those_that_the_release_defines(release: str) -> None:
    line = number(release.rpartition(".")[0])
    defined: dict[str, set[int]] = {}
    for file in (ROOT / "schemas" / release).rglob("*.json"):
        data = json.loads(file.read_text())
        if isinstance(data, dict) and data.get("type") in {"data", "metadata", "coordinator-value"}:
            versions = data["validVersions"]
            low, _, high = versions.partition("-")
            defined[data["name"]] = set(range(int(low), int(high or low) + 1))
    looked = 0
    for name, versions in defined.items():
        for version in versions & set(study.stored_releases().get(name, {})):
            assert number(study.stored_releases()[name][version]) <= line, (name, version)
            looked += 1
        for version, since in study.stored_releases().get(name, {}).items():
            if version > max(versions):
                assert number(since) > line, (name, version)
    assert looked > 40


def test_stored_since() -> None:
    assert study.stored_since("GroupMetadataValue", 4) == "3.4"
    assert study.stored_since("GroupMetadataValue", 99) is None
    assert study.stored_since("FetchRequest", 13) is None
    with pytest.raises(UnknownNameError, match="no message is called"):
        study.stored_since("GroupMetadataValues", 0)
