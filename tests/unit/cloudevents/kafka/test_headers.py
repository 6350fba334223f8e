"""Tests the headers of binary mode: nulls, duplicates, names, values and errors."""

from __future__ import annotations

from typing import Any, cast

import pytest
from kproto_cloudevents import (
    LENIENT,
    CloudEventError,
    KafkaRecord,
    LazyEvent,
    NotAnEvent,
    from_kafka,
    lazy_from_kafka,
    to_kafka,
)

from ..samples import BINARY, REQUIRED, event_of, record_with


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


def test_other_headers_are_kept() -> None:
    record = record_with(("trace", b"1"), ("trace", b"2"), ("blob", b"\xff"), ("none", None))
    event = event_of(record)
    assert "trace" not in event
    assert to_kafka(event) == record


def test_none_means_no_headers() -> None:
    assert isinstance(from_kafka(None, b"x", None), NotAnEvent)


def test_extensions_are_strings_and_may_be_empty() -> None:
    event = event_of(record_with(("ce_n", b"5"), ("ce_empty", b""), ("ce_u", "ü\u00a0".encode())))
    assert event.extensions == {"n": "5", "empty": "", "u": "ü\u00a0"}


def test_only_the_lenient_profile_accepts_names_in_any_case() -> None:
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


def test_headers_in_another_case_are_not_copied_to_another_mode() -> None:
    headers = (("CONTENT-TYPE", b"application/cloudevents+json"), ("CE_ID", b"1"), ("x", b""))
    record = KafkaRecord(b"k", b'{"specversion":"1.0","id":"1","source":"/s","type":"t"}', headers)
    lenient = to_kafka(event_of(record, profile=LENIENT), "binary")
    assert lenient.headers[4:] == (("x", b""),)
    assert event_of(lenient, profile=LENIENT).attributes == event_of(lenient).attributes
    # A strict reader ignores a header in another case. The conversion to the other mode omits the
    # header, because a lenient reader would treat it as one of the event's headers.
    theirs = event_of(record, mode="structured")
    assert to_kafka(theirs) == record
    assert to_kafka(theirs, "binary") == lenient
    others = (("Content-Type", b""), ("CE_ID", b"2"), ("x", None))
    binary = event_of(KafkaRecord(b"k", b"", (*REQUIRED, *others)))
    assert to_kafka(binary).headers[4:] == others
    written = to_kafka(binary, "structured")
    assert written.headers[1:] == (("x", None),)
    assert event_of(written, profile=LENIENT) == binary
    titled = KafkaRecord(None, b"", tuple((name.title(), raw) for name, raw in REQUIRED))
    assert len(to_kafka(event_of(titled, profile=LENIENT), "structured").headers) == 1


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
                'ce_x: "a\\x00" has U+0000, which is not allowed in a String '
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
def test_broken_records_are_refused(headers: list[tuple[str, bytes]], message: str) -> None:
    for _ in range(2):  # the cache of headers must not hide the error
        with pytest.raises(CloudEventError) as caught:
            from_kafka(None, b"v", [*REQUIRED, *headers])
        assert str(caught.value) == message


@pytest.mark.parametrize("missing", ["specversion", "type", "source", "id"])
def test_missing_attributes_are_refused(missing: str) -> None:
    headers = [header for header in REQUIRED if header[0] != f"ce_{missing}"]
    with pytest.raises(CloudEventError) as caught:
        from_kafka(None, b"v", headers)
    assert str(caught.value) == (
        f"ce_{missing}: the required attribute is missing "
        '(Kafka binding 3.2.3, CloudEvents 1.0 "REQUIRED Attributes")'
    )


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
def test_parts_of_a_wrong_python_type_are_refused(
    key: Any, value: Any, headers: Any, message: str
) -> None:
    with pytest.raises(CloudEventError, match=message):
        from_kafka(key, value, headers)
    with pytest.raises(CloudEventError, match=message):
        # A lazy event checks the parts of its record when they are read.
        cast(LazyEvent, lazy_from_kafka(key, value, headers)).event()
