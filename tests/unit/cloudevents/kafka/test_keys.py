"""Tests the record key and the additional headers that the caller passes for a record."""

from __future__ import annotations

from typing import Any, cast

import pytest
from kproto_cloudevents import (
    CloudEventError,
    InvalidEvent,
    partition_key,
    to_kafka,
)

from ..samples import BINARY, EVENT, STRUCTURED, event_of


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


def test_a_mapper_without_a_result_keeps_the_key_of_the_record() -> None:
    for record in (BINARY, STRUCTURED):
        read = event_of(record)
        assert to_kafka(read, key_mapper=partition_key) == record
        assert to_kafka(read, key_mapper=lambda event: b"").key == b""
        for mode in ("binary", "structured"):
            assert to_kafka(read, mode, key_mapper=lambda event: None).key == b"mykey"
        # A changed event no longer has the record from which it was read.
        assert to_kafka(read.replace(id="2"), key_mapper=partition_key).key is None


def test_headers_of_the_caller_are_added() -> None:
    record = to_kafka(EVENT, headers=[("trace", b"1"), ("trace", None)])
    assert record.headers[-2:] == (("trace", b"1"), ("trace", None))
    read = to_kafka(event_of(BINARY), headers=[("trace", b"1")])
    assert read.headers == (*BINARY.headers, ("trace", b"1"))
    # Names with capitals are refused, too: a lenient reader would treat such a header as an
    # attribute or as the mode.
    for name in ("ce_id", "content-type", "CE_foo", "Ce_id", "Content-Type"):
        with pytest.raises(CloudEventError, match=f"{name}: the header belongs to the event"):
            to_kafka(EVENT, headers=[(name, b"x")])


@pytest.mark.parametrize("headers", [{"ab": b"x"}, [("ab", "x")], [5], 5, ["ab"], [(b"ab", b"x")]])
def test_invalid_headers_of_the_caller_are_refused(headers: Any) -> None:
    with pytest.raises(CloudEventError, match=r"header.*Kafka binding 3\.2\.3"):
        to_kafka(EVENT, headers=headers)


def test_the_partition_key_of_an_event_with_a_map_of_extensions() -> None:
    old = EVENT.replace(subject=None, ok=None).to_version("0.1")
    assert "partitionkey" not in old
    written = to_kafka(old, key_mapper=partition_key)
    assert written.key == b"AA"
    assert b'"partitionkey":"AA"' in (dict(written.headers)["ce_extensions"] or b"")


@pytest.mark.parametrize(
    "wrong", ["text", b"", None, 5, InvalidEvent(BINARY, CloudEventError("x"))]
)
def test_other_objects_than_events_are_not_written(wrong: Any) -> None:
    with pytest.raises(
        CloudEventError, match=f"{type(wrong).__name__} cannot be written as an event"
    ):
        to_kafka(wrong)
