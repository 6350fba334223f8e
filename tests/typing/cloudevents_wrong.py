"""Mistakes in uses of CloudEvents: one on each line marked `# error`, which checkers must report.

Checkers read this file; it is never run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from kproto_cloudevents import (
    CloudEvent,
    InvalidEvent,
    KafkaRecord,
    events,
    from_json,
    from_kafka,
    from_kafka_many,
    lazy_from_kafka,
    partition_key,
    to_kafka,
)


def wrong_attributes(event: CloudEvent) -> None:
    CloudEvent(id=1.5, source="/s", type="t")  # error: a float is no attribute value
    CloudEvent({"id": ["1"]})  # error: nor is a list
    CloudEvent([("id", "1")])  # error: attributes are a mapping
    event.replace(tags=["a"])  # error: a list is no attribute value
    event.to_version(1.0)  # error: a version is a str
    event.to_version("1.0", rename=["a"])  # error: new names are a mapping
    event.get(5)  # error: a name is a str


def an_event_is_immutable(event: CloudEvent) -> None:
    event.id = "2"  # error: no setter
    event["id"] = "2"  # error: no item assignment
    event.attributes["id"] = "2"  # error: a read-only view
    event.other = "2"  # error: no such attribute


def what_may_be_unset_must_be_looked_at(event: CloudEvent) -> None:
    print(event.subject.upper())  # error: it may be unset
    print(event.time.datetime)  # error: it may be unset
    print(len(event.data_bytes()))  # error: there may be no data


def an_outcome_is_no_event_yet(record: KafkaRecord) -> None:
    print(from_kafka(*record).id)  # error: it may be no event
    print(lazy_from_kafka(*record).type)  # error: it may be no event
    event: CloudEvent = from_kafka(*record)  # error: it may be no event
    print(event)


def wrong_records(event: CloudEvent, invalid: InvalidEvent) -> None:
    from_kafka("k", b"")  # error: a key is bytes
    from_kafka(None, "text")  # error: a value is bytes
    from_kafka(None, b"", {"ce_id": b"1"})  # error: headers are pairs
    from_kafka(None, b"", [("ce_id", "1")])  # error: a header's value is bytes
    from_kafka(None, b"", mode="batch")  # error: no such mode
    from_kafka_many([(b"k", b"v")])  # error: a record has headers
    from_json({"id": "1"})  # error: a document is bytes or str
    to_kafka(event, "bianry")  # error: no such mode
    to_kafka(event, key="k")  # error: a key is bytes
    to_kafka(event, headers=[("trace", 1)])  # error: a header's value is bytes
    to_kafka(event, key_mapper=lambda each: each.id)  # error: a key is bytes
    to_kafka(event, key_mapper=partition_key(event))  # error: a mapper is wanted, no key
    to_kafka(invalid)  # error: an invalid event is not written


async def records_without_headers(records: AsyncIterator[tuple[bytes, bytes]]) -> None:
    async for received in events(records):  # error: these have neither key nor value
        print(received)
