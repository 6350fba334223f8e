"""Tests the outcomes of reading a record: an event, an opaque event, no event, or an error."""

from __future__ import annotations

import copy
import pickle
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from kproto_cloudevents import (
    STRICT,
    CloudEvent,
    CloudEventError,
    InvalidEvent,
    KafkaRecord,
    Mode,
    NotAnEvent,
    OpaqueEvent,
    UnknownFormatError,
    UnknownVersionError,
    from_kafka,
    from_kafka_many,
    to_kafka,
)

from ..samples import BINARY, STRUCTURED, record_with


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
def test_records_without_event_headers_are_no_events(record: KafkaRecord, reason: str) -> None:
    outcome = from_kafka(*record)
    assert isinstance(outcome, NotAnEvent)
    assert outcome.reason.startswith(reason)
    assert not outcome.tombstone
    assert to_kafka(outcome) == record


def test_a_tombstone_is_not_an_event_without_data() -> None:
    tombstone = from_kafka(b"k", None, [("x", b"y"), ("ce_id", None)])
    assert isinstance(tombstone, NotAnEvent)
    assert tombstone.tombstone
    assert isinstance(from_kafka(*record_with(value=None)), CloudEvent)


@pytest.mark.parametrize("mode", ["structured", "binary"])
def test_a_tombstone_is_recognized_in_every_mode(mode: Mode) -> None:
    """Messages of magic 0 and 1 have no headers, so their tombstones have no content type."""
    tombstone = from_kafka(b"k", None, mode=mode)
    assert isinstance(tombstone, NotAnEvent)
    assert tombstone.tombstone
    assert to_kafka(tombstone, message_format=1) == KafkaRecord(b"k", None)
    with pytest.raises(CloudEventError):
        from_kafka(b"k", b"", mode=mode)
    with pytest.raises(CloudEventError):
        from_kafka(b"k", None, [("ce_id", b"1")], mode=mode)


def test_unknown_event_formats_pass_through() -> None:
    for content_type in (b"application/cloudevents+avro", b"application/cloudevents"):
        record = KafkaRecord(b"k", b"\x00", (("content-type", content_type), ("ce_id", b"\xff")))
        outcome = from_kafka(*record)
        assert isinstance(outcome, OpaqueEvent)
        assert content_type.decode() in outcome.reason
        assert to_kafka(outcome) == record
        with pytest.raises(UnknownFormatError, match="Kafka binding 3"):
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


def test_each_of_many_records_has_an_outcome() -> None:
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


def test_records_and_outcomes_show_no_content() -> None:
    secret = KafkaRecord(b"s3cr3t", b"s3cr3t", (("x", b"s3cr3t"),))
    assert "s3cr3t" not in repr(secret)
    assert "s3cr3t" not in repr(from_kafka(*secret))
    assert repr(KafkaRecord(None, b"ab", (("x", None),))) == (
        "KafkaRecord(key=null, value=<2 bytes>, headers=[x])"
    )


@pytest.mark.parametrize(
    "rest",
    [
        '"data":"s3cr3t"',
        '"data":{"s3cr3t":1',
        '"data":["s3cr3t",NaN]',
        '"data":"s3cr3t" 5',
        '"data":"s3cr3t","data":"s3cr3t"',
        '"data":"s3cr3t","data_base64":"AA=="',
        '"data_base64":"s3cr3t!"',
        '"datacontenttype":"text/plain","data":["s3cr3t"]',
        '"datacontenttype":"text/plain;charset=ascii","data":"s3cr3t ü"',
    ],
)
@pytest.mark.parametrize("label", ["1.0", "0.3", "0.2", "9.9"])
def test_no_repr_or_error_shows_the_data(label: str, rest: str) -> None:
    document = f'{{"specversion":"{label}","id":"1","source":"/s","type":"t",{rest}}}'
    (outcome,) = from_kafka_many([(b"s3cr3t", document.encode(), STRUCTURED.headers)])
    texts = [repr(outcome)]
    if isinstance(outcome, InvalidEvent):
        texts += traceback.format_exception(outcome.error)
    if isinstance(outcome, CloudEvent):
        attempts: list[Callable[[], object]] = [
            lambda: to_kafka(outcome, "binary"),
            lambda: outcome.replace(
                datacontenttype="text/xml", contenttype="text/xml"
            ).data_bytes(),
            lambda: outcome.to_version("0.1"),
            lambda: outcome.to_version("1.0").data_bytes(),
        ]
        for attempt in attempts:
            try:
                attempt()
            except CloudEventError as error:
                texts.append(str(error))
    assert "s3cr3t" not in "".join(texts)


def test_an_empty_version_is_refused() -> None:
    with pytest.raises(CloudEventError, match='ce_specversion: "" must not be empty') as caught:
        from_kafka(None, b"x", [("ce_specversion", b"")])
    assert not isinstance(caught.value, UnknownVersionError)
    with pytest.raises(CloudEventError, match='specversion: "" must not be empty'):
        from_kafka(None, b'{"specversion":""}', STRUCTURED.headers)


@pytest.mark.parametrize("second", [b"text/plain", b"text/xml", b"\xff", None])
def test_a_second_content_type_is_ignored_if_the_record_is_no_event(
    second: bytes | None,
) -> None:
    record = KafkaRecord(None, b"x", (("content-type", b"text/plain"), ("content-type", second)))
    outcome = from_kafka(*record)
    assert isinstance(outcome, NotAnEvent)
    assert to_kafka(outcome) == record


@pytest.mark.parametrize(
    "headers",
    [
        [("content-type", b"text/plain"), ("content-type", b"application/cloudevents+json")],
        [("content-type", b"application/cloudevents+json"), ("content-type", b"text/plain")],
        [("content-type", b"text/plain"), ("content-type", b"a/b"), ("ce_specversion", b"1.0")],
        [("content-type", b"a/b"), ("content-type", b"application/cloudevents-batch+json")],
    ],
)
def test_a_second_content_type_of_an_event_is_an_error(headers: list[tuple[str, bytes]]) -> None:
    with pytest.raises(CloudEventError, match="content-type: the header appears twice"):
        from_kafka(None, STRUCTURED.value, headers)


@pytest.mark.parametrize(
    ("headers", "value", "mode", "unknown"),
    [
        ([("content-type", b"application/cloudevents")], b"x", None, "format"),
        ([("content-type", b"application/cloudevents+xml")], None, None, "format"),
        ([("ce_specversion", b"9.9")], b"x", None, "version"),
        ([("ce_cloudEventsVersion", b"0.4")], None, None, "version"),
        (
            [("content-type", b"application/cloudevents+json")],
            b'{"specversion":"2"}',
            None,
            "version",
        ),
        ([], b'{"specversion":"2"}', "structured", "version"),
    ],
)
def test_an_opaque_event_names_its_unknown_part(
    headers: list[tuple[str, bytes]], value: bytes | None, mode: Mode | None, unknown: str
) -> None:
    for read in (from_kafka(None, value, headers, mode=mode), OPAQUE):
        assert isinstance(read, OpaqueEvent)
        same = (read, pickle.loads(pickle.dumps(read)), copy.copy(read), copy.deepcopy(read))
        assert {each.unknown for each in same} == {None if read is OPAQUE else unknown}
        assert {each.reason for each in same} == {str(read.reason)}
    with pytest.raises((UnknownFormatError, UnknownVersionError)) as refused:
        from_kafka(None, value, headers, mode=mode, profile=STRICT)
    assert isinstance(refused.value, UnknownFormatError | UnknownVersionError)
    assert refused.value.unknown == unknown


OPAQUE = OpaqueEvent(KafkaRecord(b"k", b"x", (("ce_specversion", b"9"),)), "unknown")
NO_EVENT = NotAnEvent(KafkaRecord(b"k", b"x"), "no event")


@pytest.mark.parametrize("outcome", [OPAQUE, NO_EVENT], ids=["opaque", "not an event"])
def test_an_outcome_can_be_pickled_copied_and_unpacked(outcome: OpaqueEvent | NotAnEvent) -> None:
    for same in (pickle.loads(pickle.dumps(outcome)), copy.copy(outcome), copy.deepcopy(outcome)):
        assert type(same) is type(outcome)
        assert same == outcome
    record, reason = outcome
    assert (record, reason) == (outcome.record, outcome.reason)
    other = outcome._replace(reason="other")
    assert type(other) is type(outcome)
    assert other.reason == "other"
    name = type(outcome).__name__
    assert repr(outcome) == f"{name}(record={outcome.record!r}, reason={outcome.reason!r})"
    assert not hasattr(outcome, "__dict__")


def test_outcomes_have_distinct_types() -> None:
    match OPAQUE:
        case OpaqueEvent(record, reason):
            assert (record, reason) == tuple(OPAQUE)
    assert not isinstance(OPAQUE, NotAnEvent)
    assert not isinstance(NO_EVENT, OpaqueEvent)
