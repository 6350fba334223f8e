"""Tests message formats 0 and 1, which have no headers: only structured JSON can be written."""

from __future__ import annotations

from typing import Any

import pytest
from kproto_cloudevents import (
    STRICT,
    CloudEventError,
    EventFormat,
    KafkaRecord,
    NotAnEvent,
    from_json,
    from_kafka,
    partition_key,
    register_format,
    to_json,
    to_kafka,
)
from kproto_cloudevents.formats import registry

from ..samples import BINARY, EVENT, STRUCTURED, event_of

OLD_FORMATS = pytest.mark.parametrize("message_format", [0, 1])


@OLD_FORMATS
def test_structured_json_is_written_without_headers(message_format: int) -> None:
    record = to_kafka(EVENT, "structured", key=b"k", message_format=message_format)
    assert record == (b"k", to_json(EVENT), ())
    assert event_of(record, mode="structured") == EVENT
    keyed = to_kafka(EVENT, "structured", key_mapper=partition_key, message_format=message_format)
    assert keyed.key == b"AA"
    assert to_kafka(EVENT, "binary", message_format=2).headers


@OLD_FORMATS
def test_an_event_that_was_read_keeps_its_bytes(message_format: int) -> None:
    read = to_kafka(event_of(STRUCTURED), message_format=message_format)
    assert read == STRUCTURED._replace(headers=())
    # The event is read and written without headers, with the same bytes.
    again = to_kafka(event_of(read, mode="structured"), message_format=message_format)
    assert again == read


@OLD_FORMATS
def test_binary_mode_is_refused(message_format: int) -> None:
    for refused in (EVENT, event_of(BINARY)):
        with pytest.raises(CloudEventError, match=r"has no headers.*Kafka binding 1\.3"):
            to_kafka(refused, "binary", message_format=message_format)


@OLD_FORMATS
def test_structured_json_is_the_default(
    message_format: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert to_kafka(EVENT, message_format=message_format) == (None, to_json(EVENT), ())
    read = event_of(BINARY)
    record = to_kafka(read, message_format=message_format)
    assert (record.key, record.headers) == (BINARY.key, ())
    assert event_of(record, mode="structured") == read
    other = EventFormat("application/cloudevents+other", from_json, to_json)
    monkeypatch.setattr(registry, "_FORMATS", dict(registry._FORMATS))
    register_format(other)
    in_other = event_of(to_kafka(EVENT, "structured", event_format=other))
    assert to_kafka(in_other, message_format=message_format) == (None, to_json(EVENT), ())


@OLD_FORMATS
def test_other_event_formats_are_refused(message_format: int) -> None:
    other = EventFormat("application/cloudevents+other", from_json, to_json)
    with pytest.raises(CloudEventError, match="write structured mode in JSON"):
        to_kafka(EVENT, "structured", event_format=other, message_format=message_format)
    opaque = from_kafka(None, b"x", [("content-type", b"application/cloudevents+avro")])
    with pytest.raises(CloudEventError, match="write structured mode in JSON"):
        to_kafka(opaque, message_format=message_format)


@OLD_FORMATS
def test_headers_are_never_lost(message_format: int) -> None:
    with pytest.raises(CloudEventError, match=r"trace: .*1 would be lost"):
        to_kafka(EVENT, "structured", headers=[("trace", b"1")], message_format=message_format)
    with pytest.raises(CloudEventError, match=r"ce_specversion: .*would be lost"):
        to_kafka(EVENT, "structured", repeat_attributes=True, message_format=message_format)


@OLD_FORMATS
def test_a_record_without_event_and_headers_is_written(message_format: int) -> None:
    plain = from_kafka(b"k", None)
    assert isinstance(plain, NotAnEvent)
    assert to_kafka(plain, message_format=message_format) == KafkaRecord(b"k", None)
    with_headers = from_kafka(b"k", b"v", [("x", b"y")])
    with pytest.raises(CloudEventError, match="has no headers"):
        to_kafka(with_headers, message_format=message_format)


@pytest.mark.parametrize("message_format", [3, -1, None, "2"])
def test_unknown_message_formats_are_refused(message_format: Any) -> None:
    with pytest.raises(CloudEventError, match="message_format is 0, 1 or 2"):
        to_kafka(EVENT, message_format=message_format)


def test_the_mode_can_be_forced_for_records_without_headers() -> None:
    """Without headers, as before Kafka 0.11, a record does not tell its mode; the caller does."""
    bare = KafkaRecord(b"k", STRUCTURED.value)
    assert isinstance(from_kafka(*bare), NotAnEvent)
    assert event_of(bare, mode="structured") == event_of(STRUCTURED)
    unknown = KafkaRecord(None, b'{"specversion":"9.9"}')
    assert to_kafka(from_kafka(*unknown, mode="structured"), message_format=1) == unknown
    with pytest.raises(CloudEventError, match="no version known here"):
        from_kafka(*unknown, mode="structured", profile=STRICT)
