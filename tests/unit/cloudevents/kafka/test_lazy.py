"""Tests lazy reading: it reads only requested parts, with the same results as full reading."""

from __future__ import annotations

from typing import Any, cast

import pytest
from kproto_cloudevents import (
    DEFAULT,
    JSON_FORMAT,
    LENIENT,
    CloudEvent,
    CloudEventError,
    KafkaRecord,
    LazyEvent,
    NotAnEvent,
    OpaqueEvent,
    Profile,
    from_kafka,
    lazy_from_kafka,
    to_kafka,
)

from ..samples import BINARY, REQUIRED, STRUCTURED, Parts, event_of, record_with


def test_lazy_reading_agrees_with_full_reading() -> None:
    full = event_of(BINARY)
    lazy = lazy_from_kafka(*BINARY)
    lazy = lazy_from_kafka(*BINARY)  # the content type is cached now
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


def lazy_of(record: Parts, profile: Profile = DEFAULT) -> LazyEvent:
    lazy = lazy_from_kafka(*record, profile=profile)
    assert isinstance(lazy, LazyEvent)
    return lazy


#: Records in binary mode, and the profile with which each is read.
RECORDS = [
    (BINARY, DEFAULT),
    (record_with(("x", b"1"), ("ce_unset", None), ("ce_ext", b""), value=None), DEFAULT),
    (record_with(("content-type", b"a/b"), ("ce_datacontenttype", b"a/b")), DEFAULT),
    (record_with(("ce_datacontenttype", b"a/b"), ("content-type", None)), DEFAULT),
    (record_with(("CE_Subject", b"s"), ("Content-Type", b"a/b")), LENIENT),
    (to_kafka(CloudEvent(id="1", source="/s", type="t", n=5, data=[1]).to_version("0.3")), DEFAULT),
    (to_kafka(CloudEvent(id="1", source="/s", type="t", n=5, data=[1]).to_version("0.1")), DEFAULT),
]


#: Options of `to_kafka`.
OPTIONS: list[dict[str, Any]] = [
    {"mode": "binary", "key": None},
    {"mode": "structured", "event_format": JSON_FORMAT, "repeat_attributes": True},
    {"key_mapper": lambda event: event.id.encode(), "headers": [("mine", b"1")]},
]


@pytest.mark.parametrize(("record", "profile"), RECORDS)
def test_a_lazy_event_is_a_mapping_of_its_attributes(record: KafkaRecord, profile: Profile) -> None:
    lazy, full = lazy_of(record, profile), event_of(record, profile=profile)
    assert list(lazy) == list(full)
    assert len(lazy) == len(full.attributes)
    assert dict(lazy) == dict(lazy.items()) == dict(full.attributes)
    assert list(lazy.values()) == list(full.values())
    for name in [*full, "nothing", "unset", "x", "datacontenttype", "contenttype", "subject", ""]:
        assert (name in lazy) == (name in full), name
        assert lazy.get(name, "else") == full.get(name, "else"), name
    unhashable: Any = []
    for other in (5, None, b"id", unhashable):
        assert other not in lazy
    assert lazy.data == lazy.value == full.data
    assert lazy.key == record.key
    assert lazy.mode == "binary"
    assert lazy.to_kafka_record() == record
    assert lazy.to_kafka_record("structured", key=b"k") == to_kafka(full, "structured", key=b"k")
    assert to_kafka(lazy) == record
    for options in OPTIONS:
        assert to_kafka(lazy, **options) == to_kafka(full, **options)


def test_names_are_checked_when_all_attributes_are_read() -> None:
    odd = lazy_of(record_with(("ce_Odd", b"1"), ("ce_time", b"tomorrow")))
    assert "Odd" in odd
    assert "time" in odd
    for act in (list, len, dict, lambda lazy: lazy.items(), lambda lazy: lazy.to_kafka_record()):
        with pytest.raises(CloudEventError, match="ce_Odd: an attribute name has only"):
            act(odd)
    late = lazy_of(record_with(("ce_time", b"tomorrow")))
    assert list(late)[-1] == "time"
    for act in (dict, lambda lazy: lazy.items(), lambda lazy: lazy.values(), to_kafka):
        with pytest.raises(CloudEventError, match="ce_time"):
            act(late)
    assert late.record() == record_with(("ce_time", b"tomorrow"))


@pytest.mark.parametrize(
    ("key", "value", "headers"),
    [
        (None, "text", REQUIRED),
        (None, bytearray(b"x"), REQUIRED),
        (None, 5, REQUIRED),
        ("key", b"x", REQUIRED),
        (b"k", b"x", dict(REQUIRED)),
        (b"k", b"x", 7),
        (b"k", b"x", [*REQUIRED, ("ce_x",)]),
        (b"k", b"x", [*REQUIRED, "ce_x"]),
        (b"k", b"x", [("ce_specversion", "1.0"), *REQUIRED[1:]]),
        (b"k", b"x", [("ce_specversion", []), *REQUIRED[1:]]),
        (b"k", b"x", [*REQUIRED, ("content-type", 7)]),
        (b"k", b"x", [*REQUIRED, ("content-type", [])]),
        (b"k", b"x", [*REQUIRED, *REQUIRED]),
    ],
)
def test_lazy_and_full_reading_refuse_the_same_records(key: Any, value: Any, headers: Any) -> None:
    for read in (from_kafka, lazy_from_kafka):
        with pytest.raises(CloudEventError):
            read(key, value, headers)


@pytest.mark.parametrize("wrong", ["1", 5, [], bytearray(b"1"), ("ce_id", b"1")])
@pytest.mark.parametrize("name", ["id", "type", "ext"])
def test_header_values_other_than_bytes_are_refused_when_read(name: str, wrong: Any) -> None:
    headers: list[Any] = [header for header in REQUIRED if header[0] != f"ce_{name}"]
    record = (None, b"x", [*headers, (f"ce_{name}", wrong)])
    try:
        from_kafka(*record)
    except CloudEventError:
        lazy = lazy_of(record)
        for act in (lambda: lazy[name], lambda: lazy.get(name), lazy.items, lazy.to_kafka_record):
            with pytest.raises(CloudEventError):
                act()
        with pytest.raises(CloudEventError):
            _ = (lazy.id, lazy.type, lazy["ext"])


def test_header_names_other_than_str_are_refused_when_read() -> None:
    wrong: Any = (b"ce_x", b"1")
    lazy = lazy_of((None, b"x", [*REQUIRED, wrong]))
    assert lazy.id == "1234-1234-1234"
    for act in (lambda: list(lazy), lazy.items, lazy.event, lazy.to_kafka_record):
        with pytest.raises(CloudEventError, match="header 4 is not a pair"):
            act()
    no_name: Any = 5
    with pytest.raises(TypeError):
        lazy_of(BINARY).get(no_name)


def test_a_subclass_of_bytes_is_read_lazily() -> None:
    class Octets(bytes):
        pass

    assert lazy_of((Octets(b"k"), Octets(b"x"), REQUIRED)).data == b"x"


def test_lazy_reading_checks_only_the_parts_that_are_read() -> None:
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


def test_records_of_other_modes_are_read_at_once() -> None:
    assert isinstance(lazy_from_kafka(*STRUCTURED), CloudEvent)
    assert isinstance(lazy_from_kafka(None, b"x"), NotAnEvent)
    assert isinstance(lazy_from_kafka(None, b"x", [("ce_specversion", b"7")]), OpaqueEvent)
    old = lazy_from_kafka(*record_with(("ce_datacontenttype", b"text/xml")))
    assert isinstance(old, LazyEvent)
    assert old.datacontenttype == "text/xml"
    with pytest.raises(CloudEventError, match="appears twice"):
        lazy_from_kafka(None, b"", [*REQUIRED, *REQUIRED])


def test_a_new_content_type_is_read() -> None:
    for content_type in (b"text/x-first", b"text/x-first", b"text/x-" + b"long" * 99):
        record = record_with(("content-type", content_type), ("ce_time", b"tomorrow"))
        lazy = lazy_from_kafka(*record)
        assert isinstance(lazy, LazyEvent)
        assert lazy.datacontenttype == content_type.decode()


def test_two_different_content_types_are_refused() -> None:
    lazy = lazy_from_kafka(*record_with(("content-type", b"a/b"), ("ce_datacontenttype", b"a/c")))
    assert isinstance(lazy, LazyEvent)
    assert lazy.id
    with pytest.raises(CloudEventError, match="ce_datacontenttype and content-type differ"):
        _ = lazy.datacontenttype
