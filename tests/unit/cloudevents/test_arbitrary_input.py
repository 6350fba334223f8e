"""Tests arbitrary records and bytes: reading returns a result, or raises only CloudEventError."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kproto_cloudevents import (
    DEFAULT,
    LENIENT,
    STRICT,
    CloudEvent,
    CloudEventError,
    CloudEventWarning,
    InvalidEvent,
    LazyEvent,
    Mode,
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
from kproto_cloudevents.versions.version_tables import VERSIONS

pytestmark = pytest.mark.filterwarnings("ignore::kproto_cloudevents.CloudEventWarning")

JSON_EVENTS = Profile(json_events=True)

HEADER_NAMES = st.sampled_from(
    [
        "ce_specversion",
        "ce_id",
        "ce_source",
        "ce_type",
        "ce_time",
        "ce_datacontenttype",
        "ce_datacontentencoding",
        "ce_cloudEventsVersion",
        "ce_eventID",
        "ce_eventType",
        "ce_extensions",
        "content-type",
        "Content-Type",
        "CE_ID",
        "ce_",
        "ce_x",
        "ce_data",
        "ce_é",
        "x",
    ]
) | st.text(max_size=6)
HEADER_VALUES = (
    st.none()
    | st.binary(max_size=12)
    | st.sampled_from(
        [
            b"1.0",
            b"0.3",
            b"0.2",
            b"0.1",
            b"7",
            b"",
            b'{"a":1}',
            b"/s",
            b"2018-04-05T03:56:24Z",
            b"application/json",
            b"application/cloudevents+json",
            b"application/cloudevents+avro",
            b"application/cloudevents-batch+json",
            b"application/cloudevents+json; charset=latin-1",
        ]
    )
)
VALUES = (
    st.none()
    | st.binary(max_size=30)
    | st.sampled_from(
        [
            b"{}",
            b'{"specversion":"1.0","id":"1","source":"/s","type":"t"}',
            b'{"specversion":"0.2","id":"1","source":"/s","type":"t","contenttype":"a/b","data":"x"}',
            b'{"cloudEventsVersion":"0.1","eventID":"1","source":"/s","eventType":"t"}',
            b"[[",
            b'{"specversion":"x"}',
        ]
    )
)


@example(
    None,
    b'{"specversion":"1.0","id":"1","source":"/s","type":"t"}',
    [("Content-Type", b"\x80")],
    "structured",
    LENIENT,
)
@given(
    st.none() | st.binary(max_size=5),
    VALUES,
    st.lists(st.tuples(HEADER_NAMES, HEADER_VALUES), max_size=9),
    st.sampled_from([None, None, "binary", "structured"]),
    st.sampled_from([None, LENIENT, STRICT, JSON_EVENTS]),
)
def test_any_record_has_an_outcome_or_a_cloud_event_error(
    key: bytes | None,
    value: bytes | None,
    headers: list[tuple[str, bytes | None]],
    mode: Mode | None,
    profile: Profile | None,
) -> None:
    settings: dict[str, Any] = {} if profile is None else {"profile": profile}
    try:
        outcome = from_kafka(key, value, headers, mode=mode, **settings)
    except CloudEventError:
        return
    assert isinstance(outcome, CloudEvent | OpaqueEvent | NotAnEvent)
    assert to_kafka(outcome) == (key, value, tuple(headers))
    if isinstance(outcome, CloudEvent):
        assert outcome.id
        assert outcome.source is not None
        repr(outcome)
        for other in ("binary", "structured"):
            try:
                written = to_kafka(outcome, other)
            except CloudEventError:
                continue  # the charset cannot encode the data, or the data has an unknown type
            assert isinstance(from_kafka(*written, mode=other, **settings), CloudEvent)


#: Complete headers of an event, so that reading reaches the other drawn headers.
WHOLE_HEADERS = st.sampled_from(
    [
        [("ce_specversion", version), ("ce_id", b"1"), ("ce_source", b"/s"), ("ce_type", b"t")]
        for version in (b"1.0", b"0.3", b"0.2", b"0.1", b"7")
    ]
    + [
        [
            ("ce_cloudEventsVersion", b"0.1"),
            ("ce_eventID", b"1"),
            ("ce_source", b"/s"),
            ("ce_eventType", b"t"),
        ],
        [],
    ]
)


def result_of(action: Callable[[], Any]) -> Any:
    """Returns the result of reading, or the text of its error."""
    try:
        return action()
    except CloudEventError as error:
        return str(error)


@given(
    VALUES,
    st.tuples(WHOLE_HEADERS, st.lists(st.tuples(HEADER_NAMES, HEADER_VALUES), max_size=3)).flatmap(
        lambda parts: st.permutations([*parts[0], *parts[1]])
    ),
    st.sampled_from([DEFAULT, LENIENT, STRICT, JSON_EVENTS]),
)
def test_lazy_and_batch_reading_agree_with_eager_reading(
    value: bytes | None, headers: list[tuple[str, bytes | None]], profile: Profile
) -> None:
    eager = result_of(lambda: from_kafka(b"k", value, headers, profile=profile))
    (one,) = from_kafka_many([(b"k", value, headers)], profile=profile)
    if isinstance(one, InvalidEvent):
        assert one.record == (b"k", value, tuple(headers))
        assert str(one.error) == eager
    else:
        assert one == eager
    lazy = result_of(lambda: lazy_from_kafka(b"k", value, headers, profile=profile))
    if not isinstance(lazy, LazyEvent):
        assert lazy == eager
        return
    assert result_of(lazy.event) == eager
    assert lazy.record() == (b"k", value, tuple(headers))
    if isinstance(eager, CloudEvent):
        for view in ("specversion", "id", "source", "type", "subject", "time", "datacontenttype"):
            assert getattr(lazy, view) == getattr(eager, view)
        for name in (*eager, "nothing", "data"):
            assert lazy.get(name) == eager.get(name)


ANYTHING: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.integers(), st.text(max_size=3), st.binary(max_size=3), st.just([])
)


@given(
    ANYTHING, ANYTHING, ANYTHING | st.lists(ANYTHING | st.tuples(ANYTHING, ANYTHING), max_size=4)
)
def test_parts_of_any_type_give_an_outcome_or_a_cloud_event_error(
    key: Any, value: Any, headers: Any
) -> None:
    for read in (from_kafka, lazy_from_kafka):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CloudEventWarning)
            try:
                outcome = read(key, value, headers)
            except CloudEventError:
                pass
            else:
                assert isinstance(outcome, CloudEvent | OpaqueEvent | NotAnEvent | LazyEvent)


MEMBERS = st.dictionaries(
    st.sampled_from(
        [
            "specversion",
            "cloudEventsVersion",
            "id",
            "eventID",
            "source",
            "type",
            "eventType",
            "time",
            "datacontenttype",
            "contenttype",
            "contentType",
            "datacontentencoding",
            "extensions",
            "data",
            "data_base64",
            "x",
        ]
    ),
    st.sampled_from(["1.0", "0.3", "0.2", "0.1", "7", "", "/s", "a/b", "AAE=", "base64"])
    | st.none()
    | st.integers()
    | st.dictionaries(st.sampled_from(["data", "y"]), st.integers() | st.text(), max_size=2),
)


def outcome_of(action: Callable[[], CloudEvent]) -> CloudEvent | None:
    """Returns the event, or None if CloudEventError is raised; the error must name a clause."""
    try:
        return action()
    except CloudEventError as error:
        clauses = error.clauses
    assert clauses
    return None


@given(MEMBERS.map(json.dumps) | st.text() | st.binary())
def test_any_document_is_an_event_or_a_cloud_event_error(document: str | bytes) -> None:
    event = outcome_of(lambda: from_json(document))
    if event is None:
        return
    assert to_json(event) == (document if isinstance(document, bytes) else document.encode())
    repr(event)
    for label in VERSIONS:
        converted = outcome_of(partial(event.to_version, label))
        if converted is not None:
            assert converted.id == event.id
            assert converted.has_data is event.has_data
