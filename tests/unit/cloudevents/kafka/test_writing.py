"""Tests writing records: golden bytes in both modes, mode conversion, other event formats."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from kproto_cloudevents import (
    JSON_FORMAT,
    JSON_NULL,
    CloudEvent,
    CloudEventError,
    EventFormat,
    KafkaRecord,
    OpaqueEvent,
    from_json,
    from_kafka,
    kafka_record,
    partition_key,
    register_format,
    to_json,
    to_kafka,
)

from ..samples import BINARY, EVENT, STRUCTURED, event_of


def test_binary_golden() -> None:
    assert to_kafka(EVENT, "binary", key=b"k") == (
        b"k",
        "grün".encode(),
        (
            ("ce_specversion", b"1.0"),
            ("ce_id", b"1"),
            ("ce_source", b"/s"),
            ("ce_type", b"t"),
            ("ce_time", b"2018-04-05T03:56:24.10+02:00"),
            ("ce_partitionkey", b"AA"),
            ("content-type", b"text/plain"),
            ("ce_n", b"5"),
            ("ce_ok", b"true"),
            ("ce_raw", b"AA=="),
        ),
    )
    assert to_kafka(EVENT) == to_kafka(EVENT, "binary", key=None)


def test_structured_golden() -> None:
    record = to_kafka(EVENT, "structured")
    assert record.key is None
    assert record.headers == (("content-type", b"application/cloudevents+json"),)
    assert record.value == to_json(EVENT)


def test_structured_with_repeated_attributes() -> None:
    record = to_kafka(EVENT, "structured", repeat_attributes=True)
    assert record.headers[0] == ("content-type", b"application/cloudevents+json")
    assert ("ce_id", b"1") in record.headers
    assert len([name for name, _ in record.headers if name == "content-type"]) == 1
    assert event_of(record) == EVENT
    assert to_kafka(event_of(record)) == record


def test_data_becomes_the_value_of_the_record() -> None:
    base = {"id": "1", "source": "/s", "type": "t"}
    data: Any
    value: bytes | None
    for data, value in ((None, None), (b"", b""), (b"x", b"x")):
        record = to_kafka(CloudEvent(base, data=data))
        assert record.value == value
        assert "content-type" not in dict(record.headers)
    # JSON data implies a JSON content type, which binary mode must write (JSON format 3.1.2).
    for data, value in (({"a": 1}, b'{"a":1}'), ("t", b'"t"'), (JSON_NULL, b"null")):
        record = to_kafka(CloudEvent(base, data=data))
        assert record.value == value
        assert record.headers[-1] == ("content-type", b"application/json")


def test_events_are_converted_between_modes() -> None:
    binary = to_kafka(event_of(STRUCTURED), "binary")
    assert binary.key == b"mykey"
    assert binary.value == b"<data/>"
    assert dict(binary.headers)["content-type"] == b"application/xml"
    assert event_of(binary) == event_of(STRUCTURED)
    traced = BINARY._replace(headers=(("trace", b"1"), *BINARY.headers, ("trace", None)))
    structured = to_kafka(event_of(traced), "structured")
    assert structured.key == b"mykey"
    assert structured.headers == (
        ("content-type", b"application/cloudevents+json"),
        ("trace", b"1"),
        ("trace", None),
    )
    assert event_of(structured) == event_of(BINARY)
    assert event_of(to_kafka(event_of(structured), "binary")) == event_of(BINARY)


def test_a_changed_event_is_written_as_a_new_record() -> None:
    changed = event_of(BINARY).replace(subject="s")
    assert kafka_record(changed) is None
    record = to_kafka(changed)
    assert record.key is None
    assert record.headers == (*BINARY.headers, ("ce_subject", b"s"))


def test_opaque_events_cannot_be_converted() -> None:
    opaque = from_kafka(None, b"x", [("content-type", b"application/cloudevents+avro")])
    with pytest.raises(CloudEventError, match="can only be forwarded unchanged"):
        to_kafka(opaque, "binary")
    with pytest.raises(CloudEventError, match="can only be forwarded unchanged"):
        to_kafka(opaque, key_mapper=partition_key)
    assert to_kafka(opaque, key=b"k").key == b"k"
    no_mode: Any = "batch"
    with pytest.raises(CloudEventError, match="mode is binary or structured"):
        to_kafka(EVENT, no_mode)


def test_other_event_formats() -> None:
    backwards = EventFormat(
        "application/cloudevents+backwards",
        lambda document: from_json(document[::-1]),
        lambda event: to_json(event)[::-1],
    )
    name = (("content-type", b"application/cloudevents+backwards"),)
    written = to_kafka(EVENT, "structured", event_format=backwards)
    assert written == (None, to_json(EVENT)[::-1], name)
    assert isinstance(from_kafka(*written), OpaqueEvent)
    register_format(backwards)
    assert event_of(written) == EVENT
    assert to_kafka(event_of(written)) == written
    assert to_kafka(event_of(written), event_format=JSON_FORMAT).headers[0] == (
        "content-type",
        b"application/cloudevents+json",
    )


@pytest.mark.parametrize(
    "media_type",
    [
        "application/json",
        "nonsense",
        "application/cloudevents+x; a=b",
        "application/cloudevents-batch+json",
    ],
)
def test_other_media_types_are_no_event_formats(media_type: str) -> None:
    wrong = EventFormat(media_type, from_json, to_json)
    with pytest.raises(CloudEventError, match="no media type of an event format"):
        register_format(wrong)
    with pytest.raises(CloudEventError, match=r"no media type of an event format.*3\.3\.1"):
        to_kafka(EVENT, "structured", event_format=wrong)


@pytest.mark.parametrize("record", [BINARY, STRUCTURED])
def test_pickled_events_keep_their_record(record: KafkaRecord) -> None:
    back = pickle.loads(pickle.dumps(event_of(record)))
    assert back == event_of(record)
    assert to_kafka(back) == record


def test_a_structured_event_without_data_is_no_tombstone() -> None:
    record = to_kafka(EVENT.replace(data=None), "structured")
    assert record.value is not None
    assert event_of(record).has_data is False
    assert to_kafka(EVENT.replace(data=None), "binary").value is None


@pytest.mark.parametrize("size", [64 * 1024, 1024 * 1024])
def test_large_events_are_written(size: int) -> None:
    event = EVENT.replace(data=b"x" * size)
    for mode in ("binary", "structured"):
        record = to_kafka(event, mode)
        assert event_of(record) == event
        assert to_kafka(event_of(record)) == record


def test_header_names_and_values_are_utf_8() -> None:
    record = to_kafka(EVENT.replace(subject="grün \U0001f600"))
    assert dict(record.headers)["ce_subject"] == "grün \U0001f600".encode()
    assert event_of(record).subject == "grün \U0001f600"
