"""Tests JSON event values without event headers, which v1 of the official SDK writes."""

from __future__ import annotations

from typing import Any

import pytest
from kproto_cloudevents import (
    JSON_NULL,
    CloudEvent,
    CloudEventError,
    Header,
    InvalidEvent,
    KafkaRecord,
    NotAnEvent,
    OpaqueEvent,
    Profile,
    from_json,
    from_kafka,
    from_kafka_many,
    lazy_from_kafka,
    to_json,
    to_kafka,
)

from ..samples import BINARY, event_of

BASE: dict[str, Any] = {"id": "1", "source": "/s", "type": "t"}
JSON_EVENTS = Profile(json_events=True)
ANY_CASE = JSON_EVENTS._replace(any_case_headers=True)

#: The content type header is that of the data; the value does not repeat it.
V1 = KafkaRecord(
    b"AA",
    b'{"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "partitionkey": "AA",'
    b' "time": "2018-04-05T03:56:24.10+02:00", "data": {"total": 12}}',
    (("content-type", b"application/json"),),
)


def record_of(data: str, *content_type: bytes) -> KafkaRecord:
    value = f'{{"specversion": "1.0", "id": "1", "source": "/s", "type": "t"{data}}}'
    return KafkaRecord(None, value.encode(), tuple(("content-type", each) for each in content_type))


@pytest.mark.parametrize(
    "content_type",
    [b"application/json", b"Application/JSON; charset=UTF-8", b"application/vnd.x+json"],
)
def test_an_event_of_json(content_type: bytes) -> None:
    record = V1._replace(headers=(("content-type", content_type), ("trace", b"1")))
    assert isinstance(from_kafka(*record), NotAnEvent)
    event = event_of(record, profile=JSON_EVENTS)
    assert event == CloudEvent(
        BASE,
        time="2018-04-05T03:56:24.10+02:00",
        partitionkey="AA",
        datacontenttype=content_type.decode(),
        data={"total": 12},
    )
    assert event.mode == "structured"
    assert to_kafka(event) == to_kafka(event, "structured") == record
    binary = to_kafka(event, "binary")
    assert (binary.key, binary.value) == (b"AA", b'{"total": 12}')
    assert [raw for name, raw in binary.headers if name == "content-type"] == [content_type]
    assert binary.headers[-1] == ("trace", b"1")
    assert event_of(binary) == event
    for read in (from_kafka, lazy_from_kafka):
        assert read(*record, profile=JSON_EVENTS) == event
    assert from_kafka_many([record], profile=JSON_EVENTS) == [event]
    # A document without a record also contains the content type, unlike the value.
    assert from_json(to_json(event)) == event
    repeated = to_kafka(event, "structured", repeat_attributes=True)
    assert dict(repeated.headers)["content-type"] == b"application/cloudevents+json"
    assert event_of(repeated) == event


@pytest.mark.parametrize(
    ("record", "event"),
    [
        (record_of(', "data": [1]'), CloudEvent(BASE, data=[1])),
        (record_of(', "data": null'), CloudEvent(BASE, data=JSON_NULL)),
        (record_of(', "data_base64": "AP8="'), CloudEvent(BASE, data=b"\x00\xff")),
        (
            record_of(', "data": "x"', b"text/plain"),
            CloudEvent(BASE, datacontenttype="text/plain", data="x"),
        ),
        (
            record_of(', "data_base64": "AP8="', b"application/octet-stream"),
            CloudEvent(BASE, datacontenttype="application/octet-stream", data=b"\x00\xff"),
        ),
        # v1 writes null for missing data; only JSON data can be null.
        (record_of(', "data": null', b"a/b"), CloudEvent(BASE, datacontenttype="a/b")),
        (
            record_of(', "data": null', b"a/b+json"),
            CloudEvent(BASE, datacontenttype="a/b+json", data=JSON_NULL),
        ),
        # The content type in the value has precedence over the header.
        (
            record_of(', "datacontenttype": "text/xml", "data": "<a/>"', b"application/json"),
            CloudEvent(BASE, datacontenttype="text/xml", data="<a/>"),
        ),
        (
            record_of(', "datacontenttype": null, "data": "x"', b"text/plain"),
            CloudEvent(BASE, datacontenttype="text/plain", data="x"),
        ),
    ],
)
def test_events_with_any_type_of_data_are_read(record: KafkaRecord, event: CloudEvent) -> None:
    for profile in (JSON_EVENTS, ANY_CASE):
        read = event_of(record, profile=profile)
        assert read == event
        assert to_kafka(read) == record
        assert event_of(to_kafka(read, "binary")).datacontenttype == (
            event.datacontenttype or ("application/json" if type(read.data) is not bytes else None)
        )
        assert from_json(to_json(read)) == event


@pytest.mark.parametrize("version", ["0.3", "0.2", "0.1"])
def test_events_of_older_versions_are_read(version: str) -> None:
    event = CloudEvent(BASE, data="x").to_version(version)
    record = KafkaRecord(None, to_json(event), (("content-type", b"text/plain"),))
    read = event_of(record, profile=JSON_EVENTS)
    assert (read.datacontenttype, read.data) == ("text/plain", "x")
    assert from_json(to_json(read)) == read


@pytest.mark.parametrize(
    ("value", "headers"),
    [
        (b'{"total": 12}', V1.headers),
        (b'[{"specversion": "1.0"}]', V1.headers),
        (b'{"specversion": null}', V1.headers),
        (b'{"specversion": 7}', V1.headers),
        (b'{"specversion": "1.0"', V1.headers),
        (b'{"specversion": "1.0"} more', V1.headers),
        (b'"specversion"', V1.headers),
        (b"\xff", V1.headers),
        (b"", V1.headers),
        (None, V1.headers),
        (b"", ()),
        (b"specversion", (("content-type", b"text/plain"),)),
    ],
)
def test_other_values_are_no_events(value: bytes | None, headers: tuple[Header, ...]) -> None:
    for profile in (JSON_EVENTS, ANY_CASE):
        assert isinstance(from_kafka(None, value, headers, profile=profile), NotAnEvent)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (KafkaRecord(None, b'{"specversion": "1.0", "id": "1"}'), "source: the required"),
        (record_of(', "a b": 1', b"text/plain"), "a b"),
        (record_of(', "data": [1]', b"text/plain"), "an array where the datacontenttype"),
        (record_of(', "datacontenttype": null, "datacontenttype": null', b"a/b"), "twice"),
        (record_of(', "data": null, "data": null', b"a/b"), "twice"),
        (record_of("", b"nonsense"), 'content-type: "nonsense"'),
        (record_of("", b""), 'content-type: ""'),
        (record_of("", b"\xff"), "content-type: the value is not UTF-8"),
    ],
)
def test_values_with_event_members_are_validated(record: KafkaRecord, message: str) -> None:
    with pytest.raises(CloudEventError, match=message):
        from_kafka(*record, profile=JSON_EVENTS)
    (invalid,) = from_kafka_many([record], profile=JSON_EVENTS)
    assert isinstance(invalid, InvalidEvent)


def test_a_value_of_an_unknown_version_is_opaque() -> None:
    unknown = V1._replace(value=b'{"specversion": "7"}')
    outcome = from_kafka(*unknown, profile=JSON_EVENTS)
    assert isinstance(outcome, OpaqueEvent)
    assert outcome.unknown == "version"
    assert to_kafka(outcome) == unknown
    with pytest.raises(CloudEventError, match='"7"'):
        from_kafka(*unknown, profile=JSON_EVENTS._replace(refuse_unknown=True))


def test_event_headers_decide_the_mode() -> None:
    # The data of an event in binary mode may look like an event.
    event = event_of(KafkaRecord(None, V1.value, BINARY.headers), profile=JSON_EVENTS)
    assert event.data == V1.value
    assert event.mode == "binary"
    half = KafkaRecord(None, V1.value, (("ce_id", b"1"), *V1.headers))
    with pytest.raises(CloudEventError, match="ce_specversion"):
        from_kafka(*half, profile=JSON_EVENTS)
    # A mode that the caller forces has precedence, too.
    assert event_of(V1, mode="structured").datacontenttype is None
    with pytest.raises(CloudEventError, match="ce_specversion"):
        from_kafka(*V1, mode="binary", profile=JSON_EVENTS)
    assert to_json(event_of(V1._replace(headers=()), profile=JSON_EVENTS)) == V1.value
