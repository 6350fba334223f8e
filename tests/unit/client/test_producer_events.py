"""Sending what says itself which record it is; the client knows nothing of events."""

from __future__ import annotations

from typing import Any

import pytest

from kproto import Client, EncodeError
from tests.unit.client.scripted_broker import ScriptedBroker, Stored
from tests.unit.client.test_producer import QUICK

HEADERS = (("h", b"1"), ("h", None), ("a", b""))


class Order:
    """An event of its own kind, which notes what it was asked."""

    def __init__(self, value: Any = b"v") -> None:
        self.value = value
        self.asked: list[tuple[Any, dict[str, Any]]] = []

    def to_kafka_record(self, mode: Any = None, **options: Any) -> tuple[Any, Any, Any]:
        self.asked.append((mode, options))
        return b"k", self.value, HEADERS


async def test_an_event_goes_out_as_the_record_it_says() -> None:
    async with ScriptedBroker({"t": 2}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        event = Order()
        async with client.producer() as producer:
            ack = await producer.send_event("t", event, timestamp=1234, partition=1)
        assert ack == ("t", 1, 0, 1234)
        ((_, _, batch),) = stored.batches
        (record,) = batch.records()
        assert (record.key, record.value, tuple(record.headers)) == (b"k", b"v", HEADERS)
        assert event.asked == [(None, {})]


async def test_the_mode_and_the_options_are_handed_to_the_event() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        Stored(broker)
        event = Order()
        async with client.producer() as producer:
            await producer.send_event("t", event, mode="structured", key=None, message_format=1)
        assert event.asked == [("structured", {"key": None, "message_format": 1})]


async def test_an_event_that_cannot_be_written_sends_nothing() -> None:
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
