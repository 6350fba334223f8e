"""Tests JSON that the official SDKs for Java and Go read, too."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kproto_cloudevents import (
    JSON_FORMAT,
    PORTABLE_JSON_FORMAT,
    CloudEvent,
    from_json,
    to_json,
    to_kafka,
)

from ..samples import event_of

BASE = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
#: SDKs take these types for JSON; see docs/how-to/cloudevents-sdks.md.
KNOWN = ["application/json", "text/json", "application/json; charset=utf-8", None]
UNKNOWN = [
    "application/vnd.x+json",
    "application/vnd.v2+json; charset=utf-8",
    "application/problem+json",
    "model/gltf+json",
    "Application/JSON",
    "model/json",
]


def members_of(document: bytes | None) -> dict[str, Any]:
    assert document is not None
    members: dict[str, Any] = json.loads(document)
    return members


@pytest.mark.parametrize("content_type", UNKNOWN)
@pytest.mark.parametrize("data", [{"a": 1}, b'{"a": 1}'])
def test_data_of_other_json_types_is_base64(content_type: str, data: Any) -> None:
    event = CloudEvent(BASE, datacontenttype=content_type, data=data)
    assert members_of(to_json(event))["data"] == {"a": 1}
    members = members_of(to_json(event, portable=True))
    assert "data" not in members
    again = from_json(to_json(event, portable=True))
    assert again == event
    assert again.json() == {"a": 1}


@pytest.mark.parametrize("content_type", KNOWN)
def test_data_of_known_json_types_is_json(content_type: str | None) -> None:
    event = CloudEvent(BASE, datacontenttype=content_type, data={"a": 1})
    assert to_json(event, portable=True) == to_json(event)


@pytest.mark.parametrize(
    ("content_type", "data"),
    [("text/plain", "text"), ("image/png", b"\x89"), ("application/vnd.x+json", None)],
)
def test_other_data_is_written_as_usual(content_type: str, data: Any) -> None:
    event = CloudEvent(BASE, datacontenttype=content_type, data=data)
    assert to_json(event, portable=True) == to_json(event)


def test_a_document_that_was_read_is_written_again_only_if_it_is_portable() -> None:
    event = CloudEvent(BASE, datacontenttype="application/vnd.x+json", data={"a": 1})
    usual, portable = to_json(event), to_json(event, portable=True)
    assert to_json(from_json(usual)) == usual
    assert to_json(from_json(usual), portable=True) == portable
    assert to_json(from_json(portable), portable=True) == portable
    assert to_json(from_json(portable)) == portable
    with_blanks = json.dumps({**BASE, "data": 1}, indent=1).encode()
    assert to_json(from_json(with_blanks), portable=True) == with_blanks


def test_the_format_is_an_option_of_the_writer() -> None:
    event = CloudEvent(BASE, datacontenttype="application/vnd.x+json", data={"a": 1})
    record = to_kafka(event, "structured", event_format=PORTABLE_JSON_FORMAT)
    assert record.headers == (("content-type", b"application/cloudevents+json"),)
    assert "data_base64" in members_of(record.value)
    read = event_of(record)
    assert read == event
    assert to_kafka(read) == record
    # An event that was read from JSON becomes portable if the caller asks for it.
    usual = event_of(to_kafka(event, "structured", event_format=JSON_FORMAT))
    assert to_kafka(usual, event_format=PORTABLE_JSON_FORMAT) == record
    old = to_kafka(event, event_format=PORTABLE_JSON_FORMAT, message_format=1)
    assert old == record._replace(headers=())


def test_versions_that_cannot_mark_base64_keep_json() -> None:
    event = CloudEvent(BASE, datacontenttype="application/vnd.x+json", data={"a": 1})
    for label in ("0.1", "0.2"):
        older = event.to_version(label)
        assert to_json(older, portable=True) == to_json(older)
    members = members_of(to_json(event.to_version("0.3"), portable=True))
    assert members["datacontentencoding"] == "base64"
    assert isinstance(members["data"], str)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    ).filter(lambda value: value is not None),
    st.sampled_from([*KNOWN, *UNKNOWN]),
    st.booleans(),
)
def test_portable_json_round_trips(data: Any, content_type: str | None, as_bytes: bool) -> None:
    content = json.dumps(data).encode() if as_bytes and content_type else data
    event = CloudEvent(BASE, datacontenttype=content_type, data=content)
    document = to_json(event, portable=True)
    members = members_of(document)
    assert ("data" in members) == (content_type in KNOWN)
    assert from_json(document) == event
    assert from_json(document).json() == data
    if content_type is not None:  # binary mode adds the type that only JSON implies
        assert event_of(to_kafka(from_json(document), "binary")) == event
