"""The Kafka binding: golden records in both modes, detection, outcomes, keys, writing."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any, cast

import pytest
from kproto_cloudevents import (
    JSON_FORMAT,
    JSON_NULL,
    LENIENT,
    STRICT,
    CloudEvent,
    CloudEventError,
    EventFormat,
    Header,
    InvalidEvent,
    KafkaRecord,
    LazyEvent,
    NotAnEvent,
    OpaqueEvent,
    UnknownVersionError,
    from_json,
    from_kafka,
    from_kafka_many,
    kafka_record,
    lazy_from_kafka,
    partition_key,
    register_format,
    to_json,
    to_kafka,
)

# The record of Kafka binding 3.2.5, with the header types the wire has.
BINARY = KafkaRecord(
    b"mykey",
    b"\x02\x06foo",
    (
        ("ce_specversion", b"1.0"),
        ("ce_type", b"com.example.someevent"),
        ("ce_source", b"/mycontext/subcontext"),
        ("ce_id", b"1234-1234-1234"),
        ("ce_time", b"2018-04-05T03:56:24Z"),
        ("content-type", b"application/avro"),
    ),
)
REQUIRED = BINARY.headers[:4]

# The record of Kafka binding 3.3.4, its ellipses filled in.
STRUCTURED = KafkaRecord(
    b"mykey",
    b"""{
    "specversion" : "1.0",
    "type" : "com.example.someevent",
    "source" : "/mycontext/subcontext",
    "id" : "1234-1234-1234",
    "time" : "2018-04-05T03:56:24Z",
    "datacontenttype" : "application/xml",

    "data" : "<data/>"
}""",
    (("content-type", b"application/cloudevents+json; charset=UTF-8"),),
)


#: A record, or its key, value and headers in a plain tuple.
Parts = tuple[bytes | None, bytes | None, Sequence[Header]]


def event_of(record: Parts, **settings: Any) -> CloudEvent:
    event = from_kafka(*record, **settings)
    assert isinstance(event, CloudEvent)
    return event


def record_with(*headers: tuple[str, bytes | None], value: bytes | None = b"v") -> KafkaRecord:
    return KafkaRecord(None, value, (*REQUIRED, *headers))


# --- reading ------------------------------------------------------------------------------------


def test_binary_mode() -> None:
    event = event_of(BINARY)
    assert dict(event.attributes) == {
        "specversion": "1.0",
        "type": "com.example.someevent",
        "source": "/mycontext/subcontext",
        "id": "1234-1234-1234",
        "time": "2018-04-05T03:56:24Z",
        "datacontenttype": "application/avro",
    }
    assert event.data == b"\x02\x06foo"
    assert kafka_record(event) == BINARY


def test_structured_mode() -> None:
    event = event_of(STRUCTURED)
    assert event.id == "1234-1234-1234"
    assert event.datacontenttype == "application/xml"
    assert event.data == "<data/>"
    assert kafka_record(event) == STRUCTURED


@pytest.mark.parametrize(
    "content_type",
    [
        b"application/cloudevents+json",
        b"APPLICATION/CloudEvents+JSON",
        b" application/cloudevents+json ; charset=utf-8; x=y",
        b'application/cloudevents+json;charset="UTF-8"',
    ],
)
def test_structured_mode_is_seen_in_the_media_type(content_type: bytes) -> None:
    record = STRUCTURED._replace(headers=(("x", b"y"), ("content-type", content_type)))
    for _ in range(2):  # the second time the content type is known
        assert event_of(record) == event_of(STRUCTURED)
        assert to_kafka(event_of(record)) == record


@pytest.mark.parametrize(
    "content_type",
    [b"application/cloudeventsx+json", b"text/cloudevents+json", b"application/json"],
)
def test_other_media_types_are_binary_mode(content_type: bytes) -> None:
    for _ in range(2):
        event = event_of(record_with(("content-type", content_type)))
        assert event.datacontenttype == content_type.decode()
        assert event.data == b"v"


def test_structured_mode_may_repeat_attributes_in_headers() -> None:
    record = STRUCTURED._replace(headers=(*REQUIRED, *STRUCTURED.headers))
    assert event_of(record) == event_of(STRUCTURED)
    assert to_kafka(event_of(record)) == record


def test_mode_said_by_the_caller() -> None:
    bare = KafkaRecord(None, STRUCTURED.value, ())
    assert event_of(bare, mode="structured") == event_of(STRUCTURED)
    assert to_kafka(event_of(bare, mode="structured")) == bare
    both = record_with(*STRUCTURED.headers, value=STRUCTURED.value)
    as_binary = event_of(both, mode="binary")
    assert as_binary.datacontenttype == "application/cloudevents+json; charset=UTF-8"
    assert as_binary.data == STRUCTURED.value
    with pytest.raises(CloudEventError, match="ce_specversion: the required attribute is missing"):
        from_kafka(None, b"", [], mode="binary")
    no_mode: Any = "batch"
    with pytest.raises(CloudEventError, match="mode is binary or structured, not 'batch'"):
        from_kafka(*BINARY, mode=no_mode)


def test_ce_datacontenttype_is_read() -> None:
    event = event_of(record_with(("ce_datacontenttype", b"text/xml")))
    assert event.datacontenttype == "text/xml"
    same = record_with(("ce_datacontenttype", b"text/xml"), ("content-type", b"text/xml"))
    assert event_of(same).datacontenttype == "text/xml"
    assert to_kafka(event_of(same)) == same
    unset = record_with(("ce_datacontenttype", b"text/xml"), ("content-type", None))
    assert event_of(unset).datacontenttype == "text/xml"
    for pair in ((b"text/xml", b"text/plain"), (b"text/plain", b"text/xml")):
        with pytest.raises(CloudEventError, match="differ"):
            from_kafka(*record_with(("ce_datacontenttype", pair[0]), ("content-type", pair[1])))


def test_null_headers_are_unset() -> None:
    record = record_with(
        ("ce_subject", None), ("ce_Odd", None), ("content-type", None), ("x", None)
    )
    event = event_of(record)
    assert set(event.attributes) == {"specversion", "type", "source", "id"}
    assert to_kafka(event) == record
    twice = record_with(("ce_subject", None), ("ce_subject", b"s"))
    assert event_of(twice).subject == "s"
    assert to_kafka(event_of(twice)) == twice


def test_null_and_empty_values() -> None:
    no_data = event_of(record_with(value=None))
    assert no_data.has_data is False
    assert to_kafka(no_data).value is None
    empty = event_of(record_with(value=b""))
    assert empty.data == b""
    assert to_kafka(empty).value == b""


def test_headers_that_are_not_the_events() -> None:
    record = record_with(("trace", b"1"), ("trace", b"2"), ("blob", b"\xff"), ("none", None))
    event = event_of(record)
    assert "trace" not in event
    assert to_kafka(event) == record


def test_headers_none_is_no_headers() -> None:
    assert isinstance(from_kafka(None, b"x", None), NotAnEvent)


def test_extensions_are_strings_and_may_be_empty() -> None:
    event = event_of(record_with(("ce_n", b"5"), ("ce_empty", b""), ("ce_u", "ü\u00a0".encode())))
    assert event.extensions == {"n": "5", "empty": "", "u": "ü\u00a0"}


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (KafkaRecord(None, b"x"), "no ce_ header and no content-type header"),
        (
            KafkaRecord(b"k", b"{}", (("content-type", b"application/json"),)),
            "no ce_ header, and the content-type is no event format",
        ),
        (
            KafkaRecord(b"k", b"{}", (("content-type", b"\xff"),)),
            "no ce_ header, and the content-type is no event format",
        ),
        (KafkaRecord(b"k", b"", (("id", b"1"), ("CE_id", b"1"))), "no ce_ header and no content-"),
    ],
)
def test_not_an_event(record: KafkaRecord, reason: str) -> None:
    outcome = from_kafka(*record)
    assert isinstance(outcome, NotAnEvent)
    assert outcome.reason.startswith(reason)
    assert not outcome.tombstone
    assert to_kafka(outcome) == record


def test_a_tombstone_is_no_event_without_data() -> None:
    tombstone = from_kafka(b"k", None, [("x", b"y"), ("ce_id", None)])
    assert isinstance(tombstone, NotAnEvent)
    assert tombstone.tombstone
    assert isinstance(from_kafka(*record_with(value=None)), CloudEvent)


def test_unknown_event_formats_pass_through() -> None:
    for content_type in (b"application/cloudevents+avro", b"application/cloudevents"):
        record = KafkaRecord(b"k", b"\x00", (("content-type", content_type), ("ce_id", b"\xff")))
        outcome = from_kafka(*record)
        assert isinstance(outcome, OpaqueEvent)
        assert content_type.decode() in outcome.reason
        assert to_kafka(outcome) == record
        with pytest.raises(CloudEventError, match="Kafka binding 3"):
            from_kafka(*record, profile=STRICT)


def test_unknown_versions_pass_through() -> None:
    binary = KafkaRecord(b"k", b"\x00", (("ce_specversion", b"9.9"), ("ce_Odd", b"\xff")))
    structured = STRUCTURED._replace(value=b'{"specversion":"9.9","Odd":[]}')
    for record in (binary, structured):
        outcome = from_kafka(*record)
        assert isinstance(outcome, OpaqueEvent)
        assert '"9.9" is no version known here' in outcome.reason
        assert to_kafka(outcome) == record
        with pytest.raises(UnknownVersionError):
            from_kafka(*record, profile=STRICT)


def test_header_names_in_any_case_only_in_the_lenient_profile() -> None:
    record = KafkaRecord(
        None,
        b"v",
        tuple((name.title(), raw) for name, raw in BINARY.headers),
    )
    assert isinstance(from_kafka(*record), NotAnEvent)
    event = event_of(record, profile=LENIENT)
    assert event.attributes == event_of(BINARY).attributes
    assert to_kafka(event) == record
    with pytest.raises(CloudEventError, match="Ce_Id: the header appears twice"):
        from_kafka(None, b"", (*BINARY.headers, ("Ce_Id", b"2")), profile=LENIENT)
    mixed = KafkaRecord(None, b"", (*REQUIRED, ("ce_Zone", b"x")))
    with pytest.raises(CloudEventError, match="ce_Zone: an attribute name has only"):
        from_kafka(*mixed)
    assert event_of(mixed, profile=LENIENT)["zone"] == "x"


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        (
            [("ce_time", b"tomorrow")],
            (
                'ce_time: "tomorrow" is not RFC 3339 '
                '(Kafka binding 3.2.3, CloudEvents 1.0 "Timestamp")'
            ),
        ),
        (
            [("ce_subject", b"")],
            'ce_subject: "" must not be empty (Kafka binding 3.2.3, CloudEvents 1.0 "subject")',
        ),
        (
            [("ce_subject", b"\xff")],
            "ce_subject: the value is not UTF-8 (Kafka binding 3.2.3)",
        ),
        (
            [("ce_x", b"a\x00")],
            (
                'ce_x: "a\\x00" holds U+0000, which a String may not '
                '(Kafka binding 3.2.3, CloudEvents 1.0 "String")'
            ),
        ),
        (
            [("content-type", b"json")],
            (
                'content-type: "json" is no media type (RFC 2046) '
                '(Kafka binding 3.2.1, CloudEvents 1.0 "datacontenttype")'
            ),
        ),
        (
            [("content-type", b"\xff")],
            "content-type: the value is not UTF-8 (Kafka binding 3.2.1)",
        ),
        (
            [("ce_id", b"2")],
            (
                "ce_id: the header appears twice "
                '(Kafka binding 3.2.3, CloudEvents 1.0 "Context Attributes")'
            ),
        ),
        (
            [("content-type", b"text/xml"), ("content-type", b"text/xml")],
            (
                "content-type: the header appears twice "
                '(Kafka binding 3.2.3, CloudEvents 1.0 "Context Attributes")'
            ),
        ),
        (
            [("ce_", b"x")],
            (
                "ce_: an attribute name has only lower-case letters a to z and digits "
                '(Kafka binding 3.2.3, CloudEvents 1.0 "Naming Conventions")'
            ),
        ),
        (
            [("ce_data", b"x")],
            (
                "ce_data: no attribute may be called data "
                '(Kafka binding 3.2.3, CloudEvents 1.0 "Naming Conventions")'
            ),
        ),
        (
            [("content-type", b"application/cloudevents-batch+json")],
            (
                "content-type: a batch of events cannot be one Kafka record: "
                "send each event by itself (Kafka binding 1.3)"
            ),
        ),
        (
            [("content-type", b"application/cloudevents+json;charset=utf-16")],
            (
                'content-type: a JSON event is UTF-8, not "utf-16" '
                "(Kafka binding 3.3.1, RFC 8259, 8.1)"
            ),
        ),
    ],
)
def test_broken_records(headers: list[tuple[str, bytes]], message: str) -> None:
    for _ in range(2):  # what is remembered must not hide it
        with pytest.raises(CloudEventError) as caught:
            from_kafka(None, b"v", [*REQUIRED, *headers])
        assert str(caught.value) == message


@pytest.mark.parametrize("missing", ["specversion", "type", "source", "id"])
def test_missing_attributes(missing: str) -> None:
    headers = [header for header in REQUIRED if header[0] != f"ce_{missing}"]
    with pytest.raises(CloudEventError) as caught:
        from_kafka(None, b"v", headers)
    assert str(caught.value) == (
        f"ce_{missing}: the required attribute is missing "
        '(Kafka binding 3.2.3, CloudEvents 1.0 "REQUIRED Attributes")'
    )


def test_a_structured_record_has_a_value() -> None:
    with pytest.raises(CloudEventError, match=r"value: a structured event is never null.*3\.3\.2"):
        from_kafka(None, None, STRUCTURED.headers)


@pytest.mark.parametrize(
    ("key", "value", "headers", "message"),
    [
        ("k", b"", (), "the key of a record is bytes or None, not str"),
        (None, "v", REQUIRED, "the value of a record is bytes or None, not str"),
        (None, b"", {"ce_id": b"1"}, "headers are pairs .* not a mapping"),
        (None, b"", 5, "headers are a sequence of pairs, not int"),
        (None, b"", [("ce_id",)], "header 0 is not a pair"),
        (None, b"", [*REQUIRED, ("ce_x", "text")], "header 4 is not a pair"),
        (None, b"", [*REQUIRED, (b"ce_x", b"x")], "header 4 is not a pair"),
        (None, b"", [*REQUIRED, ("content-type", 5)], "header 4 is not a pair"),
        (None, b"", [("ce_specversion", 1)], "header 0 is not a pair"),
        (None, b"", [*REQUIRED, ([], b"")], "header 4 is not a pair"),
    ],
)
def test_parts_of_the_wrong_python_type(key: Any, value: Any, headers: Any, message: str) -> None:
    with pytest.raises(CloudEventError, match=message):
        from_kafka(key, value, headers)
    with pytest.raises(CloudEventError, match=message):
        # A lazy event looks at its record's parts when they are asked for.
        cast(LazyEvent, lazy_from_kafka(key, value, headers)).event()


def test_many_records() -> None:
    broken = record_with(("ce_time", b"tomorrow"))
    opaque = KafkaRecord(None, b"", (("content-type", b"application/cloudevents+avro"),))
    plain = KafkaRecord(None, b"x")
    outcomes = from_kafka_many([BINARY, broken, opaque, plain, STRUCTURED])
    assert [type(outcome) for outcome in outcomes] == [
        CloudEvent,
        InvalidEvent,
        OpaqueEvent,
        NotAnEvent,
        CloudEvent,
    ]
    invalid = outcomes[1]
    assert isinstance(invalid, InvalidEvent)
    assert invalid.record == broken
    assert invalid.error.where == "ce_time"
    no_headers: Any = 5
    wrong = from_kafka_many([(None, None, no_headers)])[0]
    assert isinstance(wrong, InvalidEvent)


# --- lazy ---------------------------------------------------------------------------------------


def test_lazy_reading_gives_what_full_reading_gives() -> None:
    full = event_of(BINARY)
    lazy = lazy_from_kafka(*BINARY)
    lazy = lazy_from_kafka(*BINARY)  # now the content type is known
    assert isinstance(lazy, LazyEvent)
    assert (lazy.specversion, lazy.id, lazy.source, lazy.type, lazy.subject) == (
        "1.0",
        full.id,
        full.source,
        full.type,
        None,
    )
    assert lazy.time == full.time
    assert lazy.datacontenttype == full.datacontenttype
    assert lazy["type"] == full.type
    assert lazy.get("nothing") is None
    with pytest.raises(KeyError):
        lazy["nothing"]
    assert lazy.value == full.data
    assert lazy.event() == full
    assert lazy.record() == BINARY
    assert "mykey" not in repr(lazy)


def test_lazy_reading_checks_what_is_asked_for() -> None:
    lazy = lazy_from_kafka(*record_with(("ce_time", b"tomorrow"), ("ce_x", b"\xff")))
    assert isinstance(lazy, LazyEvent)
    assert lazy.id == "1234-1234-1234"
    with pytest.raises(CloudEventError, match='ce_time: "tomorrow" is not RFC 3339'):
        _ = lazy.time
    with pytest.raises(CloudEventError, match="ce_x: the value is not UTF-8"):
        lazy.get("x")
    with pytest.raises(CloudEventError, match="ce_time"):
        lazy.event()
    with pytest.raises(CloudEventError, match="ce_id: the required attribute is missing"):
        _ = cast(LazyEvent, lazy_from_kafka(None, None, REQUIRED[:3])).id


def test_lazy_reading_of_what_is_not_binary() -> None:
    assert isinstance(lazy_from_kafka(*STRUCTURED), CloudEvent)
    assert isinstance(lazy_from_kafka(None, b"x"), NotAnEvent)
    assert isinstance(lazy_from_kafka(None, b"x", [("ce_specversion", b"7")]), OpaqueEvent)
    old = lazy_from_kafka(*record_with(("ce_datacontenttype", b"text/xml")))
    assert isinstance(old, LazyEvent)
    assert old.datacontenttype == "text/xml"
    with pytest.raises(CloudEventError, match="appears twice"):
        lazy_from_kafka(None, b"", [*REQUIRED, *REQUIRED])


# --- writing ------------------------------------------------------------------------------------

EVENT = CloudEvent(
    specversion="1.0",
    id="1",
    source="/s",
    type="t",
    time="2018-04-05T03:56:24.10+02:00",
    partitionkey="AA",
    datacontenttype="text/plain",
    n=5,
    ok=True,
    raw=b"\x00",
    data="grün",
)


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


def test_data_and_the_value_it_becomes() -> None:
    base = {"id": "1", "source": "/s", "type": "t"}
    data: Any
    value: bytes | None
    for data, value in ((None, None), (b"", b""), (b"x", b"x")):
        record = to_kafka(CloudEvent(base, data=data))
        assert record.value == value
        assert "content-type" not in dict(record.headers)
    # JSON implies its type, which binary mode must say (JSON format 3.1.2).
    for data, value in (({"a": 1}, b'{"a":1}'), ("t", b'"t"'), (JSON_NULL, b"null")):
        record = to_kafka(CloudEvent(base, data=data))
        assert record.value == value
        assert record.headers[-1] == ("content-type", b"application/json")


def test_from_one_mode_to_the_other() -> None:
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


def test_a_changed_event_is_written_anew() -> None:
    changed = event_of(BINARY).replace(subject="s")
    assert kafka_record(changed) is None
    record = to_kafka(changed)
    assert record.key is None
    assert record.headers == (*BINARY.headers, ("ce_subject", b"s"))


def test_keys() -> None:
    assert to_kafka(EVENT).key is None
    assert to_kafka(EVENT, key_mapper=partition_key).key == b"AA"
    assert to_kafka(EVENT.replace(partitionkey=None), key_mapper=partition_key).key is None
    assert to_kafka(EVENT.replace(partitionkey=7), key_mapper=partition_key).key == b"7"
    written = to_kafka(EVENT, key_mapper=partition_key)
    assert ("ce_partitionkey", b"AA") in written.headers
    read = event_of(BINARY)
    assert to_kafka(read).key == b"mykey"
    assert to_kafka(read, key=None) == BINARY._replace(key=None)
    assert to_kafka(read, key=b"") == BINARY._replace(key=b"")
    assert to_kafka(read, key_mapper=lambda event: event.id.encode()).key == b"1234-1234-1234"
    with pytest.raises(CloudEventError, match="key or key_mapper, not both"):
        to_kafka(EVENT, key=b"k", key_mapper=partition_key)
    no_key: Any = "k"
    with pytest.raises(CloudEventError, match=r"bytes or None, not str \(Kafka binding 3\.1\)"):
        to_kafka(EVENT, key=no_key)
    with pytest.raises(CloudEventError, match="bytes or None, not str"):
        to_kafka(EVENT, key_mapper=lambda event: cast(Any, event.id))


def test_headers_of_the_callers_own() -> None:
    record = to_kafka(EVENT, headers=[("trace", b"1"), ("trace", None)])
    assert record.headers[-2:] == (("trace", b"1"), ("trace", None))
    read = to_kafka(event_of(BINARY), headers=[("trace", b"1")])
    assert read.headers == (*BINARY.headers, ("trace", b"1"))
    for name in ("ce_id", "content-type"):
        with pytest.raises(CloudEventError, match=f"{name}: the header belongs to the event"):
            to_kafka(EVENT, headers=[(name, b"x")])


def test_message_formats_without_headers() -> None:
    for message_format in (0, 1):
        record = to_kafka(EVENT, "structured", key=b"k", message_format=message_format)
        assert record == (b"k", to_json(EVENT), ())
        assert event_of(record, mode="structured") == EVENT
        read = to_kafka(event_of(STRUCTURED), message_format=message_format)
        assert read == STRUCTURED._replace(headers=())
        with pytest.raises(CloudEventError, match=r"has no headers.*Kafka binding 1\.3"):
            to_kafka(EVENT, "binary", message_format=message_format)
        with pytest.raises(CloudEventError, match=r"trace: .*1 would be lost"):
            to_kafka(EVENT, "structured", headers=[("trace", b"1")], message_format=message_format)
    assert to_kafka(EVENT, "binary", message_format=2).headers


def test_what_cannot_be_read_cannot_be_converted() -> None:
    opaque = from_kafka(None, b"x", [("content-type", b"application/cloudevents+avro")])
    with pytest.raises(CloudEventError, match="it goes out only as it came in"):
        to_kafka(opaque, "binary")
    with pytest.raises(CloudEventError, match="it goes out only as it came in"):
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
    for wrong in ("application/json", "nonsense", "application/cloudevents+x; a=b"):
        with pytest.raises(CloudEventError, match="no media type of an event format"):
            register_format(EventFormat(wrong, from_json, to_json))


def test_records_and_outcomes_show_no_content() -> None:
    secret = KafkaRecord(b"s3cr3t", b"s3cr3t", (("x", b"s3cr3t"),))
    assert "s3cr3t" not in repr(secret)
    assert "s3cr3t" not in repr(from_kafka(*secret))
    assert repr(KafkaRecord(None, b"ab", (("x", None),))) == (
        "KafkaRecord(key=null, value=<2 bytes>, headers=[x])"
    )


@pytest.mark.parametrize("record", [BINARY, STRUCTURED])
def test_pickled_events_keep_their_record(record: KafkaRecord) -> None:
    back = pickle.loads(pickle.dumps(event_of(record)))
    assert back == event_of(record)
    assert to_kafka(back) == record
