"""Tests long names in definitions: the generated package is imported, and messages round-trip."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.selection import rest_slow

from ..packages import classes, generate, imported, try_every_version, write_definitions
from ..samples import data, field

KINDS = ("bool", "int32", "float64", "string", "bytes", "uuid", "[]int8", "[]string", "records")


def fields(name: str, *, tagged: bool = False, **more: Any) -> list[dict[str, Any]]:
    """Returns a field of each type in `KINDS`; if `tagged`, omits the type records.

    The field names differ from `name` only in the last letter.
    """
    made = []
    for tag, kind in enumerate(KINDS[:-1] if tagged else KINDS):
        where: dict[str, Any] = {"taggedVersions": "1+", "tag": tag, "versions": "1+"}
        made.append(field(f"{name[:-1]}{'abcdefghi'[tag]}", kind, **(where if tagged else more)))
    return made


def definitions(name: str) -> list[dict[str, Any]]:
    """Returns messages with the fields of `fields(name)`, and with structs called `name`."""
    every = fields(name, nullableVersions="1+")
    some = [entry for entry in every if entry["type"] in {"string", "bytes", "[]int8"}]
    inner = field("A", name, fields=fields(name), versions="1+", tag=0, taggedVersions="1+")
    return [
        data(*fields(name), validVersions="0-2"),
        data(*fields(name, tagged=True), name="Tagged", validVersions="0-2"),
        data(*fields(name, versions="1+", ignorable=True), name="Later", validVersions="0-2"),
        data(*fields(name, versions="2+"), name="Latest", validVersions="0-2"),
        data(inner, name="Inner", validVersions="0-2"),
        data(field(name, f"[]{name}", fields=fields(name)), name="Many", validVersions="0-2"),
        data(*some, name="Nullable", validVersions="0-2"),
    ]


@pytest.mark.parametrize("letters", rest_slow(["a", "Aa"], 0, 1))
@pytest.mark.parametrize("length", rest_slow([66, 78, 120, *range(40, 120, 6)], 0, 3))
@pytest.mark.slow
def test_names_of_any_length(tmp_path: Path, length: int, letters: str) -> None:
    name = ("N" + letters * length)[: length - 1] + "z"
    write_definitions(tmp_path / "long", definitions(name))
    assert generate(tmp_path / "long", tmp_path / f"own{length}{letters}") == 0
    with imported(tmp_path / f"own{length}{letters}") as package:
        assert sum(map(try_every_version, classes(package))) > 100
