"""Tests the parser: it knows every key of Kafka's generator; errors have file, line and field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kproto_codegen.errors import DefinitionError
from kproto_codegen.reading.parser import parse_definition, read_definition

from kproto.schema.specs import FieldSpec, MessageSpec
from kproto.schema.versions import Versions

from ..samples import field, message, parsed, spec

EVERYTHING = """\
// A comment before.
{
  "apiKey": 7,
  "type": "request",
  "name": "EverythingRequest",
  "listeners": ["zkBroker", "broker"],
  "validVersions": "1-4",
  "deprecatedVersions": "1",
  "flexibleVersions": "2+",
  "latestVersionUnstable": "true",
  "fields": [
    { "name": "Topics", "type": "[]Topic", "versions": "1+", "nullableVersions": "2+",
      "default": "null", "ignorable": "true", "about": "What to ask for.", "fields": [
      { "name": "Name", "type": "string", "versions": "1+", "mapKey": true,
        "entityType": "topicName", "flexibleVersions": "none" }
    ]},
    { "name": "Data", "type": "bytes", "versions": "3", "zeroCopy": true },
    { "name": "Extra", "type": "Shared", "taggedVersions": "4+", "tag": "0" }
  ],
  "commonStructs": [
    { "name": "Shared", "versions": "4+", "fields": [
      { "name": "Flag", "type": "bool", "versions": "4+", "default": true }
    ]}
  ]
}
"""


def test_every_key() -> None:
    definition = parse_definition(EVERYTHING, file="f.json", module="clients")
    name = FieldSpec(
        name="Name",
        type="string",
        versions=Versions.parse("1+"),
        map_key=True,
        entity_type="topicName",
        flexible_versions=Versions.parse("none"),
    )
    topics = FieldSpec(
        name="Topics",
        type="[]Topic",
        versions=Versions.parse("1+"),
        nullable_versions=Versions.parse("2+"),
        default="null",
        ignorable=True,
        about="What to ask for.",
        fields=(name,),
    )
    assert definition.spec.fields[0] == topics
    assert definition.spec.fields[1] == FieldSpec(
        name="Data", type="bytes", versions=Versions.single(3), zero_copy=True
    )
    extra = definition.spec.fields[2]
    assert (extra.tag, extra.versions, extra.tagged_versions) == (
        0,
        Versions.parse("4+"),
        Versions.parse("4+"),
    )
    shared = definition.spec.common_structs[0]
    assert (shared.name, shared.versions) == ("Shared", Versions.parse("4+"))
    assert shared.fields[0].default == "true"
    assert definition.spec == MessageSpec(
        name="EverythingRequest",
        type="request",
        api_key=7,
        listeners=("zkBroker", "broker"),
        valid_versions=Versions(1, 4),
        deprecated_versions=Versions.single(1),
        flexible_versions=Versions.parse("2+"),
        latest_version_unstable=True,
        module="clients",
        fields=definition.spec.fields,
        common_structs=definition.spec.common_structs,
    )


def test_places_know_path_and_line() -> None:
    definition = parse_definition(EVERYTHING, file="f.json")
    assert [(place.path, place.line) for place in definition.fields()] == [
        ("Topics", 12),
        ("Topics.Name", 14),
        ("Data", 17),
        ("Extra", 18),
        ("commonStructs.Shared.Flag", 22),
    ]
    topics = next(definition.fields())
    assert topics.key_line("default") == 13
    assert topics.key_line("zeroCopy") == 12
    assert definition.key_line("validVersions") == 7
    assert definition.states("apiKey")
    assert not definition.states("about")


@pytest.mark.parametrize(
    ("stated", "text"),
    [
        ("5", "5"),
        (5, "5"),
        (-1, "-1"),
        ("0x10", "0x10"),
        (1.50, "1.5"),
        (True, "true"),
        ("null", "null"),
        ("", ""),
    ],
)
def test_scalars_as_defaults(stated: Any, text: str) -> None:
    assert spec(field("A", "string", default=stated)).fields[0].default == text


def test_a_null_default_states_none() -> None:
    # As in Kafka's generator, JSON null is no default: the field has the empty string, not null.
    assert spec(field("A", "string", default=None)).fields[0].default is None


def test_a_bool_default_in_capitals_is_read_as_java_reads_it() -> None:
    assert spec(field("A", "bool", default="True")).fields[0].default == "true"
    assert spec(field("A", "string", default="True")).fields[0].default == "True"


def test_versions_may_be_a_number() -> None:
    assert spec(field("A", versions=2)).fields[0].versions == Versions.single(2)  # type: ignore[arg-type]


def test_a_key_that_is_null_is_not_there() -> None:
    nothing: dict[str, Any] = dict.fromkeys(
        ["nullableVersions", "ignorable", "mapKey", "tag", "taggedVersions", "flexibleVersions"]
    )
    nothing |= dict.fromkeys(["entityType", "zeroCopy", "about", "fields"])
    assert spec(field("A", **nothing)) == spec(field("A"))
    stated = message(field("A")) | {"listeners": None, "commonStructs": None, "apiKey": None}
    assert parsed(stated).spec == spec(field("A"), apiKey=None)
    assert not parsed(message() | {"flexibleVersions": None}).states("flexibleVersions")
    with pytest.raises(DefinitionError, match="a message has no 'name'"):
        parsed(message() | {"name": None})


def test_a_common_struct_may_have_deprecated_versions() -> None:
    struct = {"name": "S", "versions": "0+", "deprecatedVersions": "0-1", "fields": []}
    assert spec(commonStructs=[struct]).common_structs[0].name == "S"


WITHOUT_NAME = {key: value for key, value in message().items() if key != "name"}
WITHOUT_TYPE = {key: value for key, value in message().items() if key != "type"}
WITHOUT_VERSIONS = {key: value for key, value in message().items() if key != "validVersions"}


@pytest.mark.parametrize(
    ("source", "place", "reason"),
    [
        ([], "sample.json:1", "a message definition must be an object in braces, not an array"),
        (WITHOUT_NAME, "sample.json:1", "a message has no 'name'"),
        (WITHOUT_TYPE, "sample.json:1", "a message has no 'type'"),
        (WITHOUT_VERSIONS, "sample.json:1", "a message has no 'validVersions'"),
        (message(type="query"), "sample.json:3", "'query' is no message type"),
        (message(colour="red"), "sample.json:8", "'colour' is no key of a message definition"),
        (message(name=5), "sample.json:4", "name should be text, not the number 5"),
        (message(name=""), "sample.json:4", "name is empty"),
        (message(apiKey="1.0"), "sample.json:2", "apiKey should be a whole number"),
        (message(apiKey=True), "sample.json:2", "apiKey should be a whole number, not the boolean"),
        (message(apiKey="1_0"), "sample.json:2", "apiKey should be a whole number"),
        (message(apiKey="9" * 5000), "sample.json:2", "apiKey should be a whole number"),
        (message(apiKey="٣"), "sample.json:2", "apiKey should be a whole number"),
        (message(validVersions="3-1"), "sample.json:5", "'3-1' is a reversed version range"),
        (message(validVersions=" 1"), "sample.json:5", "' 1' is no version range"),
        (message(validVersions="1_0"), "sample.json:5", "'1_0' is no version range"),
        (message(validVersions="٣"), "sample.json:5", "no version range"),
        (message(validVersions="40000"), "sample.json:5", "a version is at most 32767"),
        (message(validVersions=True), "sample.json:5", "not the boolean true"),
        (message(validVersions=1.5), "sample.json:5", "should be a version range as text"),
        (message(flexibleVersions=["0+"]), "sample.json:6", "not an array"),
        (message(listeners="broker"), "sample.json:8", "listeners should be an array of names"),
        (message(listeners=[1]), "sample.json:9", "a listener should be text, not the number 1"),
        (message(latestVersionUnstable="yes"), "sample.json:8", "should be true or false"),
        (message(fields={}), "sample.json:7", "fields should be an array of fields, not an object"),
        (message("A"), "sample.json:8", "a field must be an object in braces, not the text 'A'"),
        (message({"type": "int8", "versions": "0+"}), "sample.json:8", "a field has no 'name'"),
        (
            message({"name": "A", "versions": "0+"}),
            "sample.json:8",
            "a field has no 'type'",
        ),
        (
            message(field("A", versions=None)),
            "sample.json:8: field A",
            "has neither versions nor taggedVersions",
        ),
        (
            message(field("A", versions="2-1")),
            "sample.json:11: field A",
            "versions: '2-1' is a reversed version range",
        ),
        (
            message(field("A", "[]S", fields=[field("B", size=3)])),
            "sample.json:17: field A.B",
            "'size' is no key of a field",
        ),
        (message(field("A", tag="x")), "sample.json:12: field A", "tag should be a whole number"),
        (message(field("A", tag=1.0)), "sample.json:12: field A", "tag should be a whole number"),
        (message(field("A", mapKey=1)), "sample.json:12: field A", "mapKey should be true or fals"),
        (
            message(field("A", default=[])),
            "sample.json:12: field A",
            "default should be a scalar, not an array",
        ),
        (message(field("A", about=1)), "sample.json:12: field A", "about should be text"),
        (
            message(commonStructs=[{"name": "S", "fields": []}]),
            "sample.json:9: field commonStructs",
            "a struct has no 'versions'",
        ),
        (
            message(commonStructs=[{"name": "S", "versions": "0+", "deprecatedVersions": "x"}]),
            "sample.json:12: field commonStructs.S",
            "deprecatedVersions: 'x' is no version range",
        ),
        (
            message(commonStructs=[{"name": "S", "versions": "0+", "about": "Words."}]),
            "sample.json:12: field commonStructs.S",
            "'about' is no key of a struct",
        ),
        (
            message(commonStructs=[{"name": "S", "versions": "0+", "tag": 1}]),
            "sample.json:12: field commonStructs.S",
            "'tag' is no key of a struct",
        ),
        (
            message(
                commonStructs=[{"name": "S", "versions": "0+", "fields": [field("B", tag="")]}]
            ),
            "field commonStructs.S.B",
            "tag should be a whole number",
        ),
    ],
)
def test_refused(source: Any, place: str, reason: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        parsed(source)
    assert place in str(caught.value)
    assert reason in str(caught.value)


def test_content_behind_the_end() -> None:
    text = '{"type": "data", "name": "A", "validVersions": "0"}\n]'
    with pytest.raises(DefinitionError, match="content after the end"):
        parsed(text)
    assert parsed(text, lenient=True).trailing_line == 2


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="cannot be read: No such file"):
        read_definition(tmp_path / "none.json")
    with pytest.raises(DefinitionError, match="cannot be read: Is a directory"):
        read_definition(tmp_path)
    bad = tmp_path / "bad.json"
    bad.write_bytes(b'{\n"name": "\xff"}')
    with pytest.raises(DefinitionError, match=r"bad\.json:2: the text is no UTF-8"):
        read_definition(bad)


def test_a_byte_order_mark_is_no_content(tmp_path: Path) -> None:
    marked = tmp_path / "marked.json"
    marked.write_bytes(b"\xef\xbb\xbf" + EVERYTHING.encode())
    assert read_definition(marked).spec.name == "EverythingRequest"


def test_an_error_prints_nothing_that_a_terminal_acts_upon() -> None:
    with pytest.raises(DefinitionError) as caught:
        parsed(message(field("A\x1b[2J\n", tag="x")))
    assert str(caught.value).isprintable()


def test_an_error_tells_all_of_several() -> None:
    errors = [DefinitionError("one", file="a", line=1), DefinitionError("two", field="B")]
    joined = DefinitionError.of(errors)
    assert str(joined) == "a:1: one\nfield B: two"
    assert joined.others == (errors[1],)


def test_an_error_of_errors_tells_what_each_of_them_tells() -> None:
    first, second, third, fourth = (DefinitionError(word, line=1) for word in "abcd")
    inner = DefinitionError.of([second, third])
    joined = DefinitionError.of([DefinitionError.of([first]), inner, fourth])
    assert [error.reason for error in joined.each()] == ["a", "b", "c", "d"]
    assert [error.reason for error in (joined, *joined.others)] == ["a", "b", "c", "d"]
    assert str(DefinitionError.of([joined, inner])).count("\n") == 5


def test_every_fault_of_the_form_is_told_by_line() -> None:
    source = {
        "type": "letter",
        "validVersions": "2-1",
        "listeners": ["broker", 5],
        "fields": [
            {"name": "A", "type": "int32", "tag": "x", "taggedVersions": "?"},
            {"type": 7, "ignorable": "yes", "colour": 1},
            "text",
            {"name": "B", "type": "[]S", "versions": "0+", "fields": [{"name": "C"}]},
        ],
        "commonStructs": [{"name": "", "fields": {}}],
    }
    with pytest.raises(DefinitionError) as caught:
        parsed(source)
    told = [str(error).removeprefix("sample.json:") for error in caught.value.each()]
    assert [line.partition(";")[0][:60] for line in told] == [
        "1: a message has no 'name'",
        "2: 'letter' is no message type: use one of request, response",
        "3: validVersions: '2-1' is a reversed version range",
        "6: a listener should be text, not the number 5",
        "12: field A: tag should be a whole number, not the text 'x'",
        "13: field A: taggedVersions: '?' is no version range: write ",
        "15: a field has no 'name'",
        "15: has neither versions nor taggedVersions",
        "16: type should be text, not the number 7",
        "17: ignorable should be true or false, not the text 'yes'",
        "18: 'colour' is no key of a field",
        "20: a field must be an object in braces, not the text 'text'",
        "26: field B: a field has no 'type'",
        "26: field B.C: has neither versions nor taggedVersions",
        "33: field commonStructs: a struct has no 'versions'",
        "34: field commonStructs: name is empty",
        "35: field commonStructs.: fields should be an array of field",
    ]
