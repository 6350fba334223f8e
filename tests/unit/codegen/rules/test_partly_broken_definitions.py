"""Tests that rules check the readable parts of a broken definition, without follow-up findings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from kproto_codegen.errors import DefinitionError
from kproto_codegen.reading.parser import parse_with_faults
from kproto_codegen.rules.table import checked_spec

from ..samples import field, message

Source = Mapping[str, Any]


def tagged(name: str, tag: Any, versions: str = "1+", **keys: Any) -> Any:
    """Returns a tagged field."""
    return field(name, "int32", versions, **{"taggedVersions": versions, "tag": tag, **keys})


def reasons_of(source: Source | str) -> list[str]:
    """Returns the reasons for which a definition is refused."""
    text = source if isinstance(source, str) else json.dumps(source, indent=1)
    with pytest.raises(DefinitionError) as caught:
        checked_spec(parse_with_faults(text, file="f"))
    return [error.reason for error in caught.value.each()]


def test_rules_check_the_readable_parts() -> None:
    reasons = reasons_of(
        message(
            field("A", "Int32"),
            field("B", versions="5-3"),
            field("C", colour="red"),
            field("D", "[]records"),
            field("D"),
            tagged("E", 0, versions="0+"),
            colour="red",
            latestVersionUnstable="perhaps",
            listeners=["bogus"],
            flexibleVersions="1+",
        )
    )
    starts = [
        "'colour'",
        "latestVersion",
        "versions: '5-3'",
        "'colour'",
        "'Int32' is no type",
        "an array of records",
        "is also the name of the field D",
        "taggedVersions 0+ are not",
        "'bogus' is no listener",
    ]
    assert len(reasons) == len(starts), reasons
    for start in starts:
        assert any(reason.startswith(start) for reason in reasons), (start, reasons)


@pytest.mark.parametrize(
    "source",
    [
        message(type="letter"),
        message(name=5),
        message(apiKey="x"),
        message(validVersions="5-3"),
        message(flexibleVersions="x"),
        message(listeners=[5]),
        message(fields={}),
        message("text"),
        message(field("A", versions="5-3")),
        message(field("A") | {"type": None}),
        message(field("A", default="x") | {"type": 5}),
        message(field("A", nullableVersions="0+", mapKey="x") | {"type": 5}),
        message(field("")),
        message(field("A", "string", flexibleVersions="x")),
        message(tagged("A", "x")),
        message(tagged("A", 1), tagged("B", "x")),
        message(tagged("A", 0, taggedVersions="x")),
        message(tagged("A", 0), flexibleVersions="x"),
        message(field("A", "[]S", fields={})),
        message(field("A", "[]S", versions="x", fields=[field("B", versions="1+")])),
        message(field("A", "[]S", fields=[field("B", versions="x")])),
        message(field("A", "S"), commonStructs=[{"name": "S", "versions": "x", "fields": []}]),
        message(field("A", "S"), commonStructs=[{"name": 5, "versions": "0+", "fields": []}]),
        message(field("A", "S"), commonStructs=["text"]),
    ],
)
def test_a_fault_of_the_form_causes_no_other_fault(source: Source) -> None:
    form = parse_with_faults(json.dumps(source, indent=1), file="f").faults
    assert form
    assert reasons_of(source) == [fault.reason for fault in form]


def test_a_definition_before_trailing_content_is_read() -> None:
    text = json.dumps(message(listeners=["bogus"]), indent=1) + "]"
    assert [reason.partition(":")[0] for reason in reasons_of(text)] == [
        "'bogus' is no listener",
        "there is content after the end of the definition",
    ]
    assert len(reasons_of(text[:-3])) == 1
