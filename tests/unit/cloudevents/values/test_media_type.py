"""Tests media types: parsing, and which of them stand for events, JSON or text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kproto_cloudevents.values.media_type import parse_media_type


@pytest.mark.parametrize(
    ("text", "essence", "parameters"),
    [
        ("application/json", "application/json", ()),
        ("Application/JSON; Charset=UTF-8", "application/json", (("charset", "UTF-8"),)),
        ("text/xml;charset=utf-8;a=b", "text/xml", (("charset", "utf-8"), ("a", "b"))),
        ('text/plain; x="a;b\\"c"', "text/plain", (("x", 'a;b"c'),)),
        ("text/plain;", "text/plain", ()),
        (" text/plain ; a=b ", "text/plain", (("a", "b"),)),
        ("application/vnd.apache.thrift.binary", "application/vnd.apache.thrift.binary", ()),
    ],
)
def test_parse(text: str, essence: str, parameters: tuple[tuple[str, str], ...]) -> None:
    media_type = parse_media_type(text)
    assert media_type is not None
    assert media_type.essence == essence
    assert media_type.parameters == parameters


@pytest.mark.parametrize(
    "text",
    ["", "json", "a/", "/b", "a/b/c", "a b/c", "a/b; c", "a/b; c=", 'a/b; c="d', "a/b x", "ä/b"],
)
def test_not_a_media_type(text: str) -> None:
    assert parse_media_type(text) is None


@pytest.mark.parametrize(
    ("text", "json", "event", "batch"),
    [
        ("application/json", True, False, False),
        ("text/json", True, False, False),
        ("application/problem+JSON", True, False, False),
        ("application/jsonl", False, False, False),
        ("application/xml", False, False, False),
        ("application/cloudevents+json; charset=UTF-8", True, True, False),
        ("APPLICATION/CloudEvents+JSON", True, True, False),
        ("application/cloudevents", False, True, False),
        ("application/cloudevents+avro", False, True, False),
        ("application/cloudeventsx", False, False, False),
        ("text/cloudevents+json", True, False, False),
        ("application/cloudevents-batch+json", True, False, True),
    ],
)
def test_a_media_type_declares_json_events_or_batches(
    text: str, json: bool, event: bool, batch: bool
) -> None:
    media_type = parse_media_type(text)
    assert media_type is not None
    assert media_type.declares_json is json
    assert media_type.is_event_format is event
    assert media_type.is_batch_format is batch


@given(st.text(alphabet='ab/;="\\ \t+-.\x00é', max_size=40))
def test_any_text_is_parsed_or_rejected(text: str) -> None:
    media_type = parse_media_type(text)
    assert media_type is None or media_type.essence == media_type.essence.lower()


def test_long_media_types_are_parsed() -> None:
    media_type = parse_media_type("text/plain; a=" + "b" * 1000)
    assert media_type is not None
    assert media_type.parameters == (("a", "b" * 1000),)


@pytest.mark.parametrize(
    "text", ["a/b" + "; a=b" * 9_999 + "(", 'a/b;a="' + '\\"' * 9_999, "a/b ;" * 9_999]
)
def test_long_texts_take_little_time(text: str) -> None:
    assert parse_media_type(text) is None
