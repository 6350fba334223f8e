"""Tests that the definition model reads and writes Kafka's format without loss."""

from __future__ import annotations

import json

import pytest

from kproto.schema.definitions import union
from kproto.schema.specs import (
    ZERO_UUID_BYTES,
    FieldSpec,
    FormerName,
    MessageSpec,
    parse_integer,
)
from kproto.schema.versions import Versions


def test_every_definition_round_trips_through_json() -> None:
    for name, spec in union().items():
        assert MessageSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec, name


def field(**keys: object) -> FieldSpec:
    return FieldSpec.from_json({"name": "F", "type": "int32", "versions": "0+", **keys})


def test_every_key_of_a_field_is_kept() -> None:
    node = {
        "name": "F",
        "type": "[]Part",
        "versions": "1-5",
        "mapKey": True,
        "nullableVersions": "2+",
        "tag": 3,
        "taggedVersions": "4+",
        "flexibleVersions": "none",
        "default": "null",
        "ignorable": True,
        "entityType": "topicName",
        "zeroCopy": True,
        "about": "What it is.",
        "aliases": ["Former"],
        "fields": [{"name": "G", "type": "uuid", "versions": "0+"}],
    }
    assert FieldSpec.from_json(node).to_json() == node


def test_scalars_may_be_text() -> None:
    assert field(ignorable="true", mapKey="false", tag="0", taggedVersions="1+") == field(
        ignorable=True, mapKey=False, tag=0, taggedVersions="1+"
    )
    assert field(ignorable="yes").ignorable is False


def test_versions_default_to_the_tagged_versions() -> None:
    spec = FieldSpec.from_json({"name": "F", "type": "int8", "tag": 0, "taggedVersions": "3+"})
    assert str(spec.versions) == "3+"


@pytest.mark.parametrize(
    ("keys", "default"),
    [
        ({}, 0),
        ({"default": "-1"}, -1),
        ({"default": -1}, -1),
        ({"default": "0x7fffffff"}, 2**31 - 1),
        ({"default": "-0x10"}, -16),
        ({"default": "010"}, 8),
        ({"type": "uint32", "default": "0xffffffff"}, 2**32 - 1),
        ({"type": "bool"}, False),
        ({"type": "bool", "default": "true"}, True),
        ({"type": "bool", "default": True}, True),
        ({"type": "float64"}, 0.0),
        ({"type": "float64", "default": "1.5"}, 1.5),
        ({"type": "string"}, ""),
        ({"type": "string", "default": "text"}, "text"),
        ({"type": "string", "default": "null", "nullableVersions": "0+"}, None),
        ({"type": "string", "default": None, "nullableVersions": "0+"}, ""),
        ({"type": "string", "default": "null"}, "null"),
        ({"type": "string", "nullableVersions": "0+"}, ""),
        ({"type": "uuid"}, ZERO_UUID_BYTES),
        ({"type": "uuid", "default": "AAAAAAAAAAAAAAAAAAAAAQ"}, bytes(15) + b"\1"),
        ({"type": "bytes"}, b""),
        ({"type": "bytes", "default": "null", "nullableVersions": "0+"}, None),
        ({"type": "records", "nullableVersions": "0+"}, None),
        ({"type": "[]int32"}, b""),
        ({"type": "[]int32", "default": "null", "nullableVersions": "0+"}, None),
        ({"type": "Part", "default": "null", "nullableVersions": "0+"}, None),
    ],
)
def test_defaults_are_parsed(keys: dict[str, object], default: object) -> None:
    made = field(**keys).default_value()
    assert made == default
    assert type(made) is type(default)


@pytest.mark.parametrize(
    ("text", "number"), [("0", 0), ("+5", 5), ("-0", 0), ("0X1f", 31), ("-017", -15)]
)
def test_integers_are_read_as_java_reads_them(text: str, number: int) -> None:
    assert parse_integer(text) == number


@pytest.mark.parametrize("text", ["08", "018", "1.0", "", "0x", "ten"])
def test_other_texts_than_integers_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_integer(text)


def test_types_have_their_kinds() -> None:
    kinds = {
        "int32": (False, False, False),
        "[]int32": (True, False, False),
        "Part": (False, True, False),
        "[]Part": (True, False, True),
    }
    for name, expected in kinds.items():
        spec = field(type=name)
        assert (spec.is_array, spec.is_struct, spec.is_struct_array) == expected
        assert spec.element_type == name.removeprefix("[]")


def test_structs_precede_the_structs_that_use_them() -> None:
    for spec in union().values():
        seen: set[str] = set()
        for struct in spec.structs():
            for inner in struct.fields:
                if inner.is_struct or inner.is_struct_array:
                    assert inner.element_type in seen, spec.name
            assert struct.name not in seen
            seen.add(struct.name)


def test_a_struct_is_found_by_name() -> None:
    spec = union()["MetadataResponse"]
    assert spec.struct("MetadataResponseBroker").fields[0].name == "NodeId"
    with pytest.raises(KeyError, match="MetadataResponse has no struct Broker"):
        spec.struct("Broker")


def test_the_latest_stable_version_is_computed() -> None:
    spec = MessageSpec("XRequest", "request", Versions(0, 4))
    assert spec.latest_stable == 4
    assert MessageSpec("X", "data", Versions(0, 0), latest_version_unstable=True).latest_stable < 0


def test_a_former_name_is_kept() -> None:
    entry = FormerName("Old", "data", Versions(2, 3), 0)
    assert FormerName.from_json(entry.to_json()) == entry
