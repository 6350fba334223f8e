"""Tests CloudEvents 0.1, the first release, which the Pulsar draft uses.

Its attributes are in camelCase, and one attribute is a map of the extensions.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

import pytest
from kproto_cloudevents import (
    LENIENT,
    CloudEvent,
    CloudEventError,
    JsonMap,
    LazyEvent,
    OpaqueEvent,
    UnknownVersionError,
    from_json,
    from_kafka,
    lazy_from_kafka,
    to_json,
    to_kafka,
)
from kproto_cloudevents.extensions import SAMPLED_RATE

from ..samples import event_of

#: The example in the specification.
EXAMPLE = b"""{
    "cloudEventsVersion" : "0.1",
    "eventType" : "com.example.someevent",
    "source" : "/mycontext",
    "eventID" : "A234-1234-1234",
    "eventTime" : "2018-04-05T17:31:00Z",
    "extensions" : {
        "comExampleExtension" : "value"
    },
    "contentType" : "text/xml",
    "data" : "<much wow=\\"xml\\"/>"
}"""

BASE: dict[str, Any] = {
    "cloudEventsVersion": "0.1",
    "eventType": "t",
    "eventTypeVersion": "1.2",
    "source": "/s",
    "eventID": "1",
}


def test_the_example_in_json() -> None:
    event = from_json(EXAMPLE)
    assert event.specversion == "0.1"
    assert (event.id, event.source, event.type) == (
        "A234-1234-1234",
        "/mycontext",
        "com.example.someevent",
    )
    assert event.time == "2018-04-05T17:31:00Z"
    assert event.datacontenttype == "text/xml"
    assert event.subject is None
    assert event.extensions == {"comExampleExtension": "value"}
    assert event.data == '<much wow="xml"/>'
    assert to_json(event) == EXAMPLE
    assert pickle.loads(pickle.dumps(event)) == event


def test_both_modes() -> None:
    event = from_json(EXAMPLE)
    for mode in ("binary", "structured"):
        record = to_kafka(event, mode)
        assert event_of(record) == event
        assert to_kafka(event_of(record)) == record
    binary = to_kafka(event, "binary")
    assert binary.headers == (
        ("ce_cloudEventsVersion", b"0.1"),
        ("ce_eventType", b"com.example.someevent"),
        ("ce_source", b"/mycontext"),
        ("ce_eventID", b"A234-1234-1234"),
        ("ce_eventTime", b"2018-04-05T17:31:00Z"),
        ("ce_extensions", b'{"comExampleExtension":"value"}'),
        ("content-type", b"text/xml"),
    )
    # In JSON the map is an object again.
    again = to_json(event_of(binary).replace(eventID="2"))
    assert b'"extensions":{"comExampleExtension":"value"}' in again


def test_lazy_and_lenient_reading() -> None:
    headers = to_kafka(from_json(EXAMPLE), "binary").headers
    for _ in range(2):
        lazy = lazy_from_kafka(None, b"x", headers)
        assert isinstance(lazy, LazyEvent)
        assert (lazy.id, lazy.type, lazy.specversion) == (
            "A234-1234-1234",
            "com.example.someevent",
            "0.1",
        )
    lower = tuple((name.lower(), raw) for name, raw in headers)
    with pytest.raises(CloudEventError, match="ce_specversion: the required attribute is missing"):
        from_kafka(None, b"x", lower)
    event = event_of((None, b"x", lower), profile=LENIENT)
    assert event.id == "A234-1234-1234"
    assert to_kafka(event).headers == lower
    # A 1.0 header whose name resembles one of 0.1 keeps its name.
    today = (
        ("CE_Specversion", b"1.0"),
        ("CE_Id", b"1"),
        ("CE_Source", b"/s"),
        ("CE_Type", b"t"),
        ("CE_EventID", b"x"),
        ("CE_CloudEventsVersion", b"0.1"),
    )
    assert event_of((None, b"", today), profile=LENIENT).extensions == {
        "eventid": "x",
        "cloudeventsversion": "0.1",
    }


def test_both_spellings_of_the_schema() -> None:
    assert CloudEvent(BASE, schemaURL="/a").dataschema == "/a"
    event = CloudEvent(BASE, schemaURI="http://a/b")
    assert event.dataschema == "http://a/b"
    assert dict(to_kafka(event).headers)["ce_schemaURI"] == b"http://a/b"
    new = event.replace(eventTypeVersion=None).to_version("1.0")
    assert new.dataschema == "http://a/b"


def test_extensions_beside_the_map_and_of_any_json() -> None:
    document = (
        b'{"cloudEventsVersion":"0.1","eventType":"t","source":"","eventID":"1","comExample":"a",'
        b'"extensions":{"n":5,"on":true,"none":null,"m":{"a":1.10},"list":[1],"f":1.5}}'
    )
    event = from_json(document)
    assert event.extensions == {
        "comExample": "a",
        "n": 5,
        "on": True,
        "m": '{"a":1.10}',
        "list": "[1]",
        "f": "1.5",
    }
    assert to_json(event) == document
    assert event_of(to_kafka(event, "binary")) == event


def test_typed_extensions_are_found_in_the_map() -> None:
    assert SAMPLED_RATE.read(CloudEvent(BASE, extensions=JsonMap('{"sampledrate":30}'))) == {
        "sampledrate": 30
    }


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"eventID": ""}, 'eventID: "" must not be empty .CloudEvents 0.1 "eventID"'),
        ({"eventID": None}, 'eventID: the required.*CloudEvents 0.1 "Context Attributes"'),
        ({"eventTypeVersion": ""}, 'eventTypeVersion: "" must not be empty'),
        ({"eventTime": "now"}, 'eventTime: "now" is not RFC 3339 .CloudEvents 0.1 "Timestamp"'),
        ({"source": "a b"}, 'source: "a b" is not a URI-reference.*CloudEvents 0.1 "URI"'),
        ({"contentType": "x"}, "contentType: .x. is no media type"),
        ({"extensions": "{}"}, 'extensions: "{}" must have at least one entry'),
        ({"extensions": "[1]"}, r'extensions: "\[1\]" is no JSON object'),
        ({"extensions": 5}, "extensions: int where a Map belongs"),
        ({"Upper": "x"}, 'in camelCase.*CloudEvents 0.1 "Attribute Naming Convention"'),
        ({"a_b": "x"}, "in camelCase"),
        ({"flag": True}, "flag: Boolean is no type of this version"),
    ],
)
def test_rules_of_its_own(attributes: Mapping[str, Any], message: str) -> None:
    with pytest.raises(CloudEventError, match=message):
        CloudEvent({**BASE, **attributes})


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ('"extensions":"{\\"a\\":1}"', "extensions: a string where an object belongs"),
        ('"extensions":[1]', "extensions: an array where an object belongs"),
        ('"extensions":5', "extensions: a number where an object belongs"),
        ('"extensions":{}', "extensions: .* must have at least one entry"),
        ('"eventTime":{}', "eventTime: an object where a string belongs"),
        ('"data_base64":"AA=="', "data_base64: an attribute name is in camelCase"),
        ('"specversion":"0.2"', "cloudEventsVersion: an attribute name starts with a letter"),
    ],
)
def test_broken_documents(members: str, message: str) -> None:
    text = f'{{"cloudEventsVersion":"0.1","eventType":"t","source":"","eventID":"1",{members}}}'
    with pytest.raises(CloudEventError, match=f"{message}.*JSON format 2.2"):
        from_json(text)


def test_names_of_today_are_not_known() -> None:
    with pytest.raises(CloudEventError, match="eventType: the required attribute is missing"):
        CloudEvent(cloudEventsVersion="0.1", id="1", source="/s", type="t")


def test_unknown_values_of_the_old_version_attribute() -> None:
    with pytest.raises(
        UnknownVersionError, match=r'cloudEventsVersion: "0.5" is no version .*0\.1'
    ):
        from_json(EXAMPLE.replace(b'"0.1"', b'"0.5"'))
    outcome = from_kafka(None, b"x", [("ce_cloudEventsVersion", b"0.5"), ("ce_Odd-Name", b"\xff")])
    assert isinstance(outcome, OpaqueEvent)
    assert to_kafka(outcome) == outcome.record


def test_data_of_its_own_rules() -> None:
    # The rules are those of 0.2; test_version_0_2 tests them in detail.
    event = CloudEvent(BASE, contentType="application/avro", data=b"\x00\x01")
    assert to_json(event).endswith(b'"data":"AAE="}')
    assert from_json(to_json(event)).data == "AAE="
    as_json = CloudEvent(BASE, contentType="application/json", data=b'{"a": 1}')
    assert to_json(as_json).endswith(b'"data":{"a": 1}}')


def test_entries_that_no_python_value_holds_exactly() -> None:
    digits = "9" * 5000
    entries = f'{{"m":{{"a":1e400,"b":[0.1000]}},"f":-1e400,"n":{digits}}}'
    event = CloudEvent(BASE, extensions=JsonMap(entries))
    assert event.extensions == {"m": '{"a":1e400,"b":[0.1000]}', "f": "-1e400", "n": digits}
    old = event.replace(eventTypeVersion=None)
    assert old.to_version("0.3", drop=["f", "n"])["m"] == '{"a":1e400,"b":[0.1000]}'
    with pytest.raises(CloudEventError, match=r"f \(an array or a fraction.*n \(an array or a fr"):
        old.to_version("0.3")


@pytest.mark.parametrize(
    "text", ['{"a":1,"a":2}', '{"m":{"a":1,"b":2,"a":1}}', '{"\\u0061":1,"a":1}']
)
def test_no_name_is_there_twice_in_a_map(text: str) -> None:
    with pytest.raises(CloudEventError, match=r'extensions: .* has a name twice \(.*0\.1 "Map"'):
        CloudEvent(BASE, extensions=JsonMap(text))
    members = EXAMPLE.replace(
        b'"extensions" : {', b'"extensions" : ' + text.encode() + b', "x" : {'
    )
    with pytest.raises(CloudEventError, match=r"extensions: .* has a name twice"):
        from_json(members)
    headers = to_kafka(CloudEvent(BASE)).headers
    with pytest.raises(CloudEventError, match=r"ce_extensions: .* has a name twice"):
        from_kafka(None, None, (*headers, ("ce_extensions", text.encode())))
