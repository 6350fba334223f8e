"""Tests `CloudEvents`, the codec of values: both modes, keys, headers, tombstones, other records.

The contexts are those of `kproto.codecs`; with a client, records go through an embedded broker.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kproto_cloudevents import (
    CloudEvent,
    CloudEventError,
    CloudEvents,
    KafkaRecord,
    Mode,
    from_kafka,
    partition_key,
)

from kproto import Client, Record, Undecodable
from kproto.broker import Broker
from kproto.codecs import DecodeContext, EncodeContext, StringCodec
from tests.unit.cloudevents.samples import BINARY, STRUCTURED

MODES: list[Mode | None] = [None, "binary", "structured"]


def event(**attributes: Any) -> CloudEvent:
    return CloudEvent(**{"id": "1", "source": "/shop", "type": "order.placed", **attributes})


def encoded(codec: CloudEvents, value: Any, **given: Any) -> KafkaRecord:
    context = EncodeContext("orders", "value", **given)
    data = codec.encode(value, context)
    return KafkaRecord(context.key, data, tuple(context.headers))


def decoded(codec: CloudEvents, record: KafkaRecord) -> CloudEvent | None:
    read = Record(key=record.key, value=record.value, headers=record.headers)
    return codec.decode(record.value, DecodeContext(read, "value"))


@pytest.mark.hypothesis
@given(st.none() | st.binary(), st.sampled_from(MODES), st.none() | st.binary())
def test_event_is_read_back(data: bytes | None, mode: Mode | None, key: bytes | None) -> None:
    codec = CloudEvents(mode)
    record = encoded(codec, event(data=data), key=key)
    assert record.key == key
    found = decoded(codec, record)
    assert found is not None
    assert (found.id, found.type, found.data) == ("1", "order.placed", data)


@pytest.mark.parametrize("record", [BINARY, STRUCTURED])
def test_record_that_was_read_is_written_again_byte_for_byte(record: KafkaRecord) -> None:
    found = decoded(CloudEvents(), record)
    assert encoded(CloudEvents(), found) == record


def test_mode_of_the_codec_changes_the_record() -> None:
    found = decoded(CloudEvents(), BINARY)
    written = encoded(CloudEvents("structured"), found)
    assert (dict(written.headers)["content-type"] or b"").startswith(
        b"application/cloudevents+json"
    )
    assert from_kafka(*written) == found


def test_headers_of_the_caller_follow_those_of_the_event() -> None:
    record = encoded(CloudEvents(), event(), headers=[("own", b"x")])
    assert record.headers[0] == ("ce_specversion", b"1.0")
    assert record.headers[-1] == ("own", b"x")


def test_key_is_that_of_the_caller_then_of_the_mapper_then_of_the_record() -> None:
    codec = CloudEvents(key_mapper=partition_key)
    assert encoded(codec, event(partitionkey="p"), key=b"k").key == b"k"
    assert encoded(codec, event(partitionkey="p")).key == b"p"
    assert encoded(codec, decoded(codec, BINARY)).key == b"mykey"
    assert encoded(codec, event()).key is None


def test_tombstone_is_none_and_an_event_without_data_is_an_event() -> None:
    assert encoded(CloudEvents(), None) == KafkaRecord(None, None)
    assert decoded(CloudEvents(), KafkaRecord(b"k", None)) is None
    without_data = encoded(CloudEvents(), event())
    assert without_data.value is None
    found = decoded(CloudEvents(), without_data)
    assert found is not None
    assert found.id == "1"


@pytest.mark.parametrize(
    "record",
    [
        KafkaRecord(None, b"no event"),
        KafkaRecord(None, b"x", (("ce_specversion", b"9.9"), ("ce_id", b"1"))),
        KafkaRecord(None, b"x", (("ce_specversion", b"1.0"),)),
        KafkaRecord(None, b"x", (("content-type", b"application/cloudevents+json"),)),
        KafkaRecord(None, b"x", (("content-type", b"application/cloudevents+unknown"),)),
    ],
)
def test_record_that_is_no_readable_event_is_refused(record: KafkaRecord) -> None:
    with pytest.raises(CloudEventError):
        decoded(CloudEvents(), record)


def test_object_that_is_no_event_is_refused() -> None:
    with pytest.raises(CloudEventError, match="str"):
        encoded(CloudEvents(), "no event")


@pytest.mark.parametrize("mode", MODES)
async def test_events_go_through_a_topic(mode: Mode | None) -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        await client.create_topics("orders")
        async with client.producer(key=StringCodec(), value=CloudEvents(mode)) as producer:
            await producer.send("orders", event(data={"total": 12}), key="a")
            await producer.send_many("orders", [event(id="2"), None])
        async with client.producer() as producer:
            await producer.send("orders", b"no event")
        consumer = client.consumer(
            "orders",
            key=StringCodec(),
            value=CloudEvents(),
            undecodable=Undecodable,
            stop_at_end=True,
        )
        first, second, tombstone, other = [record async for record in consumer]
    assert not isinstance(first, Undecodable)
    assert first.key == "a"
    assert isinstance(first.value, CloudEvent)
    assert first.value.data == {"total": 12} or first.value.data == b'{"total":12}'
    assert isinstance(second.value, CloudEvent)
    assert second.value.id == "2"
    assert (type(tombstone), tombstone.value) == (Record, None)
    assert isinstance(other, Undecodable)
    assert isinstance(other.error.__cause__, CloudEventError)
