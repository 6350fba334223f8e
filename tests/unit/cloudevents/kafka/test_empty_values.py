"""Tests the profile that reads an empty value as no data, and what writes such an event again."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kproto_cloudevents import (
    CloudEvent,
    CloudEventError,
    LazyEvent,
    Profile,
    from_kafka_many,
    kafka_record,
    lazy_from_kafka,
    to_json,
    to_kafka,
)
from kproto_cloudevents.avro_format import from_avro, to_avro
from kproto_cloudevents.protobuf_format import from_protobuf, to_protobuf
from kproto_cloudevents.pulsar import to_pulsar

from ..samples import event_of, record_with

SDK = Profile(empty_is_no_data=True)
EMPTY = record_with(("content-type", b"text/plain"), ("trace", b"1"), value=b"")._replace(key=b"k")


def test_only_the_profile_reads_an_empty_value_as_no_data() -> None:
    assert event_of(EMPTY).data == b""
    event = event_of(EMPTY, profile=SDK)
    assert event.data is None
    assert not event.has_data
    assert event.data_bytes() is None
    assert event == event_of(EMPTY._replace(value=None))
    assert event != event_of(EMPTY)
    assert "data=none" in repr(event)
    with pytest.raises(CloudEventError, match="the event has no data"):
        event.json()


@pytest.mark.parametrize("value", [None, b"x", b" "])
def test_the_profile_has_no_effect_on_other_values(value: bytes | None) -> None:
    record = EMPTY._replace(value=value)
    assert event_of(record, profile=SDK).data == value
    assert to_kafka(event_of(record, profile=SDK)) == record


def test_the_record_of_an_empty_value_is_written_again() -> None:
    event = event_of(EMPTY, profile=SDK)
    assert to_kafka(event) == EMPTY
    assert to_kafka(event, "binary") == EMPTY
    assert kafka_record(event) == EMPTY
    assert event.to_kafka_record() == EMPTY
    (read,) = from_kafka_many([EMPTY], profile=SDK)
    assert read == event


@pytest.mark.parametrize("mode", [None, "binary"])
@pytest.mark.parametrize(
    "copied",
    [
        lambda event: event.replace(),
        lambda event: event.replace(subject="s"),
        lambda event: event.replace(subject="s").replace(subject=None),
        lambda event: event.to_version("0.3"),
        lambda event: event.to_version("0.3").to_version("1.0"),
        lambda event: copy.deepcopy(event.replace()),
        lambda event: pickle.loads(pickle.dumps(event.replace())),
        lambda event: CloudEvent(dict(event), data=event._data),
    ],
)
def test_a_copy_is_never_written_as_a_tombstone(copied: Any, mode: Any) -> None:
    made = copied(event_of(EMPTY, profile=SDK))
    assert made.data is None
    assert to_kafka(made, mode).value == b""
    assert to_kafka(made, mode, key_mapper=lambda _: b"other").value == b""


def test_a_caller_that_asks_for_null_gets_null() -> None:
    event = event_of(EMPTY, profile=SDK)
    assert to_kafka(event.replace(data=None)).value is None
    assert to_kafka(event.replace().replace(data=None)).value is None
    assert to_kafka(event.replace(data=b"")).value == b""
    assert to_kafka(event.replace(data="")).value == b""


def test_a_structured_copy_has_no_data() -> None:
    event = event_of(EMPTY, profile=SDK)
    structured = to_kafka(event, "structured")
    assert structured.value is not None
    assert b'"data"' not in structured.value
    assert b'"data_base64"' not in structured.value
    assert to_json(event.replace()) == structured.value
    assert event_of(structured).data is None
    assert from_avro(to_avro(event)) == event
    assert from_protobuf(to_protobuf(event)) == event
    assert to_pulsar(event).payload is None


def test_a_lazy_event_has_no_data() -> None:
    event = lazy_from_kafka(*EMPTY, profile=SDK)
    assert isinstance(event, LazyEvent)
    assert event.data is None
    assert event.value == b""
    assert event.record() == EMPTY
    assert event.event() == event_of(EMPTY, profile=SDK)
    assert to_kafka(event) == EMPTY
    assert to_kafka(event.event().replace()).value == b""


@given(
    st.none() | st.just(b"") | st.binary(max_size=3),
    st.sampled_from([b"application/json", b"text/plain", None]),
    st.sampled_from(["none", "replace", "version", "pickle"]),
)
def test_binary_round_trips_keep_empty_and_null_values(
    value: bytes | None, content_type: bytes | None, change: str
) -> None:
    record = record_with(("content-type", content_type), value=value)
    event = event_of(record, profile=SDK)
    assert event.has_data == bool(value)
    match change:
        case "replace":
            event = event.replace(subject="s")
        case "version":
            event = event.to_version("0.3").to_version("1.0")
        case "pickle":
            event = pickle.loads(pickle.dumps(event))
    assert to_kafka(event).value == value
    assert event_of(to_kafka(event), profile=SDK) == event
