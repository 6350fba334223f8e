"""Tests the rules between the messages of one release."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kproto_codegen.reading.parser import parse_definition
from kproto_codegen.rules.cross_message_rules import check_messages

from ..samples import data, field, message


def faults_between(*sources: Mapping[str, Any], modules: Sequence[str] = ()) -> list[str]:
    """Returns the faults between messages; the message files are named 0.json, 1.json, …."""
    named = zip(sources, modules or ["clients"] * len(sources), strict=True)
    definitions = [
        parse_definition(json.dumps(source, indent=1), file=f"{index}.json", module=module)
        for index, (source, module) in enumerate(named)
    ]
    return [str(fault) for fault in check_messages(definitions)]


def test_a_release_has_each_name_once() -> None:
    (fault,) = faults_between(message(), message(apiKey=901), modules=["clients", "raft"])
    assert fault == "1.json:4: two messages are called SampleRequest: the other is in 0.json"


def test_an_api_key_is_unique_per_module_and_type() -> None:
    other = message(name="OtherRequest")
    (fault,) = faults_between(message(), other)
    assert fault == (
        "1.json:2: SampleRequest in 0.json and OtherRequest are both the request of api key 900"
    )
    assert faults_between(message(), other, modules=["clients", "raft"]) == []
    assert faults_between(message(), message(name="AResponse", type="response")) == []


def test_two_messages_with_one_module_are_refused() -> None:
    (fault,) = faults_between(data(name="TopicID"), data(name="TopicId"))
    assert fault == (
        "1.json:3: TopicID in 0.json and TopicId would be one module in Python, topic_id"
    )
    # Names that differ only by case are reported, unless their module names differ.
    assert faults_between(data(name="Foobar"), data(name="FooBar")) == []


def test_a_struct_with_the_name_of_the_response_is_refused() -> None:
    request = message(field("A", "OtherResponse", fields=[field("X")]))
    response = message(name="OtherResponse", type="response")
    assert (
        faults_between(request)
        == faults_between(request, message(name="AResponse", type="response"))
        == []
    )
    assert faults_between(request, response, modules=["clients", "raft"]) == []
    (fault,) = faults_between(request, response)
    assert fault.endswith(
        "field A: the struct OtherResponse would have the name of the response in Python"
    )
