"""Tests events: how they are made, validated, compared, printed and pickled."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from kproto_cloudevents import (
    JSON_NULL,
    CloudEvent,
    CloudEventError,
    CloudEventWarning,
    JsonMap,
    LazyEvent,
    Mode,
    Timestamp,
    UnknownVersionError,
    from_json,
    from_kafka,
    lazy_from_kafka,
    to_json,
    to_kafka,
)
from kproto_cloudevents.pulsar import from_pulsar, to_pulsar
from kproto_cloudevents.versions.version_tables import V1_0

BASE = {"id": "1", "source": "/shop", "type": "order.placed"}


def test_attributes_in_the_order_given_specversion_first_unless_given() -> None:
    assert list(CloudEvent(BASE)) == ["specversion", "id", "source", "type"]
    given = {"type": "t", "specversion": "1.0", "source": "/s", "id": "1"}
    assert list(CloudEvent(given, zone="x").attributes.items()) == [*given.items(), ("zone", "x")]


def test_views() -> None:
    event = CloudEvent(
        BASE,
        time="2018-04-05T17:31:00+02:00",
        subject="s",
        dataschema="http://a/b",
        datacontenttype="text/plain",
        zone="x",
        data="hello",
    )
    assert (event.specversion, event.id, event.source, event.type) == (
        "1.0",
        "1",
        "/shop",
        "order.placed",
    )
    assert (event.subject, event.dataschema, event.datacontenttype) == (
        "s",
        "http://a/b",
        "text/plain",
    )
    assert event.time == "2018-04-05T17:31:00+02:00"
    assert event.time.datetime == datetime(2018, 4, 5, 15, 31, tzinfo=UTC)
    assert event.extensions == {"zone": "x"}
    assert event["zone"] == "x"
    assert event.get("nothing") is None
    assert "zone" in event
    assert "nothing" not in event


def test_nothing_is_invented() -> None:
    event = CloudEvent(BASE)
    assert event.time is None
    assert event.datacontenttype is None
    assert set(event.attributes) == {"specversion", "id", "source", "type"}


def test_none_is_unset() -> None:
    assert "subject" not in CloudEvent(BASE, subject=None)


def test_native_values_keep_their_type_and_datetimes_become_text() -> None:
    event = CloudEvent(BASE, n=5, b=True, raw=b"\x00", time=datetime(2020, 1, 1, tzinfo=UTC))
    assert event["n"] == 5
    assert event["b"] is True
    assert event["raw"] == b"\x00"
    assert event.time == "2020-01-01T00:00:00Z"
    assert isinstance(event["time"], Timestamp)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({}, 'id: the required attribute is missing (CloudEvents 1.0 "REQUIRED Attributes")'),
        ({**BASE, "id": ""}, 'id: "" must not be empty (CloudEvents 1.0 "id")'),
        ({**BASE, "type": ""}, 'type: "" must not be empty (CloudEvents 1.0 "type")'),
        (
            {**BASE, "source": "a b"},
            'source: "a b" is not a URI-reference (RFC 3986) (CloudEvents 1.0 "URI-reference")',
        ),
        (
            {**BASE, "dataschema": "/relative"},
            'dataschema: "/relative" is not an absolute URI (RFC 3986) (CloudEvents 1.0 "URI")',
        ),
        (
            {**BASE, "time": "tomorrow"},
            'time: "tomorrow" is not RFC 3339 (CloudEvents 1.0 "Timestamp")',
        ),
        (
            {**BASE, "datacontenttype": "json"},
            (
                'datacontenttype: "json" is no media type (RFC 2046) '
                '(CloudEvents 1.0 "datacontenttype")'
            ),
        ),
        (
            {**BASE, "subject": "a\nb"},
            (
                'subject: "a\\nb" has U+000A, which is not allowed in a String '
                '(CloudEvents 1.0 "String")'
            ),
        ),
        (
            {**BASE, "Zone": "x"},
            (
                "Zone: an attribute name has only lower-case letters a to z and digits "
                '(CloudEvents 1.0 "Naming Conventions")'
            ),
        ),
        (
            {**BASE, "data": "x"},
            'data: no attribute may be called data (CloudEvents 1.0 "Naming Conventions")',
        ),
        ({**BASE, "id": 5}, 'id: int where a String belongs: pass its text (CloudEvents 1.0 "id")'),
        (
            {**BASE, "n": 2**31},
            'n: the integer is beyond 32 bits: send it as a String (CloudEvents 1.0 "Integer")',
        ),
        (
            {**BASE, "n": 1.5},
            (
                "n: float is no attribute value: use str, bool, int, bytes or datetime "
                '(CloudEvents 1.0 "Type System")'
            ),
        ),
    ],
)
def test_rules_and_the_clauses_they_stand_in(attributes: Mapping[str, Any], message: str) -> None:
    with pytest.raises(CloudEventError) as caught:
        CloudEvent(attributes)
    assert str(caught.value) == message
    assert caught.value.clauses


def test_other_wrong_names() -> None:
    for name in ("", "a-b", "ä", "a_b", "x\n"):
        with pytest.raises(CloudEventError, match="Naming Conventions"):
            CloudEvent({**BASE, name: "x"})
    with pytest.raises(CloudEventError, match=r'^"": an attribute name has only'):
        CloudEvent({**BASE, "": "x"})
    number: Any = 5
    with pytest.raises(CloudEventError, match="an attribute name is a str, not int"):
        CloudEvent({**BASE, number: "x"})


def test_unknown_version() -> None:
    with pytest.raises(UnknownVersionError, match=r'specversion: "9.9" is no version known here'):
        CloudEvent(BASE, specversion="9.9")


def test_advice_on_names_is_a_warning_and_given_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(V1_0, "_valid_names", set())  # forgets the names of earlier tests
    long_name = "averylongnameforanattribute"
    with pytest.warns(CloudEventWarning, match="27 characters"):
        CloudEvent({**BASE, long_name: "x"})
    CloudEvent({**BASE, long_name: "x"})
    with pytest.warns(CloudEventWarning, match="starts with a digit"):
        CloudEvent({**BASE, "9lives": "x"})


# --- data ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content_type", "given", "seen", "payload"),
    [
        (None, None, None, None),
        (None, b"\x00", b"\x00", b"\x00"),
        (None, bytearray(b"ab"), b"ab", b"ab"),
        (None, b"", b"", b""),
        (None, "text", "text", b'"text"'),
        (None, {"a": [1, None]}, {"a": [1, None]}, b'{"a":[1,null]}'),
        (None, JSON_NULL, JSON_NULL, b"null"),
        ("application/json", "text", "text", b'"text"'),
        ("application/problem+json", 1.5, 1.5, b"1.5"),
        ("application/json", b'{"a": 1}', b'{"a": 1}', b'{"a": 1}'),
        ("text/plain", "grün", "grün", "grün".encode()),
        ("text/plain; charset=ISO-8859-1", "grün", "grün", b"gr\xfcn"),
        ("application/json; charset=us-ascii", "grün", "grün", b'"gr\\u00fcn"'),
        ("application/json; charset=us-ascii", "\U0001f600", "\U0001f600", b'"\\ud83d\\ude00"'),
        ("application/json", "\ud800", "\ud800", b'"\\ud800"'),
    ],
)
def test_data_and_its_payload(
    content_type: str | None, given: Any, seen: Any, payload: bytes | None
) -> None:
    event = CloudEvent(BASE, datacontenttype=content_type, data=given)
    assert event.data == seen
    assert event.data_bytes() == payload
    assert event.has_data is (given is not None)


def test_json_view() -> None:
    assert CloudEvent(BASE, data={"a": 1}).json() == {"a": 1}
    assert CloudEvent(BASE, data=b'{"a": 1}').json() == {"a": 1}
    assert CloudEvent(BASE, data=JSON_NULL).json() is None
    latin = CloudEvent(BASE, datacontenttype="text/json;charset=latin-1", data=b'"\xfc"')
    assert latin.json() == "ü"
    with pytest.raises(CloudEventError, match="no data"):
        CloudEvent(BASE).json()
    for wrong in (b"{", b"\xff", b"1 2", b"NaN", b"[1,]"):
        with pytest.raises(CloudEventError):
            CloudEvent(BASE, data=wrong).json()


@pytest.mark.parametrize("value", [{1, 2}, object(), float("nan"), [float("inf")]])
def test_data_that_json_cannot_express(value: object) -> None:
    with pytest.raises(CloudEventError, match="cannot be written as JSON"):
        CloudEvent(BASE, data=value)
    with pytest.raises(CloudEventError, match=r"cannot be data of|cannot be written"):
        CloudEvent(BASE, datacontenttype="text/xml", data=value)


def test_endless_data() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(CloudEventError, match="cannot be written as JSON"):
        CloudEvent(BASE, data=loop)


@pytest.mark.parametrize("charset", ["nonsense", "base64", "idna", "undefined", '"\\""'])
def test_charsets_that_do_not_work(charset: str) -> None:
    event = CloudEvent(BASE, datacontenttype=f"text/plain; charset={charset}", data="a..b" * 30)
    with pytest.raises(CloudEventError, match="charset"):
        event.data_bytes()


def test_json_data_is_safe_from_changes() -> None:
    given = {"a": 1}
    event = CloudEvent(BASE, data=given)
    given["a"] = 2
    event.data["a"] = 3
    assert event.data == {"a": 1}


# --- the event as a value -----------------------------------------------------------------------


def test_immutable() -> None:
    event: Any = CloudEvent(BASE)
    with pytest.raises(AttributeError):
        event.id = "2"
    with pytest.raises(TypeError):
        event.attributes["id"] = "2"
    with pytest.raises(AttributeError):
        event.other = 1


def test_replace() -> None:
    event = CloudEvent(BASE, data={"a": 1.0}, subject="s")
    changed = event.replace(subject=None, id="2")
    assert (changed.id, changed.subject, changed.data) == ("2", None, {"a": 1.0})
    assert event.id == "1"
    assert event.replace(data=None).has_data is False
    assert event.replace(data=b"x").data == b"x"
    with pytest.raises(CloudEventError, match="cannot be data of"):
        event.replace(datacontenttype="text/xml")
    text = CloudEvent(BASE, datacontenttype="text/plain", data="t")
    assert text.replace(datacontenttype="application/json").data_bytes() == b'"t"'
    assert text.replace(zone="x").data_bytes() == b"t"


def test_equality() -> None:
    event = CloudEvent(BASE, n=5, ok=True, raw=b"\x00", data={"b": 1, "a": [1.5]})
    same = CloudEvent({"n": "5", "ok": "true", "raw": "AA==", **BASE}, data=b'{"a" : [1.5], "b":1}')
    assert event == same
    assert hash(event) == hash(same)
    assert event != event.replace(n=6)
    assert event != event.replace(data={"b": 1, "a": [1.25]})
    assert event != event.replace(data=None)
    assert CloudEvent(BASE, data=[1]) != CloudEvent(BASE, data=[True])
    assert CloudEvent(BASE, data=b"not json") != CloudEvent(BASE, data=[True])
    text = CloudEvent(BASE, datacontenttype="text/plain", data="t")
    assert text == text.replace(data=b"t")
    assert text.replace(data=b"t") == text
    assert CloudEvent(BASE) != "event"
    assert len({event, same}) == 1


def test_attributes_that_python_alone_holds_to_be_equal() -> None:
    assert CloudEvent(BASE, n=True) != CloudEvent(BASE, n=1)
    assert CloudEvent(BASE, n=False) != CloudEvent(BASE, n="0")
    assert CloudEvent(BASE, n=True) == CloudEvent(BASE, n="true")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("1", "1.0", False),
        ("1", "true", False),
        ("0", "-0", True),
        ("0.0", "-0.0", True),
        ("0.0", "-0e5", True),
        ("0.0", "-1e-400", False),
        ("1.10", "1.1", True),
        ("100.0", "1e2", True),
        ("1e400", "1E+400", True),
        ("1e400", "1e500", False),
        ("1e99999999999999999999", "1e99999999999999999998", False),
        ("0.1", "0.1000000000000000055511151231257827", False),
        ("9" * 5000, "9" * 5000, True),
        ("9" * 5000, f'"{"9" * 5000}"', False),
        ('["whole","1"]', "1", False),
        ('{"a":1,"b":[]}', '{ "b" : [ ], "a" : 1 }', True),
    ],
)
def test_equality_of_json(one: str, other: str, same: bool) -> None:
    base = CloudEvent(BASE, datacontenttype="application/json")
    as_value = from_json(to_json(base.replace(data=one.encode())))
    assert (as_value == base.replace(data=other.encode())) is same
    assert (as_value == from_json(to_json(base.replace(data=other.encode())))) is same


def test_deep_data_prints_compares_and_travels_where_the_stack_is_deep() -> None:
    deep = "[" * 900 + '"]}\\""' + "]" * 900
    document = f'{{"specversion":"1.0","id":"1","source":"/s","type":"t","data":{deep}}}'

    def checks(frames: int) -> None:
        if frames:
            return checks(frames - 1)
        event = events.pop()
        assert repr(event).endswith(f"data=<JSON, {len(deep)} characters>)")
        assert event.data_bytes() == deep.encode()
        assert events.pop() == events.pop()
        assert pickle.loads(pickle.dumps(events.pop())).data_bytes() == deep.encode()
        return None

    # A new event for each check, because an event caches results.
    events = [from_json(document) for _ in range(4)]
    checks(300)


def test_repr_shows_no_data_and_no_long_value() -> None:
    secret = "s3cr3t"
    for data in (secret, secret.encode(), {"password": secret}):
        assert secret not in repr(CloudEvent(BASE, data=data))
    text = CloudEvent(BASE, datacontenttype="text/plain", data=secret, subject="x" * 500)
    assert secret not in repr(text)
    assert "x" * 60 not in repr(text)
    assert repr(CloudEvent(BASE, data=b"abc")) == (
        'CloudEvent(specversion="1.0", id="1", source="/shop", type="order.placed", data=<3 bytes>)'
    )
    assert repr(CloudEvent(BASE)).endswith("data=none)")


@pytest.mark.parametrize("data", [None, b"x", "t", {"a": 1}, JSON_NULL])
def test_pickle(data: Any) -> None:
    event = CloudEvent(BASE, n=5, data=data)
    back = pickle.loads(pickle.dumps(event))
    assert back == event
    assert back.attributes == event.attributes
    assert back.data == event.data


def test_errors_pickle() -> None:
    with pytest.raises(CloudEventError) as caught:
        CloudEvent(BASE, time="tomorrow")
    back = pickle.loads(pickle.dumps(caught.value))
    assert str(back) == str(caught.value)
    assert (back.where, back.reason, back.clauses) == (
        caught.value.where,
        caught.value.reason,
        caught.value.clauses,
    )
    with pytest.raises(UnknownVersionError) as unknown:
        CloudEvent(BASE, specversion="7")
    assert type(pickle.loads(pickle.dumps(unknown.value))) is UnknownVersionError


# --- the event as a mapping of its attributes ---------------------------------------------------


def test_an_event_gives_its_attributes_as_a_mapping_does() -> None:
    event = CloudEvent(BASE, n=5, data=b"x")
    assert dict(event) == dict(event.attributes)
    assert list(dict(event)) == list(event) == list(event.keys())
    assert list(event.items()) == list(event.attributes.items())
    assert list(event.values()) == list(event.attributes.values())
    assert len(event) == len(event.attributes) == 5
    assert {**event, "n": 6} == {**event.attributes, "n": 6}
    assert event
    copied = dict(event)
    copied["n"] = 7
    assert event["n"] == 5
    assert CloudEvent(dict(event), data=event.data) == event


@pytest.mark.parametrize("lazy", [False, True])
def test_an_event_is_not_taken_for_its_attributes_alone(lazy: bool) -> None:
    event: Any = CloudEvent(BASE, data=b"x")
    if lazy:
        event = lazy_from_kafka(*to_kafka(event))
        assert isinstance(event, LazyEvent)
    # A copy of the attributes would lose the data.
    for act in (CloudEvent, CloudEvent(BASE).replace):
        with pytest.raises(CloudEventError, match=r"a mapping of names to values, not .*Event"):
            act(event)


def test_the_mode_that_an_event_was_in() -> None:
    event = CloudEvent(BASE, data=b"x")
    assert event.mode is None
    assert from_json(to_json(event)).mode is None
    modes: tuple[Mode, ...] = ("binary", "structured")
    for mode in modes:
        read = from_kafka(*to_kafka(event, mode))
        assert isinstance(read, CloudEvent)
        assert read.mode == mode
        assert pickle.loads(pickle.dumps(read)).mode == mode
        assert read.replace(id="2").mode is None
        message = to_pulsar(event, mode)
        of_pulsar = from_pulsar(message.properties, message.payload)
        assert isinstance(of_pulsar, CloudEvent)
        assert of_pulsar.mode == mode
    told = from_kafka(None, to_json(event), mode="structured")
    assert isinstance(told, CloudEvent)
    assert told.mode == "structured"


# --- times and maps compare by value -------------------------------------------------------------

NOON = datetime(2018, 4, 5, 12, 0, 0, 250_000, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "2018-04-05T12:00:00.25Z",
        "2018-04-05T12:00:00.250000Z",
        "2018-04-05t12:00:00.25000000000z",
        "2018-04-05T14:00:00.25+02:00",
        "2018-04-04T23:30:00.250-12:30",
        "2018-04-05T12:00:00.25-00:00",
    ],
)
def test_a_time_given_as_datetime_is_the_one_that_is_read(text: str) -> None:
    headers = (*to_kafka(CloudEvent(BASE)).headers, ("ce_time", text.encode()))
    read = from_kafka(None, None, headers)
    assert isinstance(read, CloudEvent)
    for moment in (NOON, NOON.astimezone(timezone(timedelta(hours=-7, minutes=-30)))):
        made = CloudEvent(BASE, time=moment)
        assert made == read
        assert hash(made) == hash(read)
        assert made.time == moment
        assert read.time == moment
        assert moment == read.time
        assert (read.time != moment) is False
    assert read.time == text
    assert from_json(to_json(read)) == CloudEvent(BASE, time=NOON)
    assert read.to_version("0.1") == CloudEvent(BASE, time=NOON).to_version("0.1")


@pytest.mark.parametrize(
    "text", ["2018-04-05T12:00:00.2500001Z", "2018-04-05T12:00:00Z", "2018-04-05T12:00:00.25+01:00"]
)
def test_another_time_is_another_event(text: str) -> None:
    assert CloudEvent(BASE, time=text) != CloudEvent(BASE, time=NOON)
    assert CloudEvent(BASE, time=text).time != NOON
    assert CloudEvent(BASE) != CloudEvent(BASE, time=NOON)


def test_an_extension_is_the_text_that_it_is() -> None:
    one = CloudEvent(BASE, at="2018-04-05T12:00:00.25Z")
    assert one != CloudEvent(BASE, at="2018-04-05T12:00:00.250Z")
    assert CloudEvent(BASE, m='{"a":1,"b":2}') != CloudEvent(BASE, m='{"b":2,"a":1}')


@pytest.mark.parametrize("label", ["0.1", "0.2", "0.3"])
def test_maps_compare_by_value(label: str) -> None:
    old = CloudEvent(BASE).to_version(label)

    def with_map(text: str) -> CloudEvent:
        return old.replace({"extensions" if label == "0.1" else "m": JsonMap(text)})

    one = with_map('{"a":{"x":1.0,"y":[1,2]},"b":"é"}')
    for same in (
        '{"b":"é","a":{"x":1.0,"y":[1,2]}}',
        '{ "a": {"y":[1, 2], "x":1.00},\n "b":"\\u00e9"}',
    ):
        assert hash(with_map(same)) == hash(one)
        assert with_map(same) == one
        record = to_kafka(with_map(same))
        assert from_kafka(*record) == one
        assert from_json(to_json(with_map(same))) == one
    for other in (
        '{"a":{"x":1,"y":[1,2]},"b":"é"}',
        '{"a":{"x":1.0,"y":[2,1]},"b":"é"}',
        '{"a":{"x":1.0,"y":[1,2]},"b":"é","c":null}',
        '{"a":{"x":1.0,"y":[1,true]},"b":"é"}',
    ):
        assert with_map(other) != one


def test_numbers_in_maps_compare_as_numbers() -> None:
    old = CloudEvent(BASE).to_version("0.3")
    zero = old.replace(m=JsonMap('{"a":0.0,"b":0}'))
    assert zero == old.replace(m=JsonMap('{"b":-0,"a":-0.0}'))
    assert zero != old.replace(m=JsonMap('{"a":0,"b":0}'))


def test_a_map_by_itself_is_the_text_that_it_is() -> None:
    one, other = JsonMap.of({"a": 1, "b": 2}), JsonMap.of({"b": 2, "a": 1})
    assert one == '{"a":1,"b":2}'
    assert hash(one) == hash('{"a":1,"b":2}')
    assert one != other
    assert one.value() == other.value()


def test_extensions_of_0_1_beside_its_map_compare_by_value_too() -> None:
    base = '"cloudEventsVersion":"0.1","eventID":"1","source":"/s","eventType":"t"'
    one = from_json(f'{{{base},"comExample":{{"a":1,"b":[2]}}}}')
    assert one == from_json(f'{{"comExample": {{"b":[2], "a":1}},{base}}}')
    assert one != from_json(f'{{{base},"comExample":{{"a":1,"b":[3]}}}}')
    assert one != from_json(f'{{{base},"comExample":"none"}}')
    deep = "[" * 400 + "]" * 400
    assert from_json(f'{{{base},"x":{{"a":{deep},"b":1}}}}') == from_json(
        f'{{{base},"x":{{"b":1,"a":{deep}}}}}'
    )
