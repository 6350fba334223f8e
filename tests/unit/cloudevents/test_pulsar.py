"""Tests the Pulsar binding of the 2018 draft: it reads and writes properties and payload."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kproto_cloudevents import (
    JSON_NULL,
    LENIENT,
    STRICT,
    CloudEvent,
    CloudEventError,
    EventFormat,
    JsonMap,
    UnknownFormatError,
    UnknownVersionError,
    from_kafka,
    to_json,
    to_kafka,
)
from kproto_cloudevents.pulsar import (
    NotAPulsarEvent,
    OpaquePulsarEvent,
    PulsarMessage,
    from_pulsar,
    pulsar_message,
    to_pulsar,
)
from kproto_cloudevents.versions.spec_version import SpecVersion
from kproto_cloudevents.versions.version_tables import ALL_VERSIONS

from .samples import EVENT
from .test_lossless import BY_TYPE, EVERY_VERSION, FEW, JSON_VALUES, MAPS, PAYLOADS, attribute_texts

pytestmark = pytest.mark.filterwarnings("ignore::kproto_cloudevents.CloudEventWarning")

# The example in 3.1.3 of the draft, with its values as JSON (3.1.2.2).
DRAFT = {
    "CE-CloudEventsVersion": '"0.1"',
    "CE-EventType": '"org.apache.pulsar.someevent"',
    "CE-EventTime": '"2018-04-05T03:56:24Z"',
    "CE-EventID": '"adcd-abcd-abcd"',
    "CE-Source": '"/mycontext/subcontext"',
}
TODAY = {
    "CE-Specversion": '"1.0"',
    "CE-Id": '"1"',
    "CE-Source": '"/s"',
    "CE-Type": '"t"',
}


def read(properties: dict[str, str], payload: bytes | None = b"v", **settings: Any) -> CloudEvent:
    event = from_pulsar(properties, payload, **settings)
    assert isinstance(event, CloudEvent)
    return event


# --- binary mode --------------------------------------------------------------------------------


def test_the_example_of_the_draft_round_trips() -> None:
    event = read(DRAFT, b"{}")
    assert dict(event.attributes) == {
        "cloudEventsVersion": "0.1",
        "eventType": "org.apache.pulsar.someevent",
        "eventTime": "2018-04-05T03:56:24Z",
        "eventID": "adcd-abcd-abcd",
        "source": "/mycontext/subcontext",
    }
    assert event.data == b"{}"
    assert dict(to_pulsar(CloudEvent(event.attributes, data=b"{}")).properties) == DRAFT


def test_the_example_with_bare_values_is_read() -> None:
    bare = {name: json.loads(text) for name, text in DRAFT.items()}
    event = read(bare, bare_values=True)
    assert event == read(DRAFT)
    assert dict(to_pulsar(event).properties) == bare
    with pytest.raises(CloudEventError, match=r"CE-EventType: not JSON: .* must be in quotes"):
        from_pulsar({**DRAFT, "CE-EventType": "t"}, b"")
    with pytest.raises(CloudEventError, match=r"CE-CloudEventsVersion: .* lacks its quotes"):
        from_pulsar({**DRAFT, "CE-CloudEventsVersion": "0.1"}, b"")


@pytest.mark.parametrize(
    ("attribute", "name"),
    [
        ("eventTypeVersion", "CE-EventTypeVersion"),
        ("schemaURI", "CE-SchemaURI"),
        ("schemaURL", "CE-SchemaURL"),
        ("contentType", "CE-ContentType"),
    ],
)
def test_names_of_0_1_are_read_and_written(attribute: str, name: str) -> None:
    event = read({**DRAFT, name: '"a/b"'})
    assert event[attribute] == "a/b"
    written = to_pulsar(event.replace(source="/other")).properties
    assert written[name] == '"a/b"'


def test_each_map_entry_has_a_property() -> None:
    entries = {"CE-X-Example": "5", "CE-X-TestExtension": '{"a": 1.10}', "CE-X-1": "null"}
    event = read({**DRAFT, **entries})
    assert event["extensions"] == JsonMap('{"example":5,"testExtension":{"a":1.10},"1":null}')
    assert event.extensions["example"] == 5
    written = to_pulsar(event.replace(source="/other")).properties
    assert written["CE-X-TestExtension"] == '{"a":1.10}'
    assert "CE-Extensions" not in written
    with pytest.raises(CloudEventError, match="CE-Extensions: each entry of extensions"):
        from_pulsar({**DRAFT, "CE-Extensions": '{"a":1}'}, b"")
    for wrong in ("Example", ""):
        with pytest.raises(CloudEventError, match="find the entry under another name"):
            to_pulsar(event.replace(extensions=JsonMap.of({wrong: 1})))
    with pytest.raises(CloudEventError, match="CE-X-Example: not JSON"):
        from_pulsar({**DRAFT, "CE-X-Example": "{"}, b"")


def test_an_event_of_1_0_round_trips() -> None:
    message = to_pulsar(EVENT)
    assert dict(message.properties) == {
        "CE-Specversion": '"1.0"',
        "CE-Id": '"1"',
        "CE-Source": '"/s"',
        "CE-Type": '"t"',
        "CE-Time": '"2018-04-05T03:56:24.10+02:00"',
        "CE-X-Partitionkey": '"AA"',
        "CE-Datacontenttype": '"text/plain"',
        "CE-X-N": "5",
        "CE-X-Ok": "true",
        "CE-X-Raw": '"AA=="',
    }
    assert message.payload == "grün".encode()
    event = read(dict(message.properties), message.payload)
    assert event == EVENT
    assert event["n"] == 5
    assert event["ok"] is True
    assert repr(message).startswith("PulsarMessage(properties=[CE-Specversion, ")
    assert "grün" not in repr(message)


def test_null_is_unset_and_extensions_may_lack_x() -> None:
    event = read({**TODAY, "CE-Subject": "null", "CE-Foo": '"bar"', "CE-X-Nil": " null "})
    assert "subject" not in event
    assert dict(event.extensions) == {"foo": "bar"}


def test_the_mode_property_is_the_content_type_in_every_version() -> None:
    mode_property = {"CE-ContentType": '"a/b"'}
    assert read({**TODAY, **mode_property}).datacontenttype == "a/b"
    assert read({**TODAY, **mode_property, "CE-Datacontenttype": '"a/b"'}).datacontenttype == "a/b"
    assert read({**mode_property, "CE-Datacontenttype": '"a/b"', **TODAY}).datacontenttype == "a/b"
    with pytest.raises(CloudEventError, match="the attribute datacontenttype appears twice"):
        from_pulsar({**TODAY, **mode_property, "CE-Datacontenttype": '"c/d"'}, b"")


def test_no_data_is_null_and_empty_data_is_empty() -> None:
    assert read(TODAY, None).data is None
    assert read(TODAY, b"").data == b""
    assert to_pulsar(read(TODAY, None).replace(id="2")).payload is None
    assert to_pulsar(read(TODAY, b"").replace(id="2")).payload == b""


def test_json_implies_its_content_type() -> None:
    message = to_pulsar(CloudEvent(id="1", source="/s", type="t", data=JSON_NULL))
    assert message.properties["CE-Datacontenttype"] == '"application/json"'
    assert message.payload == b"null"


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"CE-Foo": '"x"'}, "CE-Specversion: the required attribute is missing"),
        ({"CE-X-Foo": '"x"'}, "CE-Specversion: the required attribute is missing"),
        ({**TODAY, "CE-Id": "null"}, "CE-Id: the required attribute is missing"),
        ({**TODAY, "CE-Id": '""'}, 'CE-Id: "" must not be empty'),
        ({**TODAY, "CE-Id": "5"}, "CE-Id: int where a String belongs"),
        ({**TODAY, "CE-Time": '"tomorrow"'}, 'CE-Time: "tomorrow" is not RFC 3339 '),
        ({**TODAY, "CE-id": '"1"'}, "CE-id: the first letter after CE- must"),
        ({**TODAY, "CE-": '"1"'}, "CE-: the first letter after CE- must"),
        ({**TODAY, "CE-X-": '"1"'}, "CE-X-: the first letter after CE-X- must"),
        ({**TODAY, "CE-X-Id": '"1"'}, "CE-X-Id: id is no extension: its property is CE-Id"),
        ({**TODAY, "CE-X-Foo": '"1"', "CE-Foo": '"1"'}, "the attribute foo appears twice"),
        ({**TODAY, "CE-X-Foo": "1.5"}, "CE-X-Foo: the value is no JSON string, boolean"),
        ({**TODAY, "CE-X-Foo": "[]"}, "CE-X-Foo: the value is no JSON string, boolean"),
        ({**TODAY, "CE-X-Foo": '{"a":1}'}, "CE-X-Foo: the value is no JSON string, boolean"),
        ({**TODAY, "CE-X-Foo": "2147483648"}, "CE-X-Foo: the integer is beyond 32 bits"),
        ({**TODAY, "CE-X-Foo": '"\\u0001"'}, "CE-X-Foo: .* has U\\+0001"),
        ({**TODAY, "CE-X-fOo": '"1"'}, "CE-X-fOo: the first letter after CE-X-"),
        ({**TODAY, "CE-X-Foo_bar": '"1"'}, "CE-X-Foo_bar: an attribute name has only"),
        ({**TODAY, "CE-Data": '"1"'}, "CE-Data: no attribute may be called data"),
        ({**TODAY, "CE-Specversion": '""'}, 'CE-Specversion: "" must not be empty'),
    ],
)
def test_properties_that_break_a_rule_are_refused(properties: dict[str, str], message: str) -> None:
    with pytest.raises(CloudEventError, match=message):
        from_pulsar(properties, b"v")


@pytest.mark.parametrize(
    ("properties", "payload", "message"),
    [
        (None, b"", "properties of a message are a mapping"),
        ([("a", "b")], b"", "properties of a message are a mapping"),
        ({"a": b"b"}, b"", "a str by name"),
        ({1: "b"}, b"", "a str by name"),
        ({}, "text", "payload of a message is bytes"),
    ],
)
def test_parts_of_a_wrong_type_are_refused(properties: Any, payload: Any, message: str) -> None:
    with pytest.raises(CloudEventError, match=message):
        from_pulsar(properties, payload)


# --- the mode -----------------------------------------------------------------------------------

DOCUMENT = b'{ "specversion":"1.0","id":"1","source":"/s","type":"t","data":[1.10] }'


@pytest.mark.parametrize(
    "content_type",
    [
        "application/cloudevents+json",
        '"application/cloudevents+json"',
        ' "APPLICATION/CloudEvents+JSON; charset=utf-8" ',
        "application/cloudevents+json;charset=UTF-8",
    ],
)
def test_structured_mode_with_quotes_or_without(content_type: str) -> None:
    properties = {"CE-ContentType": content_type, "mine": "kept", "CE-Id": "even this"}
    event = read(properties, DOCUMENT)
    assert event.json() == [1.1]
    assert to_pulsar(event) == (properties, DOCUMENT)
    assert pulsar_message(event) == (properties, DOCUMENT)
    binary = to_pulsar(event, "binary")
    assert binary.properties["CE-Id"] == '"1"'
    assert binary.properties["mine"] == "kept"
    assert binary.payload == b"[1.10]"


def test_writing_structured_mode() -> None:
    message = to_pulsar(EVENT, "structured")
    assert dict(message.properties) == {"CE-ContentType": '"application/cloudevents+json"'}
    assert message.payload == to_json(EVENT)
    repeated = to_pulsar(EVENT, "structured", repeat_attributes=True)
    assert repeated.properties["CE-Id"] == '"1"'
    assert repeated.payload == message.payload
    assert read(dict(repeated.properties), repeated.payload) == EVENT
    for media_type in ("application/json", "application/cloudevents-batch+json"):
        other = EventFormat(media_type, lambda _: EVENT, lambda _: b"own")
        with pytest.raises(CloudEventError, match="is no media type of an event format"):
            to_pulsar(EVENT, "structured", event_format=other)
    own = EventFormat("application/cloudevents+own", lambda _: EVENT, lambda _: b"own")
    chosen = to_pulsar(EVENT, "structured", event_format=own)
    assert chosen == ({"CE-ContentType": '"application/cloudevents+own"'}, b"own")
    with pytest.raises(CloudEventError, match="mode is binary or structured"):
        to_pulsar(EVENT, "batched")  # type: ignore[arg-type]  # no such mode
    with pytest.raises(CloudEventError, match="mode is binary or structured"):
        from_pulsar(TODAY, b"", mode="batched")  # type: ignore[arg-type]  # no such mode


@pytest.mark.parametrize("kind", ["application/cloudeventsx", "application/json", "no media type"])
def test_other_content_types_are_binary_mode(kind: str) -> None:
    found = from_pulsar({"CE-ContentType": json.dumps(kind)}, DOCUMENT)
    assert isinstance(found, NotAPulsarEvent)


def test_the_mode_can_be_forced() -> None:
    assert isinstance(from_pulsar({}, DOCUMENT), NotAPulsarEvent)
    assert read({}, DOCUMENT, mode="structured").json() == [1.1]
    structured = {"CE-ContentType": '"application/cloudevents+json"'}
    event = read({**TODAY, **structured}, DOCUMENT, mode="binary")
    assert event.datacontenttype == "application/cloudevents+json"
    with pytest.raises(CloudEventError, match="CE-Specversion: the required attribute"):
        from_pulsar({}, DOCUMENT, mode="binary")


def test_event_data_inside_an_event_is_kept() -> None:
    """Tests an event whose data has the content type of a CloudEvent.

    In 0.1 the property CE-ContentType has the content type of the data, but also decides the mode
    of the message. In 1.0 the content type of the data has a property of its own.
    """
    today = to_pulsar(
        CloudEvent(id="1", source="/s", type="t", datacontenttype="application/cloudevents+json")
    )
    assert read(dict(today.properties), None).data is None
    nested = {**DRAFT, "CE-ContentType": '"application/cloudevents+json"'}
    old = read(nested, DOCUMENT, mode="binary")
    with pytest.raises(CloudEventError, match="would be read as structured"):
        to_pulsar(old.replace(source="/x"))
    assert to_pulsar(old.replace(source="/x"), "structured").payload is not None


def test_batches_and_null_are_no_structured_event() -> None:
    with pytest.raises(CloudEventError, match="a batch of events cannot be one Pulsar message"):
        from_pulsar({"CE-ContentType": '"application/cloudevents-batch+json"'}, b"[]")
    with pytest.raises(CloudEventError, match="a structured event is never null"):
        from_pulsar({"CE-ContentType": '"application/cloudevents+json"'}, None)
    with pytest.raises(CloudEventError, match="CE-ContentType: not JSON"):
        from_pulsar({"CE-ContentType": '"application/json'}, b"")


# --- forwarded messages -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("properties", "error"),
    [
        ({"CE-ContentType": "application/cloudevents+unknown"}, UnknownFormatError),
        ({"CE-ContentType": '"application/cloudevents"'}, UnknownFormatError),
        ({**TODAY, "CE-Specversion": '"9.9"'}, UnknownVersionError),
        ({"CE-CloudEventsVersion": '"0.0"'}, UnknownVersionError),
    ],
)
def test_unknown_formats_and_versions_are_forwarded_or_refused(
    properties: dict[str, str], error: type[CloudEventError]
) -> None:
    found = from_pulsar(properties, b"\x00")
    assert isinstance(found, OpaquePulsarEvent)
    assert to_pulsar(found) == (properties, b"\x00")
    with pytest.raises(CloudEventError, match="only be forwarded unchanged"):
        to_pulsar(found, "binary")
    with pytest.raises(error) as refused:
        from_pulsar(properties, b"\x00", profile=STRICT)
    assert str(refused.value) == found.reason
    assert found.unknown == ("version" if error is UnknownVersionError else "format")
    assert pickle.loads(pickle.dumps(found)).unknown == found.unknown
    assert OpaquePulsarEvent(found.message, "by hand").unknown is None


def test_an_unknown_version_in_a_document_is_opaque() -> None:
    document = b'{"specversion":"9.9"}'
    properties = {"CE-ContentType": '"application/cloudevents+json"'}
    assert isinstance(from_pulsar(properties, document), OpaquePulsarEvent)


def test_a_message_without_an_event_is_forwarded() -> None:
    found = from_pulsar({"traceparent": "x"}, None)
    assert isinstance(found, NotAPulsarEvent)
    assert to_pulsar(found) == ({"traceparent": "x"}, None)
    more = to_pulsar(found, properties={"mine": "2"})
    assert more == ({"traceparent": "x", "mine": "2"}, None)
    with pytest.raises(CloudEventError, match="the property belongs to the event"):
        to_pulsar(EVENT, properties={"ce-id": '"1"'})
    assert to_pulsar(EVENT, properties={"mine": "2"}).properties["mine"] == "2"


def test_properties_are_copied_when_read() -> None:
    properties = dict(TODAY)
    event = read(properties)
    properties["CE-Id"] = '"2"'
    assert to_pulsar(event).properties["CE-Id"] == '"1"'
    to_pulsar(event).properties.clear()
    kept = pulsar_message(event)
    assert kept is not None
    kept.properties.clear()
    assert to_pulsar(event).properties == TODAY
    assert pulsar_message(EVENT) is None


# --- any case -----------------------------------------------------------------------------------


def test_the_lenient_profile_accepts_names_in_any_case() -> None:
    lower = {name.lower(): text for name, text in {**DRAFT, "CE-X-TestExtension": "1"}.items()}
    event = read(lower, profile=LENIENT)
    assert event.id == "adcd-abcd-abcd"
    assert event["eventTime"] == "2018-04-05T03:56:24Z"
    assert dict(event.extensions) == {"testextension": 1}
    assert dict(to_pulsar(event).properties) == lower
    assert isinstance(from_pulsar(lower, b""), NotAPulsarEvent)
    structured = {"ce-contenttype": "application/cloudevents+json"}
    assert read(structured, DOCUMENT, profile=LENIENT).id == "1"
    with pytest.raises(CloudEventError, match="twice, in different case"):
        from_pulsar({**TODAY, "ce-id": '"1"'}, b"", profile=LENIENT)


def test_properties_in_another_case_are_not_copied_to_another_mode() -> None:
    theirs = {"ce-contenttype": '"a/b"', "ce-id": "2", "x": ""}
    structured = {"CE-ContentType": "application/cloudevents+json", **theirs}
    assert to_pulsar(read(structured, DOCUMENT)).properties == structured
    other = to_pulsar(read(structured, DOCUMENT), "binary")
    assert other.properties["x"] == ""
    assert theirs.keys() & other.properties.keys() == {"x"}
    assert read(other.properties, other.payload, profile=LENIENT).id == "1"
    lenient = {"ce-contenttype": "application/cloudevents+json", "x": ""}
    written = to_pulsar(read(lenient, DOCUMENT, profile=LENIENT), "binary").properties
    assert "ce-contenttype" not in written
    assert written["x"] == ""
    assert read(written, profile=LENIENT).id == "1"


# --- with the Kafka binding -------------------------------------------------------------------


def test_events_move_between_kafka_and_pulsar() -> None:
    record = to_kafka(EVENT, key=b"k")
    event = from_kafka(*record)
    assert isinstance(event, CloudEvent)
    message = to_pulsar(event)
    there = read(dict(message.properties), message.payload)
    assert there == EVENT
    assert to_kafka(there).headers == record.headers
    structured = to_pulsar(EVENT, "structured")
    back = read(dict(structured.properties), structured.payload)
    assert to_kafka(back, "structured").value == structured.payload


# --- lossless -----------------------------------------------------------------------------------


def written_as(version: SpecVersion, name: str, text: str) -> tuple[str, str]:
    """Returns name and value of the Pulsar property for an attribute, without the tested code."""
    prefix = "CE-" if name in version.attributes or version.extension_map else "CE-X-"
    return prefix + name[0].upper() + name[1:], json.dumps(text)


@EVERY_VERSION
@FEW
@given(st.data())
@pytest.mark.slow
def test_messages_round_trip_without_change(version: SpecVersion, data: st.DataObject) -> None:
    texts = data.draw(attribute_texts(version))
    texts.pop(version.extension_map or "", None)
    properties = dict(written_as(version, name, text) for name, text in texts.items())
    own = dict(properties)
    if version.extension_map is not None:
        entries = data.draw(
            st.dictionaries(
                st.text("abC1", min_size=1).filter(lambda name: not name[0].isupper()),
                JSON_VALUES,
                max_size=2,
            )
        )
        own |= {
            f"CE-X-{name[0].upper()}{name[1:]}": json.dumps(value)
            for name, value in entries.items()
        }
    foreign = st.text(max_size=5).filter(lambda name: not name.upper().startswith("CE-"))
    properties = {**own, **data.draw(st.dictionaries(foreign, st.text(max_size=5), max_size=2))}
    properties = dict(data.draw(st.permutations(list(properties.items()))))
    payload = data.draw(PAYLOADS)
    event = read(properties, payload)
    again = to_pulsar(event)
    assert list(again.properties.items()) == list(properties.items())
    assert again.payload == payload
    assert event.data == payload
    anew = to_pulsar(CloudEvent(event.attributes, data=event.data))
    unsaid = written_as(version, version.data_encoding or "-", "")[0]
    expected = {
        name: json.loads(text) for name, text in own.items() if name != unsaid or payload is None
    }
    assert {name: json.loads(text) for name, text in anew.properties.items()} == expected
    assert anew.payload == payload


ANY_TEXT = st.text(max_size=12) | JSON_VALUES.map(json.dumps) | MAPS.map(json.dumps)
NAMES = (
    st.sampled_from(
        ["CE-", "CE-X-", "CE-ContentType", "CE-X-Foo", "CE-Foo", "ce-id", "CE-Extensions"]
        + [f"CE-{name[0].upper()}{name[1:]}" for each in ALL_VERSIONS for name in each.attributes]
    )
    | st.text(max_size=4).map(lambda rest: "CE-" + rest)
    | st.text(max_size=4)
)
VALUES = (
    ANY_TEXT
    | st.one_of(*BY_TYPE.values()).map(json.dumps)
    | st.sampled_from(['"1.0"', '"0.1"', '"0.3"', '"0.2"', '"application/cloudevents+json"'])
)


@given(
    st.dictionaries(NAMES, VALUES, max_size=8),
    PAYLOADS | JSON_VALUES.map(lambda value: json.dumps(value).encode()),
    st.sampled_from([{}, {"profile": LENIENT}, {"bare_values": True}, {"profile": STRICT}]),
    st.booleans(),
)
def test_any_message_is_read_or_refused(
    properties: dict[str, str], payload: bytes | None, settings: dict[str, Any], whole: bool
) -> None:
    if whole:
        properties = {**TODAY, **properties}
    try:
        found = from_pulsar(properties, payload, **settings)
    except CloudEventError as error:
        strict = settings.get("profile") is STRICT
        unknown = isinstance(error, UnknownFormatError | UnknownVersionError)
        assert strict or not unknown
    else:
        message = PulsarMessage(properties, payload)
        assert to_pulsar(found) == message
        assert list(to_pulsar(found).properties) == list(properties)


OLD = {
    "CE-CloudEventsVersion": '"0.1"',
    "CE-EventID": '"1"',
    "CE-Source": '"/s"',
    "CE-EventType": '"t"',
}
OF_0_3 = {"CE-Specversion": '"0.3"', "CE-Id": '"1"', "CE-Source": '"/s"', "CE-Type": '"t"'}


@pytest.mark.parametrize("bare_values", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":2}',
        '{"b": {"a":1, "\\u0061":1}}',
        '{"b":[{"a":1,"a":1}]}',
        '{"a":1,"c":{},"a":{}}',
    ],
)
@pytest.mark.parametrize(
    ("properties", "name"), [(OLD, "CE-X-M"), (OLD, "CE-M"), (OF_0_3, "CE-X-M"), (OF_0_3, "CE-M")]
)
def test_duplicate_names_in_a_map_are_refused(
    properties: dict[str, str], name: str, text: str, bare_values: bool
) -> None:
    with pytest.raises(CloudEventError, match=rf"{name}: .* has a name twice \(Pulsar draft 3"):
        from_pulsar({**properties, name: text}, b"", bare_values=bare_values)
    right = text.replace("a", "x", 1)
    assert isinstance(from_pulsar({**properties, name: right}, b""), CloudEvent)


def test_duplicate_names_in_an_array_entry_are_refused() -> None:
    with pytest.raises(CloudEventError, match=r"CE-X-M: .* has a name twice"):
        from_pulsar({**OLD, "CE-X-M": '[{"a":1,"a":2}]'}, b"")
    assert isinstance(from_pulsar({**OLD, "CE-X-M": '[{"a":1},{"a":2}]'}, b""), CloudEvent)
