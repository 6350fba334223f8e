"""Tests that a failed `send_many` loses no element of its argument."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from kproto_cloudevents import CloudEvent

from kproto import Client, EncodeError, Hooks, ProducerRecord
from kproto.broker import Broker
from kproto.client import ClientSettings
from tests.support.sent_elements import Call, SourceError, calls


async def unsent_elements(call: Call) -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("one")
        argument, rest = call.as_argument()
        unsent: list[Any] = []
        async with client.producer(**call.codecs) as producer:
            try:
                await producer.send_many("one", argument)
            except EncodeError as error:
                unsent = error.unsent
            except SourceError:
                pass
        call.check([each.value for each in broker.records("one")], unsent, rest)


@given(calls())
def test_each_element_is_sent_or_unsent_or_unread(call: Call) -> None:
    asyncio.run(unsent_elements(call))


async def test_encode_error_of_the_iterator_itself_has_no_unsent_element() -> None:
    def values() -> Any:
        yield "first"
        raise EncodeError("no second")

    def identity(value: str, context: object) -> bytes:
        return value.encode()

    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("one")
        for codec in (None, identity):
            async with client.producer(value=codec) as producer:
                with pytest.raises(EncodeError) as raised:
                    await producer.send_many("one", values())
            assert raised.value.unsent == (["first"] if codec is None else [])
        assert len(broker.records("one")) == 1


async def test_unsent_events_are_those_of_the_program() -> None:
    events: list[Any] = [CloudEvent(id=str(at), source="/s", type="t") for at in range(3)]
    async with (
        Broker() as broker,
        Client(broker.bootstrap) as client,
        client.producer() as producer,
    ):
        broker.create_topic("one")
        with pytest.raises(EncodeError) as raised:
            await producer.send_events("one", events, partition=99)
        assert raised.value.unsent == events
        source = iter(events)
        with pytest.raises(EncodeError) as raised:
            await producer.send_events("one", source, partition=99)
        assert [*raised.value.unsent, *source] == events
        with pytest.raises(EncodeError) as raised:
            await producer.send_events("one", [*events, b"no event"])  # type: ignore[list-item]
        assert raised.value.unsent == [*events, b"no event"]
        assert broker.records("one") == []


async def test_unsent_elements_of_a_list_are_those_before_the_hook() -> None:
    class Upper(Hooks):
        def on_send(self, topic: str, record: ProducerRecord) -> ProducerRecord:
            return record._replace(headers=[("h", b"x")])

    elements: list[Any] = [b"a", ProducerRecord(b"b", partition=99), b"c"]
    settings = ClientSettings(hooks=Upper())
    async with Broker() as broker, Client(broker.bootstrap, settings) as client:
        broker.create_topic("one")
        async with client.producer() as producer:
            with pytest.raises(EncodeError, match=r"element 1, .*; no later one is sent") as raised:
                await producer.send_many("one", elements)
        assert raised.value.unsent == elements[1:]
