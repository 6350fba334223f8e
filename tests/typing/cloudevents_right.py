"""Correct uses of CloudEvents, and the types that checkers must infer; the file is never run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Literal, NamedTuple, assert_never, assert_type

from kproto_cloudevents import (
    JSON_FORMAT,
    LENIENT,
    CloudEvent,
    CloudEventError,
    Header,
    InvalidEvent,
    JsonMap,
    KafkaRecord,
    LazyEvent,
    Mode,
    NotAnEvent,
    OpaqueEvent,
    Received,
    Timestamp,
    Uri,
    events,
    from_json,
    from_json_batch,
    from_kafka,
    from_kafka_many,
    lazy_from_kafka,
    partition_key,
    to_json,
    to_kafka,
)
from kproto_cloudevents.extensions import SAMPLED_RATE, ExtensionRegistry
from kproto_cloudevents.values.types import AttributeValue

from kproto.client import Acks, Producer


class Consumed(NamedTuple):
    """A record of another client; it has one more field than kproto_cloudevents needs."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    offset: int


class OfKafkaPython(NamedTuple):
    """A record as kafka-python types it: `headers` may be None, but a header's value may not."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] | None


def every_outcome_is_distinguished(record: KafkaRecord) -> str | None:
    outcome = from_kafka(record.key, record.value, record.headers, profile=LENIENT)
    match outcome:
        case CloudEvent():
            return outcome.subject
        case OpaqueEvent():
            return outcome.reason
        case NotAnEvent():
            assert_type(outcome.tombstone, bool)
            return None
        case _:
            assert_never(outcome)


def event_attributes_have_types(event: CloudEvent) -> None:
    assert_type(event.id, str)
    assert_type(event.time, Timestamp | None)
    if event.time is not None:
        assert_type(event.time.datetime, datetime)
    assert_type(event["zone"], AttributeValue)
    assert_type(event.get("zone"), AttributeValue | None)
    assert_type(event.extensions, Mapping[str, AttributeValue])
    assert_type(event.data_bytes(), bytes | None)
    assert_type(event.to_version("0.3", drop=["ok"], rename={"a": "b"}), CloudEvent)
    assert_type(event.replace(subject=None, data=b"x"), CloudEvent)


def events_accept_native_values(moment: datetime) -> CloudEvent:
    attributes: dict[str, str] = {"id": "1", "source": "/s", "type": "t"}
    CloudEvent(attributes, data={"total": 12})
    CloudEvent(id="1", source="/s", type="t", n=5, ok=True, raw=b"\x00", unset=None, time=moment)
    return CloudEvent(attributes, schema=Uri("http://a"), map=JsonMap.of({"a": 1}), data=[1, None])


def events_are_encoded_in_every_mode(event: CloudEvent, headers: list[Header]) -> None:
    record = to_kafka(event)
    assert_type(record, KafkaRecord)
    assert_type(record.headers, tuple[Header, ...])
    key, value, written = record
    assert_type((key, value), tuple[bytes | None, bytes | None])
    from_kafka(key, value, written, mode="structured")
    to_kafka(event, "binary", key=b"k", headers=headers)
    to_kafka(event, "structured", key_mapper=partition_key, event_format=JSON_FORMAT)
    to_kafka(event, key=None, key_mapper=lambda each: each.id.encode())
    assert_type(to_json(event), bytes)
    assert_type(from_json("{}"), CloudEvent)
    assert_type(from_json_batch(b"[]"), list[CloudEvent])


def each_record_has_one_outcome(records: list[KafkaRecord]) -> list[CloudEventError]:
    outcomes = from_kafka_many(records)
    assert_type(outcomes, list[CloudEvent | OpaqueEvent | NotAnEvent | InvalidEvent])
    return [outcome.error for outcome in outcomes if isinstance(outcome, InvalidEvent)]


def lazy_events_are_decoded_on_demand(record: KafkaRecord) -> None:
    lazy = lazy_from_kafka(*record)
    assert_type(lazy, LazyEvent | CloudEvent | OpaqueEvent | NotAnEvent)
    if isinstance(lazy, LazyEvent):
        assert_type(lazy.type, str)
        assert_type(lazy["zone"], str)
        assert_type(lazy.event(), CloudEvent)


async def every_outcome_can_be_sent(
    producer: Producer, outcome: CloudEvent | LazyEvent | OpaqueEvent | NotAnEvent
) -> None:
    await producer.send_event("orders", outcome)
    await producer.send_event("orders", outcome, mode="structured", key=b"k")
    assert_type(await producer.send_events("orders", [outcome], mode="binary", key=b"k"), Acks)


def events_are_mappings_of_attributes(event: CloudEvent, lazy: LazyEvent) -> None:
    assert_type(dict(event), dict[str, AttributeValue])
    assert_type(dict(event.items()), dict[str, AttributeValue])
    assert_type(dict(lazy), dict[str, str])
    assert_type((event.mode, lazy.data), tuple[Mode | None, bytes | None])


def opaque_events_name_the_unknown_part(outcome: OpaqueEvent) -> None:
    assert_type(outcome.unknown, Literal["format", "version"] | None)


async def outcomes_keep_their_records(
    consumed: AsyncIterator[Consumed], others: AsyncIterator[OfKafkaPython]
) -> None:
    async for received in events(consumed):
        assert_type(received, Received[Consumed])
        assert_type(received.record.offset, int)
    async for other in events(others, mode="structured"):
        assert_type(other.record, OfKafkaPython)


def typed_extensions(event: CloudEvent) -> None:
    assert_type(SAMPLED_RATE.read(event), dict[str, AttributeValue] | None)
    assert_type(ExtensionRegistry([SAMPLED_RATE]).typed(event), CloudEvent)
