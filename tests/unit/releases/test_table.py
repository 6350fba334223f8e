"""Tests the generated table of releases: a row per change, and each API by its newest name."""

from __future__ import annotations

import json

from kproto.schema.versions import NO_VERSIONS, Versions
from tests.support.environment import ROOT
from tools.releases.facts import ReleaseApi
from tools.releases.names import DEFINITIONS_SINCE, RELEASES
from tools.releases.table import format_table

V0, V0_1, V1 = Versions(0, 0), Versions(0, 1), Versions(1, 1)


def test_a_row_stands_where_something_changed() -> None:
    found = {
        "1.0.0": {3: ReleaseApi("Old", NO_VERSIONS, placeholder=V0)},
        "1.0.1": {3: ReleaseApi("Old", V0)},
        "1.1.0": {3: ReleaseApi("Old", V0), 5: ReleaseApi("Other", V1, flexible=V1, unstable=V1)},
        "2.0.0": {3: ReleaseApi("New", V0_1, deprecated=V0, listeners=("broker",))},
    }
    assert json.loads(format_table(list(found), found)) == {
        "releases": ["1.0.0", "1.0.1", "1.1.0", "2.0.0"],
        "apis": [
            {
                "key": 3,
                "name": "New",
                "rows": [
                    {"since": "1.0.0", "versions": "none", "placeholder": "0", "name": "Old"},
                    {"since": "1.0.1", "versions": "0", "name": "Old"},
                    {
                        "since": "2.0.0",
                        "versions": "0-1",
                        "deprecated": "0",
                        "listeners": ["broker"],
                    },
                ],
            },
            {
                "key": 5,
                "name": "Other",
                "rows": [
                    {"since": "1.1.0", "versions": "1", "flexible": "1", "unstable": "1"},
                    {"since": "2.0.0", "versions": "none"},
                ],
            },
        ],
    }


def test_the_releases_stand_by_number_and_are_those_of_the_file() -> None:
    assert list(RELEASES) == sorted(RELEASES, key=lambda name: [*map(int, name.split("."))])
    assert DEFINITIONS_SINCE in RELEASES
    written = json.loads((ROOT / "schemas" / "versions.json").read_text())
    assert written["releases"] == list(RELEASES)
