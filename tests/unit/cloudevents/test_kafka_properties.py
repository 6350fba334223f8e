"""The Kafka binding under arbitrary input: lossless, and no error but ours."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kproto_cloudevents import (
    LENIENT,
    STRICT,
    CloudEvent,
    CloudEventError,
    CloudEventWarning,
    KafkaRecord,
    LazyEvent,
    Mode,
    NotAnEvent,
    OpaqueEvent,
    Profile,
    from_kafka,
    lazy_from_kafka,
    to_kafka,
)

pytestmark = pytest.mark.filterwarnings("ignore::kproto_cloudevents.CloudEventWarning")

STRINGS = st.text(st.characters(exclude_categories=["Cc", "Cs", "Cn"]), min_size=1, max_size=20)
NAMES = st.from_regex("[a-z][a-z0-9]{0,12}", fullmatch=True).filter(
    lambda name: (
        name
        not in (
            "data",
            "specversion",
            "id",
            "source",
            "type",
            "time",
            "subject",
            "dataschema",
            "datacontenttype",
        )
    )
)
TIMES = st.from_regex(
    r"20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])[Tt]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
    r"(\.[0-9]{1,12})?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])",
    fullmatch=True,
)
SOURCES = st.sampled_from(["/a", "urn:x:1", "https://example.com/a?b#c", "1-555-123-4567", "#"])
CONTENT_TYPES = st.sampled_from(
    ["application/json", "TEXT/XML; charset=utf-8", "application/x+json;", "a/b", "text/plain"]
)
PAYLOADS = st.none() | st.binary(max_size=40)
OTHER_HEADERS = st.lists(
    st.tuples(st.text(max_size=8).filter(lambda name: not name.startswith("ce_")), PAYLOADS).filter(
        lambda header: header[0] != "content-type"
    ),
    max_size=3,
)


@st.composite
def attribute_texts(draw: st.DrawFn) -> dict[str, str]:
    """Attributes of a valid event, as text, in any order."""
    attributes = {
        "specversion": "1.0",
        "id": draw(STRINGS),
        "source": draw(SOURCES),
        "type": draw(STRINGS),
        **draw(st.dictionaries(NAMES, STRINGS | st.just(""), max_size=4)),
    }
    optional = {
        "time": TIMES,
        "subject": STRINGS,
        "datacontenttype": CONTENT_TYPES,
        "dataschema": st.just("http://a/b"),
    }
    for name, values in optional.items():
        if draw(st.booleans()):
            attributes[name] = draw(values)
    return dict(draw(st.permutations(list(attributes.items()))))


@st.composite
def binary_records(draw: st.DrawFn) -> KafkaRecord:
    """Valid records of binary mode, with headers that are not the event's in between."""
    headers: list[tuple[str, bytes | None]] = [
        ("content-type" if name == "datacontenttype" else f"ce_{name}", text.encode())
        for name, text in draw(attribute_texts()).items()
    ]
    unset = draw(st.lists(st.sampled_from(["ce_unset", "ce_UNSET", "ce_"]), max_size=2))
    more = [*draw(OTHER_HEADERS), *((name, None) for name in unset)]
    headers = draw(st.permutations([*headers, *more]))
    return KafkaRecord(draw(PAYLOADS), draw(PAYLOADS), tuple(headers))


@given(binary_records())
def test_binary_records_come_back_byte_for_byte(record: KafkaRecord) -> None:
    event = from_kafka(*record)
    assert isinstance(event, CloudEvent)
    assert to_kafka(event) == record
    assert event.data == record.value
    lazy = lazy_from_kafka(*record)
    assert not isinstance(lazy, LazyEvent) or lazy.event() == event
    # Written without the record it came from, the event's own headers are the same, in order.
    anew = to_kafka(CloudEvent(event.attributes, data=event.data))
    own = [
        h
        for h in record.headers
        if h[1] is not None and (h[0].startswith("ce_") or h[0] == "content-type")
    ]
    assert list(anew.headers) == own
    assert anew.value == record.value


@given(attribute_texts(), st.data(), PAYLOADS)
def test_structured_records_come_back_byte_for_byte(
    attributes: dict[str, str], data: st.DataObject, key: bytes | None
) -> None:
    members: dict[str, object] = dict(attributes)
    payload = data.draw(st.sampled_from(["none", "data", "base64"]))
    content_type = attributes.get("datacontenttype")
    is_json = content_type is None or "json" in content_type
    if payload == "data":
        values = st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.lists(st.text())
        members["data"] = data.draw(values if is_json else st.text())
    elif payload == "base64":
        members["data_base64"] = "AAE="
    order = data.draw(st.permutations(list(members.items())))
    value = json.dumps(
        dict(order),
        indent=data.draw(st.sampled_from([None, 1])),
        ensure_ascii=data.draw(st.booleans()),
    )
    try:
        encoded = value.encode()
    except UnicodeEncodeError:
        encoded = json.dumps(dict(order)).encode()
    headers = (("content-type", b"application/cloudevents+json"), *data.draw(OTHER_HEADERS))
    record = KafkaRecord(key, encoded, headers)
    event = from_kafka(*record)
    assert isinstance(event, CloudEvent)
    assert to_kafka(event) == record
    assert {name: event[name] for name in event} == attributes
    # And the way through binary mode keeps the event.
    through = from_kafka(*to_kafka(event, "binary"))
    assert isinstance(through, CloudEvent)
    implied = {"datacontenttype": "application/json"} if payload == "data" and is_json else {}
    assert dict(through.attributes) == {**implied, **attributes}
    assert through.data_bytes() == event.data_bytes()


HEADER_NAMES = st.sampled_from(
    [
        "ce_specversion",
        "ce_id",
        "ce_source",
        "ce_type",
        "ce_time",
        "ce_datacontenttype",
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
            b"7",
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
            b"[[",
            b'{"specversion":"x"}',
        ]
    )
)


@given(
    st.none() | st.binary(max_size=5),
    VALUES,
    st.lists(st.tuples(HEADER_NAMES, HEADER_VALUES), max_size=9),
    st.sampled_from([None, None, "binary", "structured"]),
    st.sampled_from([None, LENIENT, STRICT]),
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
                continue  # a charset that cannot be written
            assert isinstance(from_kafka(*written, mode=other, **settings), CloudEvent)


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
