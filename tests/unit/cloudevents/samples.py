"""Provides records and events for several test modules of the protocol bindings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kproto_cloudevents import (
    CloudEvent,
    Header,
    KafkaRecord,
    from_kafka,
)

# The record of Kafka binding 3.2.5; header values are bytes, as on the wire.
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

# The record of Kafka binding 3.3.4, with values for its ellipses.
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


#: A record, or a tuple of its key, value and headers.
Parts = tuple[bytes | None, bytes | None, Sequence[Header]]


def event_of(record: Parts, **settings: Any) -> CloudEvent:
    event = from_kafka(*record, **settings)
    assert isinstance(event, CloudEvent)
    return event


def record_with(*headers: tuple[str, bytes | None], value: bytes | None = b"v") -> KafkaRecord:
    return KafkaRecord(None, value, (*REQUIRED, *headers))


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
