"""Tests the Avro and protobuf event formats: round trips, refused events, broken bytes."""

from __future__ import annotations

import io
import subprocess
import sys
from datetime import timedelta
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kproto_cloudevents import (
    JSON_FORMAT,
    JSON_NULL,
    CloudEvent,
    CloudEventError,
    EventFormat,
    OpaqueEvent,
    Timestamp,
    UnknownVersionError,
    Uri,
    UriReference,
    from_kafka,
    register_format,
    to_json,
    to_kafka,
)
from kproto_cloudevents.avro_format import AVRO_FORMAT, MAX_NESTING, from_avro, to_avro
from kproto_cloudevents.formats import registry
from kproto_cloudevents.protobuf_format import PROTOBUF_FORMAT, from_protobuf, to_protobuf
from kproto_cloudevents.pulsar import from_pulsar, to_pulsar

from ..test_lossless import JSON_VALUES, TEXTS

pytestmark = pytest.mark.filterwarnings("ignore::kproto_cloudevents.CloudEventWarning")

FORMATS = pytest.mark.parametrize(
    "chosen", [AVRO_FORMAT, PROTOBUF_FORMAT], ids=["avro", "protobuf"]
)
MINIMAL: dict[str, Any] = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}

#: The schema in the specification (Avro format 2.4).
RECORD = {
    "type": "record",
    "name": "CloudEventData",
    "fields": [
        {
            "name": "value",
            "type": {
                "type": "map",
                "values": [
                    "null",
                    "boolean",
                    {"type": "map", "values": "CloudEventData"},
                    {"type": "array", "items": "CloudEventData"},
                    "double",
                    "string",
                ],
            },
        }
    ],
}
OFFICIAL = fastavro.parse_schema(
    {
        "namespace": "io.cloudevents",
        "type": "record",
        "name": "CloudEvent",
        "fields": [
            {
                "name": "attribute",
                "type": {"type": "map", "values": ["null", "boolean", "int", "string", "bytes"]},
            },
            {
                "name": "data",
                "type": [
                    "bytes",
                    "null",
                    "boolean",
                    {"type": "map", "values": ["null", "boolean", RECORD, "double", "string"]},
                    {"type": "array", "items": "CloudEventData"},
                    "double",
                    "string",
                ],
            },
        ],
    }
)


def official_avro(data: Any, **attributes: Any) -> bytes:
    written = io.BytesIO()
    datum = {"attribute": {**MINIMAL, **attributes}, "data": data}
    fastavro.schemaless_writer(written, OFFICIAL, datum)
    return written.getvalue()


# --- both ---------------------------------------------------------------------------------------

#: Times that protobuf can store: in UTC, with zero, three, six or nine fractional digits.
TIMES = st.from_regex(
    r"20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
    r"(\.([0-9]{3}){0,2}[0-9]{2}[1-9])?Z",
    fullmatch=True,
)
VALUES = (
    st.booleans()
    | st.integers(-(2**31), 2**31 - 1)
    | TEXTS
    | st.binary(max_size=5)
    | TIMES.map(Timestamp)
    | st.just(Uri("urn:x:1"))
    | st.just(UriReference("#a"))
)


@st.composite
def events(draw: st.DrawFn) -> CloudEvent:
    attributes: dict[str, Any] = dict(
        draw(st.dictionaries(st.from_regex("x[a-z0-9]{0,4}", fullmatch=True), VALUES))
    )
    attributes |= MINIMAL
    attributes["id"] = draw(TEXTS)
    attributes["time"] = draw(st.none() | TIMES)
    kind, data = draw(
        st.tuples(st.none() | st.just("a/b"), st.none() | st.binary(max_size=20))
        | st.tuples(st.sampled_from(["text/plain", "a/b", "text/xml; charset=utf-16"]), TEXTS)
        | st.tuples(
            st.sampled_from(["application/json", "a/b+json; charset=utf-16"]),
            JSON_VALUES.map(lambda value: JSON_NULL if value is None else value),
        )
    )
    if kind is not None:
        attributes["datacontenttype"] = kind
    return CloudEvent(attributes, data=data)


@FORMATS
@given(event=events())
@pytest.mark.slow
def test_events_round_trip(chosen: EventFormat, event: CloudEvent) -> None:
    document = chosen.write(event)
    read = chosen.read(document)
    assert read == event
    assert {name: type(value) for name, value in read.attributes.items() if name[0] == "x"} == {
        name: str if chosen is AVRO_FORMAT and isinstance(value, str) else type(value)
        for name, value in event.attributes.items()
        if name[0] == "x"
    }
    assert chosen.read(chosen.write(read)) == event
    assert to_json(read)[:1] == b"{"


@FORMATS
@given(
    st.sampled_from(["text/plain", "application/json", "a/b+json", "text/xml", "a/b"]),
    st.sampled_from(["latin-1", "us-ascii", "utf-16", "utf-7", "windows-1252", "x-unknown", "hex"]),
    TEXTS | st.sampled_from(["é", "€", '"€"', "[1]", " 1 "]),
    st.sampled_from([str, lambda text: [text], lambda text: {text: 1}, str.encode]),
)
def test_data_in_any_charset_round_trips(
    chosen: EventFormat, content_type: str, charset: str, text: str, form: Any
) -> None:
    data = form(text)
    if isinstance(data, list | dict) and "json" not in content_type:
        return
    declared = f"{content_type}; charset={charset}"
    event = CloudEvent(MINIMAL, datacontenttype=declared, data=data)
    try:
        document = chosen.write(event)
    except CloudEventError:
        if chosen is AVRO_FORMAT:
            return  # Avro stores JSON as the bytes of its charset
        raise
    assert chosen.read(document) == event


@FORMATS
@given(value=JSON_VALUES)
def test_json_without_a_content_type_gets_one(chosen: EventFormat, value: Any) -> None:
    event = CloudEvent(MINIMAL, data=JSON_NULL if value is None else value)
    read = chosen.read(chosen.write(event))
    assert read.datacontenttype == "application/json"
    assert read == event.replace(datacontenttype="application/json")


@FORMATS
def test_numbers_keep_their_text(chosen: EventFormat) -> None:
    document = b'{"specversion":"1.0","id":"1","source":"/s","type":"t","data":[1.10,1e400]}'
    event = JSON_FORMAT.read(document)
    assert chosen.read(chosen.write(event)).data_bytes() == b"[1.10,1e400]"


@FORMATS
def test_structured_mode_round_trips_on_kafka(
    chosen: EventFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = CloudEvent(MINIMAL, n=5, data=b"\x00")
    record = to_kafka(event, "structured", event_format=chosen, key=b"k", repeat_attributes=True)
    assert record.headers[0] == ("content-type", chosen.media_type.encode())
    unknown = from_kafka(*record)
    assert isinstance(unknown, OpaqueEvent)
    monkeypatch.setattr(registry, "_FORMATS", dict(registry._FORMATS))
    register_format(chosen)
    read = from_kafka(*record)
    assert isinstance(read, CloudEvent)
    assert read == event
    assert read["n"] == 5
    assert to_kafka(read) == record
    repeated = to_kafka(read, repeat_attributes=True)
    assert repeated.headers[0] == record.headers[0], "the event keeps its format"
    assert from_kafka(*repeated) == event
    in_json = to_kafka(read, "structured", event_format=JSON_FORMAT)
    assert JSON_FORMAT.read(in_json.value or b"") == event


@FORMATS
def test_event_of_a_pulsar_message_keeps_its_format(
    chosen: EventFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = CloudEvent(MINIMAL, data=b"\x00")
    monkeypatch.setattr(registry, "_FORMATS", dict(registry._FORMATS))
    register_format(chosen)
    message = to_pulsar(event, "structured", event_format=chosen)
    read = from_pulsar(*message)
    assert isinstance(read, CloudEvent)
    repeated = to_pulsar(read, repeat_attributes=True)
    assert repeated.properties["CE-ContentType"] == message.properties["CE-ContentType"]
    assert chosen.read(repeated.payload or b"") == event


def assert_round_trips(chosen: EventFormat, event: CloudEvent) -> None:
    """Checks that `event` round-trips; only a content type of JSON data may be added by reading."""
    read = chosen.read(chosen.write(event))
    added = read.attributes.keys() - event.attributes.keys()
    if added:
        assert added == {"datacontenttype"}
        assert read["datacontenttype"] == "application/json"
        event = event.replace(datacontenttype="application/json")
    assert read == event


@FORMATS
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(chosen: EventFormat, document: bytes) -> None:
    try:
        event = chosen.read(document)
    except CloudEventError:
        return
    assert_round_trips(chosen, event)


@FORMATS
@given(event=events(), place=st.integers(0, 200), change=st.binary(max_size=3), cut=st.booleans())
def test_damaged_bytes_are_read_or_refused(
    chosen: EventFormat, event: CloudEvent, place: int, change: bytes, cut: bool
) -> None:
    document = chosen.write(event)
    place %= len(document)
    damaged = document[:place] + change + (b"" if cut else document[place + len(change) :])
    try:
        read = chosen.read(damaged)
    except CloudEventError:
        return
    assert_round_trips(chosen, read)


@FORMATS
def test_other_versions_are_forwarded_as_opaque_events(chosen: EventFormat) -> None:
    old = CloudEvent({**MINIMAL, "specversion": "0.3"})
    with pytest.raises(
        CloudEventError, match=r'for CloudEvents 1.0, not 0.3: .*to_version\("1.0"\)'
    ):
        chosen.write(old)
    document = chosen.write(CloudEvent(MINIMAL)).replace(b"1.0", b"0.3")
    with pytest.raises(UnknownVersionError, match=r'"0\.3" is not 1\.0'):
        chosen.read(document)


@FORMATS
def test_a_missing_attribute_is_refused(chosen: EventFormat) -> None:
    document = chosen.write(CloudEvent(MINIMAL)).replace(b"1.0", b"")
    with pytest.raises(CloudEventError):
        chosen.read(document)
    if chosen is AVRO_FORMAT:
        empty = official_avro(None, id=None)
        with pytest.raises(CloudEventError, match="id: the required attribute is missing"):
            chosen.read(empty)
    else:
        with pytest.raises(CloudEventError, match="the required attribute is missing"):
            chosen.read(b"")


@pytest.mark.parametrize(
    ("module", "name", "package", "extra"),
    [
        ("avro_format", "AVRO_FORMAT", "fastavro", "cloudevents-avro"),
        ("protobuf_format", "PROTOBUF_FORMAT", "google.protobuf", "cloudevents-protobuf"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(
    module: str, name: str, package: str, extra: str
) -> None:
    code = f"""
import sys
sys.path.insert(0, "cloudevents")
sys.modules[{package!r}] = None
from kproto_cloudevents import CloudEvent, CloudEventError
from kproto_cloudevents.{module} import {name} as chosen
event = CloudEvent(id="1", source="/", type="t")
for use in (lambda: chosen.read(b""), lambda: chosen.write(event)):
    try:
        use()
    except CloudEventError as error:
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.count(f"is not installed: pip install 'kproto[{extra}]'") == 2, done.stderr


# --- Avro ---------------------------------------------------------------------------------------


def test_golden_avro_bytes_are_read_and_written() -> None:
    """The bytes encode an event by the specification's schema, and were written by hand."""
    event = CloudEvent(MINIMAL, ok=True, n=-3, raw=b"\x01", data=b"\xff")
    pairs = [
        ("specversion", b"\x06\x061.0"),
        ("id", b"\x06\x021"),
        ("source", b"\x06\x04/s"),
        ("type", b"\x06\x02t"),
        ("ok", b"\x02\x01"),
        ("n", b"\x04\x05"),
        ("raw", b"\x08\x02\x01"),
    ]
    members = b"".join(bytes([len(name) * 2]) + name.encode() + value for name, value in pairs)
    golden = bytes([len(pairs) * 2]) + members + b"\x00" + b"\x00\x02\xff"
    assert to_avro(event) == golden
    assert from_avro(golden) == event


@given(events())
def test_the_schema_is_the_official_one(event: CloudEvent) -> None:
    datum: Any = fastavro.schemaless_reader(io.BytesIO(to_avro(event)), OFFICIAL, None)
    assert datum["attribute"]["id"] == event.id
    assert from_avro(official_avro(datum["data"], **datum["attribute"])) == event


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (True, True),
        (1.0, 1),
        (-2.5, -2.5),
        (1e300, 1e300),
        ("text", "text"),
        ({"a": None, "b": True, "c": 1.5, "d": "x"}, {"a": None, "b": True, "c": 1.5, "d": "x"}),
        ({"a": {"value": {"b": 1.0}}}, {"a": {"b": 1}}),
        (
            {"a": {"value": {"value": {"x": {"value": {}}}, "l": [{"value": {"n": None}}]}}},
            {"a": {"value": {"x": {}}, "l": [{"n": None}]}},
        ),
        ([{"value": {"a": 1.0}}, {"value": {}}], [{"a": 1}, {}]),
    ],
)
def test_json_values_of_the_schema(data: Any, value: Any) -> None:
    event = from_avro(official_avro(data))
    assert event.json() == value
    assert from_avro(official_avro(data, datacontenttype="application/json")).json() == value


def test_data_unlike_its_type_is_refused() -> None:
    assert from_avro(official_avro("text", datacontenttype="text/plain")).data == "text"
    with pytest.raises(CloudEventError, match="bool cannot be data of"):
        from_avro(official_avro(True, datacontenttype="text/plain"))
    with pytest.raises(CloudEventError, match="cannot be written as JSON"):
        from_avro(official_avro(float("nan")))
    with pytest.raises(CloudEventError, match="more follows the event at byte"):
        from_avro(official_avro(None) + b"\x00")


def test_deep_nesting_raises_an_error() -> None:
    def nested(levels: int) -> bytes:
        document = official_avro([{"value": {}}])
        assert document.endswith(b"\x08\x02\x00\x00")
        record = b"\x00"
        for _ in range(levels):
            record = b"\x02\x02a\x06\x02" + record + b"\x00\x00"
        return document[:-4] + b"\x08\x02" + record + b"\x00"

    assert from_avro(nested(MAX_NESTING - 1)).has_data
    for levels in (MAX_NESTING, 1000):
        with pytest.raises(CloudEventError, match="not an event in Avro"):
            from_avro(nested(levels))
    with pytest.raises(CloudEventError, match="not an event in Avro"):
        from_avro(official_avro(None)[:-1] + b"\x08" + b"\x02\x02\x02a\x06" * 1_000_000)


# --- protobuf -----------------------------------------------------------------------------------


def test_golden_protobuf_bytes_are_read_and_written() -> None:
    """The bytes were written by hand, with the field numbers of the official cloudevents.proto."""

    def field(number: int, content: bytes) -> bytes:
        return bytes([number << 3 | 2, len(content)]) + content

    def entry(name: str, value: bytes) -> bytes:
        return field(5, field(1, name.encode()) + field(2, value))

    event = CloudEvent(
        MINIMAL,
        time="1970-01-01T00:00:01.000000005Z",
        datacontenttype="text/plain",
        n=-1,
        ok=True,
        raw=b"\x01",
        uri=Uri("urn:x"),
        ref=UriReference("#a"),
        data="hi",
    )
    golden = (
        field(1, b"1")
        + field(2, b"/s")
        + field(3, b"1.0")
        + field(4, b"t")
        + entry("datacontenttype", field(3, b"text/plain"))
        + entry("n", b"\x10" + b"\xff" * 9 + b"\x01")
        + entry("ok", b"\x08\x01")
        + entry("raw", field(4, b"\x01"))
        + entry("ref", field(6, b"#a"))
        + entry("time", field(7, b"\x08\x01\x10\x05"))
        + entry("uri", field(5, b"urn:x"))
        + field(7, b"hi")
    )
    read = from_protobuf(golden)
    assert read == event
    assert isinstance(read["uri"], Uri)
    assert isinstance(read["ref"], UriReference)
    assert sorted(to_protobuf(event)) == sorted(golden)
    assert from_protobuf(to_protobuf(event)) == event
    assert to_protobuf(CloudEvent(MINIMAL, data=b"")).endswith(b"\x32\x00")
    assert from_protobuf(to_protobuf(CloudEvent(MINIMAL, data=b""))).data == b""
    assert from_protobuf(to_protobuf(CloudEvent(MINIMAL))).data is None


def test_a_protobuf_message_is_stored_as_any() -> None:
    url = "https://type.googleapis.com/shop.Order"
    event = CloudEvent(
        MINIMAL, datacontenttype="application/protobuf", dataschema=url, data=b"\x08\x01"
    )
    document = to_protobuf(event)
    url_field = b"\x0a\x1e" + b"type.googleapis.com/shop.Order"
    message = url_field + b"\x12\x02\x08\x01"
    assert document.endswith(b"\x42" + bytes([len(message)]) + message)
    assert from_protobuf(document) == event
    # The example of the specification has a type URL without a scheme, and no content type.
    bare = to_protobuf(CloudEvent(MINIMAL)) + document[-len(message) - 2 :]
    assert from_protobuf(bare) == event
    other = event.replace(dataschema="https://registry.example/7")
    assert from_protobuf(to_protobuf(other)) == other


@pytest.mark.parametrize(
    ("content_type", "data"),
    [
        ("application/json; charset=latin-1", {"price": "5 €"}),
        ("application/json; charset=x-unknown", [1]),
        ("text/plain; charset=us-ascii", "5 €"),
        ("text/plain; charset=x-unknown", "5"),
    ],
)
def test_text_is_utf_8_despite_another_charset(content_type: str, data: Any) -> None:
    event = CloudEvent(MINIMAL, datacontenttype=content_type, data=data)
    read = from_protobuf(to_protobuf(event))
    assert read == event
    assert read.data == data
    assert to_protobuf(read) == to_protobuf(event)


def test_text_of_a_json_type_is_read_as_json() -> None:
    document = to_protobuf(CloudEvent(MINIMAL, datacontenttype="application/json", data=[1]))
    assert document.endswith(b"\x3a\x03[1]")
    assert from_protobuf(document).data == [1]
    broken = from_protobuf(document[:-3] + b"[1,")
    assert broken.data == b"[1,"
    untyped = to_protobuf(CloudEvent(MINIMAL)) + b"\x3a\x02hi"
    assert from_protobuf(untyped).data == "hi"


@given(TIMES, st.integers(-1439, 1439))
def test_a_time_with_an_offset_is_the_same_moment(text: str, minutes: int) -> None:
    moment = Timestamp(text).datetime
    sign, (hours, rest) = "-" if minutes < 0 else "+", divmod(abs(minutes), 60)
    local = (moment + timedelta(minutes=minutes)).isoformat()[:19]
    fraction = text[19:-1]
    event = CloudEvent(MINIMAL, time=f"{local}{fraction}{sign}{hours:02}:{rest:02}")
    assert from_protobuf(to_protobuf(event)).time == text


@pytest.mark.parametrize(
    "time",
    [
        "2016-12-31T23:59:60Z",
        "2018-04-05T03:56:24.1234567891Z",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
        "0000-01-01T00:00:00Z",
    ],
)
def test_times_beyond_protobuf_are_refused(time: str) -> None:
    with pytest.raises(CloudEventError, match=r"protobuf|datetime cannot hold"):
        to_protobuf(CloudEvent(MINIMAL, time=time))


def test_a_timestamp_beyond_its_bounds_is_refused() -> None:
    inner = b"\x08\x01\x10" + b"\xff" * 9 + b"\x01"  # one second, -1 nanoseconds
    value = b"\x3a" + bytes([len(inner)]) + inner
    entry = b"\x0a\x04time\x12" + bytes([len(value)]) + value
    document = to_protobuf(CloudEvent(MINIMAL)) + b"\x2a" + bytes([len(entry)]) + entry
    with pytest.raises(CloudEventError, match="time: the timestamp is beyond"):
        from_protobuf(document)
