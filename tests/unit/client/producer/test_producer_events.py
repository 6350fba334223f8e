"""Tests `send_event` and `send_events`: `event.to_kafka_record` returns the record to send."""

from __future__ import annotations

from typing import Any

import pytest
from kproto_cloudevents import (
    CloudEvent,
    InvalidEvent,
    LazyEvent,
    from_kafka,
    from_kafka_many,
    lazy_from_kafka,
    to_kafka,
)

from kproto import Client, DeliveryError, EncodeError
from tests.unit.client.producer.test_producer import QUICK
from tests.unit.client.scripted_broker import ScriptedBroker, Stored

HEADERS = (("h", b"1"), ("h", None), ("a", b""))


class Order:
    """A custom event class that stores the arguments of its calls."""

    def __init__(self, value: Any = b"v") -> None:
        self.value = value
        self.calls: list[tuple[Any, dict[str, Any]]] = []

    def to_kafka_record(self, mode: Any = None, **options: Any) -> tuple[Any, Any, Any]:
        self.calls.append((mode, options))
        return b"k", self.value, HEADERS


async def test_event_is_sent_as_its_own_record() -> None:
    async with ScriptedBroker({"t": 2}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        event = Order()
        async with client.producer() as producer:
            ack = await producer.send_event("t", event, timestamp=1234, partition=1)
        assert ack == ("t", 1, 0, 1234)
        ((_, _, batch),) = stored.batches
        (record,) = batch.records()
        assert (record.key, record.value, tuple(record.headers)) == (b"k", b"v", HEADERS)
        assert event.calls == [(None, {})]


async def test_mode_and_options_are_passed_to_the_event() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        Stored(broker)
        event = Order()
        async with client.producer() as producer:
            await producer.send_event("t", event, mode="structured", key=None, message_format=1)
        assert event.calls == [("structured", {"key": None, "message_format": 1})]


async def test_event_that_cannot_be_encoded_sends_nothing() -> None:
    class Unwritable(Order):
        def to_kafka_record(self, mode: Any = None, **options: Any) -> tuple[Any, Any, Any]:
            raise ValueError("not in this mode")

    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        async with client.producer() as producer:
            with pytest.raises(ValueError, match="not in this mode"):
                await producer.send_event("t", Unwritable())
            with pytest.raises(EncodeError, match="value of a record"):
                await producer.send_event("t", Order(value=7))
        assert not stored.batches


def invalid_event() -> Any:
    """Returns the result of decoding a malformed CloudEvents record."""
    (outcome,) = from_kafka_many([(None, b"x", (("ce_specversion", b"1.0"),))])
    assert isinstance(outcome, InvalidEvent)
    return outcome


@pytest.mark.parametrize(
    ("value_", "named"),
    [
        (b"value", "bytes"),
        ({"id": "1"}, "dict"),
        (None, "NoneType"),
        (Order, "Order"),
        (invalid_event(), "InvalidEvent"),
    ],
)
async def test_value_that_is_no_event_is_refused_by_its_type(value_: Any, named: str) -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        async with client.producer() as producer:
            with pytest.raises(EncodeError, match=f"^{named} is no event to be sent.*`send`$"):
                await producer.send_event("t", value_)
            with pytest.raises(EncodeError, match=f"^{named} is no event to be sent"):
                await producer.send_events("t", [Order(), value_])
        assert not stored.batches


async def test_events_are_sent_in_one_call() -> None:
    async with ScriptedBroker({"t": 2}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        orders = [Order(bytes([each])) for each in range(5)]
        async with client.producer() as producer:
            with pytest.raises(TypeError, match="pass a list of events, or use send_event"):
                await producer.send_events("t", orders[0])  # type: ignore[arg-type]
            acks = await producer.send_events("t", orders, timestamp=1234, partition=1)
            more = await producer.send_events("t", iter(orders[:2]), mode="binary", key=b"k")
            none = await producer.send_events("t", [])
        assert (len(acks), len(more), len(none)) == (5, 2, 0)
        assert [ack[:2] for ack in acks] == [("t", 1)] * 5
        (_, partition, batch), *_ = stored.batches
        assert partition == 1
        records = list(batch.records())
        assert [record.value for record in records] == [bytes([each]) for each in range(5)]
        assert {(record.key, tuple(record.headers)) for record in records} == {(b"k", HEADERS)}
        assert {record.timestamp for record in records} == {1234}
        assert orders[0].calls == [(None, {}), ("binary", {"key": b"k"})]
        assert orders[4].calls == [(None, {})]


async def test_events_of_every_class_are_sent_as_their_records() -> None:
    event = CloudEvent(id="1", source="/s", type="t", data={"total": 12})
    lazy = lazy_from_kafka(*to_kafka(event, key=b"lazy"))
    assert isinstance(lazy, LazyEvent)
    opaque = from_kafka(b"opaque", b"x", (("ce_specversion", b"9"),))
    none = from_kafka(b"none", b"y", ())
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        async with client.producer() as producer:
            await producer.send_events("t", [event, lazy, opaque, none])
        ((_, _, batch),) = stored.batches
        sent = [(each.key, each.value, tuple(each.headers)) for each in batch.records()]
        assert sent == [
            to_kafka(event),
            to_kafka(event, key=b"lazy"),
            (b"opaque", b"x", (("ce_specversion", b"9"),)),
            (b"none", b"y", ()),
        ]


async def test_events_before_an_invalid_event_of_an_iterator_are_sent() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        events: list[Any] = [Order(b"1"), Order(b"2"), 7, Order(b"3")]
        async with client.producer() as producer:
            with pytest.raises(EncodeError, match=r"^int is no event"):
                await producer.send_events("t", iter(events))
        values = [each.value for _, _, batch in stored.batches for each in batch.records()]
        assert values == [b"1", b"2"]


async def test_events_for_a_missing_topic_are_in_the_error() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        async with client.producer() as producer:
            with pytest.raises(DeliveryError) as failed:
                await producer.send_events("nothing", [Order(b"1"), Order(b"2")])
        assert [record.value for record in failed.value.records] == [b"1", b"2"]
