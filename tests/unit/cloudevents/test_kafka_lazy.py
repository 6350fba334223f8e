"""Lazy reading: as far as asked for, by the same rules."""

from __future__ import annotations

from typing import cast

import pytest
from kproto_cloudevents import (
    CloudEvent,
    CloudEventError,
    LazyEvent,
    NotAnEvent,
    OpaqueEvent,
    lazy_from_kafka,
)

from .samples import BINARY, REQUIRED, STRUCTURED, event_of, record_with


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


def test_a_content_type_that_is_met_for_the_first_time() -> None:
    for content_type in (b"text/x-first", b"text/x-first", b"text/x-" + b"long" * 99):
        record = record_with(("content-type", content_type), ("ce_time", b"tomorrow"))
        lazy = lazy_from_kafka(*record)
        assert isinstance(lazy, LazyEvent)
        assert lazy.datacontenttype == content_type.decode()


def test_two_content_types_that_differ() -> None:
    lazy = lazy_from_kafka(*record_with(("content-type", b"a/b"), ("ce_datacontenttype", b"a/c")))
    assert isinstance(lazy, LazyEvent)
    assert lazy.id
    with pytest.raises(CloudEventError, match="ce_datacontenttype and content-type differ"):
        _ = lazy.datacontenttype
