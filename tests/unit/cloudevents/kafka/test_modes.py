"""Tests the mode of a record, and its key, value and headers in each mode."""

from __future__ import annotations

from typing import Any

import pytest
from kproto_cloudevents import (
    CloudEvent,
    CloudEventError,
    KafkaRecord,
    NotAnEvent,
    from_kafka,
    kafka_record,
    to_kafka,
)

from ..samples import BINARY, REQUIRED, STRUCTURED, event_of, record_with


def test_binary_mode() -> None:
    event = event_of(BINARY)
    assert dict(event.attributes) == {
        "specversion": "1.0",
        "type": "com.example.someevent",
        "source": "/mycontext/subcontext",
        "id": "1234-1234-1234",
        "time": "2018-04-05T03:56:24Z",
        "datacontenttype": "application/avro",
    }
    assert event.data == b"\x02\x06foo"
    assert kafka_record(event) == BINARY


def test_structured_mode() -> None:
    event = event_of(STRUCTURED)
    assert event.id == "1234-1234-1234"
    assert event.datacontenttype == "application/xml"
    assert event.data == "<data/>"
    assert kafka_record(event) == STRUCTURED


@pytest.mark.parametrize(
    "content_type",
    [
        b"application/cloudevents+json",
        b"APPLICATION/CloudEvents+JSON",
        b" application/cloudevents+json ; charset=utf-8; x=y",
        b'application/cloudevents+json;charset="UTF-8"',
    ],
)
def test_the_media_type_selects_structured_mode(content_type: bytes) -> None:
    record = STRUCTURED._replace(headers=(("x", b"y"), ("content-type", content_type)))
    for _ in range(2):  # the content type is cached now
        assert event_of(record) == event_of(STRUCTURED)
        assert to_kafka(event_of(record)) == record


@pytest.mark.parametrize(
    "content_type",
    [b"application/cloudeventsx+json", b"text/cloudevents+json", b"application/json"],
)
def test_other_media_types_are_binary_mode(content_type: bytes) -> None:
    for _ in range(2):
        event = event_of(record_with(("content-type", content_type)))
        assert event.datacontenttype == content_type.decode()
        assert event.data == b"v"


@pytest.mark.parametrize(
    "content_type",
    [
        b"application/cloudevents+json; charset",
        b"application/cloudevents+json;charset=",
        b'Application/CloudEvents+JSON; charset="utf-8',
        b"application/cloudevents+json, text/plain",
        b"application/cloudevents+json\n",
        b"application/cloudevents; x=\xff",
        b" application/cloudevents-batch+json; ?",
    ],
)
def test_a_broken_media_type_of_an_event_format_is_an_error(content_type: bytes) -> None:
    for _ in range(2):
        with pytest.raises(CloudEventError, match=r"^content-type: .* is broken .*binding 3\.3\.1"):
            from_kafka(None, STRUCTURED.value, [("content-type", content_type)])
    with pytest.raises(CloudEventError, match="content-type"):
        from_kafka(*record_with(("content-type", content_type)))


@pytest.mark.parametrize(
    "content_type", [b"application/cloudeventsx; ?", b"application/cloudevents.v2; ?", b"x; ?"]
)
def test_other_broken_media_types_are_no_events(content_type: bytes) -> None:
    outcome = from_kafka(None, b"x", [("content-type", content_type)])
    assert isinstance(outcome, NotAnEvent)


def test_attributes_repeated_in_headers_are_ignored() -> None:
    record = STRUCTURED._replace(
        headers=(("ce_id", b"another"), ("ce_Odd", b"\xff"), *STRUCTURED.headers)
    )
    assert event_of(record) == event_of(STRUCTURED)
    assert to_kafka(event_of(record)) == record
    assert event_of(to_kafka(event_of(record), "binary")) == event_of(STRUCTURED)


def test_structured_mode_may_repeat_attributes_in_headers() -> None:
    record = STRUCTURED._replace(headers=(*REQUIRED, *STRUCTURED.headers))
    assert event_of(record) == event_of(STRUCTURED)
    assert to_kafka(event_of(record)) == record


def test_the_caller_may_force_the_mode() -> None:
    bare = KafkaRecord(None, STRUCTURED.value, ())
    assert event_of(bare, mode="structured") == event_of(STRUCTURED)
    assert to_kafka(event_of(bare, mode="structured")) == bare
    both = record_with(*STRUCTURED.headers, value=STRUCTURED.value)
    as_binary = event_of(both, mode="binary")
    assert as_binary.datacontenttype == "application/cloudevents+json; charset=UTF-8"
    assert as_binary.data == STRUCTURED.value
    with pytest.raises(CloudEventError, match="ce_specversion: the required attribute is missing"):
        from_kafka(None, b"", [], mode="binary")
    no_mode: Any = "batch"
    with pytest.raises(CloudEventError, match="mode is binary or structured, not 'batch'"):
        from_kafka(*BINARY, mode=no_mode)


def test_ce_datacontenttype_is_read() -> None:
    event = event_of(record_with(("ce_datacontenttype", b"text/xml")))
    assert event.datacontenttype == "text/xml"
    same = record_with(("ce_datacontenttype", b"text/xml"), ("content-type", b"text/xml"))
    assert event_of(same).datacontenttype == "text/xml"
    assert to_kafka(event_of(same)) == same
    unset = record_with(("ce_datacontenttype", b"text/xml"), ("content-type", None))
    assert event_of(unset).datacontenttype == "text/xml"
    for pair in ((b"text/xml", b"text/plain"), (b"text/plain", b"text/xml")):
        with pytest.raises(CloudEventError, match="differ"):
            from_kafka(*record_with(("ce_datacontenttype", pair[0]), ("content-type", pair[1])))


def test_null_and_empty_values() -> None:
    no_data = event_of(record_with(value=None))
    assert no_data.has_data is False
    assert to_kafka(no_data).value is None
    empty = event_of(record_with(value=b""))
    assert empty.data == b""
    assert to_kafka(empty).value == b""


def test_a_structured_record_has_a_value() -> None:
    with pytest.raises(CloudEventError, match=r"value: a structured event is never null.*3\.3\.2"):
        from_kafka(None, None, STRUCTURED.headers)


@pytest.mark.parametrize(
    "content_type",
    [
        "application/cloudevents",
        "application/cloudevents+json",
        "Application/CloudEvents+AVRO; x=1",
        "application/cloudevents-batch+json",
        "application/cloudevents+json; charset=utf-16",
        "application/cloudevents+x" + "y" * 300,
    ],
)
@pytest.mark.parametrize(
    ("label", "name"), [("1.0", "datacontenttype"), ("0.2", "contenttype"), ("0.1", "contentType")]
)
def test_data_that_is_an_event_format_is_not_written_in_binary_mode(
    label: str, name: str, content_type: str
) -> None:
    event = CloudEvent(id="1", source="/s", type="t", time="2018-04-05T03:56:24Z")
    event = event.to_version(label).replace({name: content_type}, data=STRUCTURED.value)
    given: tuple[dict[str, Any], ...] = ({}, {"mode": "binary"}, {"key_mapper": lambda _: b"k"})
    for settings in given:
        with pytest.raises(CloudEventError, match=r"content-type: .*structured.*Kafka binding 3"):
            to_kafka(event, **settings)
    if label == "1.0":
        # The document contains the data's content type; the header names the structured mode.
        for repeated in (False, True):
            written = event_of(to_kafka(event, "structured", repeat_attributes=repeated))
            assert written == event
            with pytest.raises(CloudEventError, match="write it with mode="):
                to_kafka(written, "binary")


@pytest.mark.parametrize("content_type", ["application/cloudeventsx", "application/cloudevents.x"])
def test_data_of_other_types_is_written(content_type: str) -> None:
    event = CloudEvent(id="1", source="/s", type="t", datacontenttype=content_type, data=b"x")
    for _ in range(2):
        assert event_of(to_kafka(event)) == event
