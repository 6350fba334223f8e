"""Tests every rule: the definitions that it refuses and accepts, and its error texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from kproto_codegen.errors import DefinitionError
from kproto_codegen.rules.struct_rules import MAX_EXPANDED_FIELDS, MAX_STRUCT_DEPTH
from kproto_codegen.rules.table import DEFINITION_RULES, checked_spec

from tests.support.committed_releases import committed_release

from ..samples import data, faults, field, message, notes, parsed

Source = Mapping[str, Any]


def key(*fields: Any, **keys: Any) -> dict[str, Any]:
    """Returns the definition of a coordinator record's key."""
    base = {
        "type": "coordinator-key",
        "name": "SampleKey",
        "validVersions": "0",
        "flexibleVersions": "none",
    }
    return message(*fields, **{**base, **keys})


def struct(name: str, *fields: Any, versions: str = "0+") -> dict[str, Any]:
    """Returns a common struct."""
    return {"name": name, "versions": versions, "fields": list(fields)}


def in_struct(*fields: Any, **keys: Any) -> dict[str, Any]:
    """Returns a message with these fields in an array of structs."""
    return message(field("Items", "[]Item", fields=list(fields)), **keys)


def tagged(name: str, tag: Any, kind: str = "int32", versions: str = "1+", **keys: Any) -> Any:
    """Returns a tagged field."""
    return field(name, kind, versions, **{"taggedVersions": versions, "tag": tag, **keys})


REFUSED: list[tuple[Source, str]] = [
    # message_name, rpc_name
    (data(name="has-dash"), "'has-dash' is no name of a message"),
    (data(name="has_underscore"), "'has_underscore' is no name of a message"),
    (data(name="lower"), "'lower' is no name of a message"),
    (data(name="Größe"), "'Größe' is no name of a message"),
    (data(name="A.B"), "'A.B' is no name of a message"),
    (data(name="../Up"), "'../Up' is no name of a message"),
    (data(name="A\nimport os"), "is no name of a message"),
    (message(name="Sample"), "the name of a request must end with Request"),
    (message(name="SampleResponse"), "the name of a request must end with Request"),
    (message(name="SampleRequest", type="response"), "must end with Response"),
    # tabled_api_key
    (message(apiKey=None), "sample.json:2: a request must have an apiKey"),
    (message(apiKey=None, validVersions="none"), "a request must have an apiKey"),
    (
        message(apiKey=None, name="SampleResponse", type="response"),
        "a response must have an apiKey",
    ),
    (data(type="metadata"), "sample.json:2: a metadata must have an apiKey"),
    (data(type="metadata", validVersions="none"), "a metadata must have an apiKey"),
    # api_key_range
    (message(apiKey=-1), "-1 is no api key"),
    (message(apiKey=32768), "32768 is no api key"),
    # valid_versions_closed, flexible_versions_*
    (message(validVersions="0+"), "validVersions 0+ has no end"),
    (message(flexibleVersions=None), 'there is no "flexibleVersions"'),
    (message(flexibleVersions="0-2"), "flexibleVersions 0-2 has an end; write 0+ or none"),
    (message(flexibleVersions="2"), "flexibleVersions 2 has an end"),
    # listeners_of_request, unstable_request
    (data(listeners=["broker"]), "a data has no listeners"),
    (message(listeners=["phone"]), "'phone' is no listener"),
    (message(listeners=["broker", "broker"]), "the listener broker occurs twice"),
    (data(latestVersionUnstable=True), "a data cannot have latestVersionUnstable"),
    (
        message(type="response", name="SampleResponse", latestVersionUnstable=True),
        "a response cannot have latestVersionUnstable",
    ),
    # coordinator_record
    (key(apiKey=None), "a coordinator-key must have an apiKey"),
    (key(validVersions="0-1"), "the validVersions of a coordinator-key must be 0"),
    (key(flexibleVersions="0+"), "a coordinator-key cannot be flexible"),
    (
        key(type="coordinator-value", name="SampleValue", apiKey=None),
        "a coordinator-value must have an apiKey",
    ),
    # struct_defined_once, struct_name
    (
        message(
            field("A", "[]Item", fields=[field("X")]), field("B", "[]Item", fields=[field("X")])
        ),
        "field B: the struct Item is defined twice, first on line 9",
    ),
    (
        message(
            field("A", "Item", fields=[field("X")]), commonStructs=[struct("Item", field("X"))]
        ),
        "field A: the struct Item is defined twice",
    ),
    (
        message(
            field("A", "Item"),
            commonStructs=[struct("Item", field("X")), struct("Item", field("X"))],
        ),
        "field commonStructs.Item: the struct Item is defined twice",
    ),
    (message(commonStructs=[struct("item", field("X"))]), "'item' is no name of a struct"),
    (message(commonStructs=[struct("It_em", field("X"))]), "'It_em' is no name of a struct"),
    (
        message(field("A", "SampleRequest", fields=[field("X")])),
        "the struct SampleRequest has the name of its message",
    ),
    # struct_names_in_python
    (
        message(
            field("A", "[]TopicID", fields=[field("X")]),
            field("B", "[]TopicId", fields=[field("X")]),
        ),
        "field B: the struct TopicId and TopicID would have the same names in Python",
    ),
    (
        message(
            field("A", "[]Item", fields=[field("X", mapKey=True)]),
            field("B", "[]ItemCollection", fields=[field("X")]),
        ),
        "field B: the struct ItemCollection and Item would have the same names in Python",
    ),
    (
        message(
            field("A", "[]ItemTags", fields=[field("X")]),
            field("B", "[]Item", fields=[field("Y"), tagged("X", 0)]),
        ),
        "field B: the struct Item and ItemTags would have the same names in Python",
    ),
    (
        message(field("A", "SAMPLERequest", fields=[field("X")])),
        "field A: the struct SAMPLERequest and SampleRequest would have the same names",
    ),
    # name_lengths
    (data(name="A" * 121), "the name of a message has 121 characters; at most 120"),
    (message(field("A" * 121)), "the name of a field or struct has 121 characters; at most 120"),
    (
        message(field("A", "A" * 121, fields=[field("X")])),
        "the name of a type has 121 characters; at most 120",
    ),
    # field_names
    (message(field("a b")), "'a b' is no name of a field"),
    (message(field("9a")), "'9a' is no name of a field"),
    (message(field("a_b")), "'a_b' is no name of a field"),
    (message(field("Ä")), "'Ä' is no name of a field"),
    (message(field("A; import os")), "is no name of a field"),
    (message(field("A"), field("A")), "field A: is also the name of the field A"),
    (
        message(field("TopicId"), field("topicId")),
        "field topicId: is also the name of the field TopicId, as topic_id in Python",
    ),
    (in_struct(field("X"), field("X")), "field Items.X: is also the name of the field X"),
    (
        message(field("A", "S"), commonStructs=[struct("S", field("X"), field("X"))]),
        "field commonStructs.S.X: is also the name of the field X",
    ),
    # no_recursion
    (
        message(field("A", "S"), commonStructs=[struct("S", field("Inner", "[]S"))]),
        "field commonStructs.S: is recursive: S holds S",
    ),
    (
        message(
            field("A", "S"),
            commonStructs=[struct("S", field("X", "T")), struct("T", field("Y", "[]S"))],
        ),
        "field commonStructs.S: is recursive: S holds T holds S",
    ),
    # known_type reports a message that is used as a struct
    (
        message(field("A", "[]SampleRequest")),
        "field A: is recursive: SampleRequest holds SampleRequest, the message itself",
    ),
    (
        message(field("A", "S", fields=[field("B", "SampleRequest")])),
        "field A.B: is recursive: SampleRequest holds SampleRequest, the message itself",
    ),
    # element_has_bytes
    (
        message(field("A", "[]S"), commonStructs=[struct("S", field("X", versions="1+"))]),
        "sample.json:11: field A: its elements would have no bytes in version 0: the version is",
    ),
    (
        message(
            field("A", "[]S", fields=[field("X", versions="0"), field("Y", versions="2")]),
            flexibleVersions="none",
        ),
        "field A: its elements would have no bytes in version 1",
    ),
    (
        message(
            field("A", "[]S"),
            field("B", "[]S", "1+"),
            commonStructs=[struct("S", field("X", "T")), struct("T", field("Y", versions="1+"))],
        ),
        "field A: its elements would have no bytes in version 0",
    ),
    (
        message(field("A", "S"), commonStructs=[struct("S", field("X", "[]T")), struct("T")]),
        "field commonStructs.S.X: its elements would have no bytes in version 0",
    ),
    (
        message(field("A", "[]S", fields=[field("X", "T", fields=[field("Y", versions="1+")])])),
        "field A: its elements would have no bytes in version 0",
    ),
    (
        in_struct(
            field("X"),
            field(
                "Y",
                "[]S",
                fields=[
                    field("Z", "T", nullableVersions="1+", fields=[field("W", versions="none")])
                ],
            ),
        ),
        "field Items.Y: its elements would have no bytes in version 0",
    ),
    # nested_versions
    (
        message(field("A", "[]S", "2+", fields=[field("X", versions="0-1")])),
        "field A.X: no version of the structs around it, 2+, is in its versions 0-1",
    ),
    (
        message(
            field("A", "S", "1+"),
            commonStructs=[struct("S", field("X", versions="0"), versions="1+")],
        ),
        "field commonStructs.S.X: no version of the structs around it, 1+, is in its versions 0",
    ),
    (
        message(
            field(
                "A",
                "[]S",
                "0-1",
                fields=[field("M", "[]T", "0+", fields=[field("Y"), field("X", versions="2+")])],
            )
        ),
        "field A.M.X: no version of the structs around it, 0-1, is in its versions 2+",
    ),
    # common_struct_versions
    (
        message(field("A", "[]S", "0-1"), commonStructs=[struct("S", field("X"), versions="2+")]),
        "field A: no version of the struct S, 2+, is in its versions 0-1",
    ),
    (
        message(field("A", "S"), commonStructs=[struct("S", field("X"), versions="1+")]),
        "field A: is in version 0, before the first of the struct S, whose versions are 1+",
    ),
    (
        message(field("A", "[]S", "1+"), commonStructs=[struct("S", field("X"), versions="2")]),
        "field A: is in version 1, before the first of the struct S, whose versions are 2",
    ),
    (
        message(
            field("A", "S", "1+"),
            commonStructs=[
                struct("S", field("X"), field("Y", "[]T"), versions="1+"),
                struct("T", field("Z"), versions="2+"),
            ],
        ),
        "field commonStructs.S.Y: is in version 1, before the first of the struct T",
    ),
    (
        in_struct(
            field("X"), field("Y", "S"), commonStructs=[struct("S", field("Z"), versions="2+")]
        ),
        "field Items.Y: is in version 0, before the first of the struct S",
    ),
    (
        message(
            field("A", "S", "0+"),
            commonStructs=[struct("S", field("X"), versions="0")],
            validVersions="1-3",
        ),
        "field A: no version of the struct S, 0, is in its versions 0+",
    ),
    # struct_in_a_version
    (
        message(field("A", "S", "3+", fields=[field("X")])),
        "field A: the struct S is in no version: the versions of the field are 3+, those of the ",
    ),
    (
        message(field("A", "[]S", "none", fields=[field("X", versions="none")])),
        "field A: the struct S is in no version: the versions of the field are none",
    ),
    (
        in_struct(field("X"), field("Y", "[]S", "5-7", fields=[field("Z", versions="5")])),
        "field Items.Y: the struct S is in no version",
    ),
    (
        message(commonStructs=[struct("S", field("X"), versions="none")]),
        "field commonStructs.S: the struct S is in no version",
    ),
    (
        message(field("A", "S"), commonStructs=[struct("S", field("X"), versions="none")]),
        "field commonStructs.S: the struct S is in no version",
    ),
    # inline_in_common
    (
        message(
            field("A", "S"),
            commonStructs=[struct("S", field("X", "[]T", fields=[field("Y")]))],
        ),
        "field commonStructs.S.X: the struct T is inside a common one; define it in common",
    ),
    (
        message(commonStructs=[struct("S", field("X", "T", fields=[field("Y", "string")]))]),
        "field commonStructs.S.X: the struct T is inside a common one",
    ),
    # nullable_type
    *(
        (
            message(field("A", kind, nullableVersions="0+")),
            f"a field of type {kind} cannot be nullable",
        )
        for kind in ("bool", "int8", "uint16", "int32", "uint32", "int64", "float64", "uuid")
    ),
    # known_type, fields_of_struct
    (message(field("A", "Int32")), "field A: 'Int32' is no type; int32 is"),
    (message(field("A", "[]STRING")), "field A: 'STRING' is no type; string is"),
    (message(field("A", "int64le")), "field A: 'int64le' is no type, and no name"),
    (message(field("A", "uint64")), "field A: 'uint64' is no type, and no name"),
    (message(field("A", "Un known")), "field A: 'Un known' is no type, and no name"),
    (message(field("A", "[]")), "field A: an array without a type for its elements"),
    (message(field("A", "[][]int32")), "field A: an array of arrays"),
    (message(field("A", "Item")), "field A: the struct Item is not defined"),
    (message(field("A", "[]Item", fields=[])), "field A: the struct Item is not defined"),
    (
        message(field("A", "Item", fields=[field("X")]), field("B", "Item")),
        "field B: the struct Item is used twice; define it in commonStructs",
    ),
    (message(field("A", "int32", fields=[field("X")])), "a field of type int32 cannot have fields"),
    (
        message(field("A", "[]int32", fields=[field("X")])),
        "a field of type []int32 cannot have fields",
    ),
    # entity_type
    (
        message(field("A", "int32", entityType="topicName")),
        "a topicName is of type string, not int32",
    ),
    (message(field("A", "[]int32", entityType="producerId")), "a producerId is of type int64"),
    (message(field("A", "[]records")), "field A: an array of records"),
    (message(tagged("A", 0, "[]records")), "field A: an array of records"),
    (in_struct(field("X"), field("Y", "[]records")), "field Items.Y: an array of records"),
    # zero_copy_bytes, field_flexible_versions
    (
        message(field("A", "string", flexibleVersions="0+")),
        "field A: flexibleVersions 0+ are not all among those of the message, 1+",
    ),
    (
        in_struct(field("X", "bytes", flexibleVersions="2+"), flexibleVersions="none"),
        "field Items.X: flexibleVersions 2+ are not all among those of the message, none",
    ),
    (message(field("A", "string", zeroCopy=True)), "zeroCopy is for bytes, not for string"),
    (message(field("A", "int32", flexibleVersions="none")), "only string and bytes have flexible"),
    (message(field("A", "[]string", flexibleVersions="1+")), "not []string"),
    # valid_map_key
    (message(field("A", mapKey=True)), "a field of the message itself cannot be a mapKey"),
    (
        in_struct(field("Y"), tagged("X", 0, mapKey=True)),
        "field Items.X: a tagged field cannot be a mapKey",
    ),
    (in_struct(field("X", "[]int32", mapKey=True)), "a field of type []int32 cannot be a mapKey"),
    # tag_numbers
    (message(tagged("A", -1)), "field A: the tag -1 is negative"),
    (message(tagged("A", 0), tagged("B", 0)), "field B: the tag 0 is also the tag of A"),
    (message(tagged("A", 1)), "field A: the tag 1 leaves a gap; use 0 first"),
    (message(tagged("A", 0), tagged("B", 2)), "field B: the tag 2 leaves a gap; use 1 first"),
    (in_struct(field("Y"), tagged("X", 1)), "field Items.X: the tag 1 leaves a gap"),
    # tag_and_tagged_versions
    (message(field("A", tag=0)), "field A: has a tag, but no taggedVersions"),
    (
        message(field("A", versions="1+", taggedVersions="1+")),
        "field A: has taggedVersions, but no tag",
    ),
    # tagged_versions_range
    (message(tagged("A", 0, versions="1-2")), "field A: taggedVersions 1-2 has an end; write 1+"),
    (
        message(tagged("A", 0, versions="2+", taggedVersions="1+")),
        "field A: taggedVersions 1+ are not all among its versions 2+",
    ),
    (
        message(tagged("A", 0, versions="0+")),
        "field A: taggedVersions 0+ are not all among the flexibleVersions 1+",
    ),
    (
        message(tagged("A", 0), flexibleVersions="none"),
        "field A: taggedVersions 1+ are not all among the flexibleVersions none",
    ),
    (
        message(tagged("A", 0, "string", flexibleVersions="2+")),
        "field A: taggedVersions 1+ are not all among the flexibleVersions 2+",
    ),
    (
        message(tagged("A", 0, "bytes", flexibleVersions="none")),
        "field A: taggedVersions 1+ are not all among the flexibleVersions none",
    ),
    # tagged_null, tagged_records
    (
        message(tagged("A", 0, "string", nullableVersions="2+")),
        "field A: is nullable in some of its taggedVersions 1+, in 2+",
    ),
    (message(tagged("A", 0, "records")), "field A: records cannot be tagged"),
]


@pytest.mark.parametrize(("source", "reason"), REFUSED)
def test_invalid_definitions_are_refused(source: Source, reason: str) -> None:
    found = faults(source)
    assert any(reason in fault for fault in found), found
    assert all(fault.startswith("sample.json:") for fault in found), found


def test_entity_type_of_another_project_is_noted() -> None:
    own = message(field("A", "int64", entityType="streamId"))
    assert faults(own) == []
    (note,) = notes(own)
    assert "'streamId' is no entity type of Kafka, which has " in note


def test_one_fault_is_one_finding() -> None:
    # A definition that breaks one rule has one finding.
    doubled = [reason for source, reason in REFUSED if len(faults(source)) != 1]
    assert doubled == []


ACCEPTED: list[Source] = [
    message(),
    message(listeners=["zkBroker", "broker", "controller"], latestVersionUnstable=True),
    message(name="SampleResponse", type="response"),
    data(validVersions="0"),
    data(apiKey=3, type="metadata"),
    key(),
    key(type="coordinator-value", name="SampleValue", validVersions="0-4"),
    message(validVersions="none", flexibleVersions=None),
    data(validVersions="none", flexibleVersions="0-3", listeners=["broker"]),
    message(field("A", "string", nullableVersions="0+", versions="1-2")),
    message(field("A", "string", flexibleVersions="none")),
    message(field("A", "bytes", flexibleVersions="2+", zeroCopy=True)),
    message(field("class"), field("id"), field("type"), field("Self")),
    message(field("A", "S"), field("B", "[]S"), commonStructs=[struct("S", field("X"))]),
    message(tagged("B", 1), tagged("A", 0)),
    message(tagged("A", 0, "string", nullableVersions="0+", default="null")),
    message(tagged("A", 0, versions="1+", taggedVersions="2+")),
    message(field("A", versions=None, taggedVersions="1+", tag=0)),
    message(field("A", "[]string", entityType="groupId")),
    message(field("A", "string", entityType="unknown")),
    message(field("A", "string", flexibleVersions="1+")),
    message(tagged("A", 0, "string", versions="2+", flexibleVersions="2+")),
    message(field("A", "records")),
    # A common struct may be in no valid version, or end before the last valid version.
    message(commonStructs=[struct("S", field("X"), versions="5+")]),
    message(field("A", "S", "5+"), commonStructs=[struct("S", field("X"), versions="5+")]),
    message(field("A", "S"), commonStructs=[struct("S", field("X"), versions="0-1")]),
    message(
        field("A", "S", "1+"),
        commonStructs=[
            struct("S", field("X", "T", "2+"), field("Y"), versions="1+"),
            struct("T", field("Z"), versions="2+"),
        ],
    ),
    data(field("A", "S", "5+", fields=[field("X")]), validVersions="none"),
    in_struct(field("X", mapKey=True), field("Y", "string", mapKey=True), tagged("Z", 0)),
    message(field("A" * 120), field("B", "[]" + "S" * 120, fields=[field("X")])),
    message(
        field("Items", "[]Item", fields=[field("X")]),
        field("C", "[]ItemCollection", fields=[field("X")]),
    ),
    # An element without fields in some version still has a byte there (the count of tagged fields,
    # or the mark of null), or the array is missing in that version.
    message(field("A", "[]S", fields=[field("X", versions="0")])),
    message(field("A", "[]S", "1+", fields=[field("X", versions="2+")])),
    message(field("A", "S", fields=[field("X", versions="1+")])),
    message(
        field("A", "S", "1+"),
        commonStructs=[struct("S", field("X", "[]T")), struct("T", field("Y", versions="1+"))],
    ),
    message(commonStructs=[struct("S", field("X", "[]T")), struct("T")]),
    message(
        field("A", "[]S"),
        commonStructs=[
            struct("S", field("X", "T", nullableVersions="0+")),
            struct("T", field("Y", versions="1+")),
        ],
    ),
    message(
        field("A", "[]S", fields=[field("X", versions="0"), field("Y", versions="1-2")]),
        flexibleVersions="none",
    ),
]


@pytest.mark.parametrize("source", ACCEPTED)
def test_valid_definitions_are_accepted(source: Source) -> None:
    assert faults(source) == []
    assert checked_spec(parsed(source)).name == source["name"]


def test_checked_spec_reports_every_fault_with_its_line() -> None:
    source = message(field("A", "Int8"), field("B", zeroCopy=True), validVersions="0+")
    with pytest.raises(DefinitionError) as caught:
        checked_spec(parsed(source))
    errors = (caught.value, *caught.value.others)
    assert [error.line for error in errors] == [5, 10, 17]


def test_a_field_of_no_valid_version_is_noted() -> None:
    for versions in ("none", "7+"):
        source = message(field("A", versions=versions))
        assert faults(source) == []
        (note,) = notes(source)
        assert f"its versions are {versions}, those of the message 0-2" in note


def test_deprecated_versions_outside_the_valid_ones_are_noted() -> None:
    (note,) = notes(message(deprecatedVersions="0-3"))
    assert "deprecatedVersions 0-3 are not all among the valid versions 0-2" in note
    assert notes(message(deprecatedVersions="0-1")) == []


def test_the_legacy_profile_reports_each_exception() -> None:
    source = '{"type": "data", "name": "Old", "validVersions": "0"}\n}'
    assert notes(source, legacy=True) == [
        'sample.json:1: there is no "flexibleVersions"; write 0+ for a new message, or none',
        "sample.json:2: there is content after the end of the definition",
    ]


def test_a_struct_defined_inside_itself_is_defined_twice() -> None:
    inner = field("Y", "S", fields=[field("Z")])
    (found,) = faults(message(field("A", "[]S", fields=[field("X"), inner])))
    assert "field A.Y: the struct S is defined twice" in found


@pytest.mark.slow
def test_nesting_of_structs_is_bounded() -> None:
    def chain(length: int) -> dict[str, Any]:
        structs = [struct(f"S{i}", field("X", f"S{i + 1}")) for i in range(length - 1)]
        structs.append(struct(f"S{length - 1}", field("X")))
        return message(field("A", "S0"), commonStructs=structs)

    assert faults(chain(MAX_STRUCT_DEPTH)) == []
    for length in (MAX_STRUCT_DEPTH + 1, 3000):
        (found,) = faults(chain(length))
        assert f"structs are nested {length} deep; at most {MAX_STRUCT_DEPTH}" in found


def test_expansion_of_structs_is_bounded() -> None:
    # Each struct contains the next one twice: 2 to the power of 30 fields in a few lines.
    structs = [
        struct(f"S{i}", field("X", f"S{i + 1}"), field("Y", f"[]S{i + 1}")) for i in range(30)
    ]
    source = message(field("A", "S0"), commonStructs=[*structs, struct("S30", field("X"))])
    (found,) = faults(source)
    assert f"at most {MAX_EXPANDED_FIELDS}" in found


def test_a_repeated_key_with_the_same_value_is_noted() -> None:
    source = (
        '{"type": "data", "name": "A", "name": "A", "validVersions": "0", '
        '"flexibleVersions": "none"}'
    )
    assert faults(source) == []
    assert notes(source) == ["sample.json:1: the key 'name' occurs twice, first on line 1"]


def test_every_rule_is_in_the_table() -> None:
    from kproto_codegen.rules import field_rules, message_rules, struct_rules

    written = {
        function
        for module in (field_rules, message_rules, struct_rules)
        for name, function in vars(module).items()
        if callable(function)
        and getattr(function, "__module__", "") == module.__name__
        and not name.startswith("_")
    }
    assert written == set(DEFINITION_RULES)
    assert len(DEFINITION_RULES) == len(written)


@pytest.mark.parametrize("release", ["3.9.2", "4.4.0"])
@pytest.mark.slow
def test_kafkas_definitions_satisfy_the_rules(release: str) -> None:
    assert committed_release(release).messages


# Between messages
