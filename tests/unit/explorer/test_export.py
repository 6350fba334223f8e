"""Tests that the data exported for the page's scripts equals the definitions."""

from __future__ import annotations

from typing import Any

from kproto.explorer.build import page_data
from kproto.explorer.export import definitions, error_codes, release_ranges
from kproto.protocol.error_meanings import error_meanings
from kproto.protocol.error_table import ERROR_TABLE
from kproto.schema.definitions import union
from kproto.schema.secrets import SECRETS
from kproto.schema.specs import FieldSpec, MessageSpec
from kproto.schema.versions import Versions

ZERO = Versions.single(0)

#: The key in Kafka's format for each short key.
KEYS = {
    "n": "nullableVersions",
    "t": "tag",
    "tv": "taggedVersions",
    "f": "flexibleVersions",
    "d": "default",
    "i": "ignorable",
    "k": "mapKey",
    "e": "entityType",
    "z": "zeroCopy",
    "al": "aliases",
}


def field_in_full(made: list[Any]) -> dict[str, Any]:
    """Converts a field of the export to a field definition in Kafka's JSON format."""
    name, kind, versions, extras, fields = [*made, 0, 0][:5]
    out: dict[str, Any] = {"name": name, "type": kind, "versions": versions}
    for key, value in (extras or {}).items():
        if key in KEYS:
            out[KEYS[key]] = True if key in {"i", "k", "z"} else value
    if fields:
        out["fields"] = [field_in_full(one) for one in fields]
    return out


def test_every_definition_comes_back_from_the_export() -> None:
    specs = union()
    made = definitions(specs)
    assert [one["n"] for one in made] == list(specs)
    for one in made:
        spec = specs[one["n"]]
        again = {
            "name": one["n"],
            "type": one["t"],
            "module": one["m"],
            "validVersions": one["v"],
            "flexibleVersions": one["fl"],
            "apiKey": one.get("k"),
            "listeners": one.get("l", []),
            "deprecatedVersions": one.get("dv", "none"),
            "latestVersionUnstable": bool(one.get("u")),
            "fields": [field_in_full(field) for field in one["f"]],
            "commonStructs": [
                {"name": name, "versions": versions, "fields": list(map(field_in_full, fields))}
                for name, versions, fields in one.get("c", [])
            ],
            "formerly": [entry.to_json() for entry in spec.formerly],
        }
        assert MessageSpec.from_json(again) == spec
        assert [[e.name, str(e.versions), e.becomes] for e in spec.formerly] == one.get("fo", [])


def test_an_attribute_that_python_spells_otherwise_is_said() -> None:
    """The export names the attribute `copy_` of the field Copy: `copy` is a method of messages."""
    fields = (FieldSpec("Copy", "int8", ZERO), FieldSpec("TopicId", "int8", ZERO))
    spec = MessageSpec("OddRequest", "request", ZERO, fields=fields)
    (made,) = definitions({"OddRequest": spec})
    assert made["f"] == [["Copy", "int8", "0", {"a": "copy_"}], ["TopicId", "int8", "0"]]


def test_error_codes() -> None:
    made = error_codes(error_meanings().values())
    assert [tuple(each[:3]) for each in made] == [
        (code, name, int(retriable)) for code, name, retriable in ERROR_TABLE
    ]
    (leader,) = (each for each in made if each[0] == 6)
    since, meant, client, responses, formerly = leader[3:]
    assert (since, formerly) == ("0.8.2", ["NOT_LEADER_FOR_PARTITION"])
    assert "leader" in meant
    assert client.startswith("Refreshes metadata")
    assert responses[:2] == ["Produce 0+", "Fetch 0+"]


def test_releases_keep_their_order() -> None:
    assert release_ranges({"2.0.0": {3: (0, 6), 0: (0, 6)}, "1.0.0": {}}) == [
        ["2.0.0", [[0, 0, 6], [3, 0, 6]]],
        ["1.0.0", []],
    ]


def test_secrets_are_those_of_the_generated_classes() -> None:
    assert {tuple(each) for each in page_data()["secrets"]} == SECRETS
