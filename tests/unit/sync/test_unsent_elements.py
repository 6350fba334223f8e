"""Tests that a failed `send_many` of the blocking client loses no element of its argument."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from kproto_cloudevents import CloudEvent

import kproto
import kproto.sync
from kproto import ConfigurationError, DeliveryError, EncodeError
from kproto.codecs import StringCodec
from kproto.sync import iterator_sends
from tests.support.embedded import ThreadedBroker, threaded_broker
from tests.support.sent_elements import Call, SourceError, calls


@pytest.fixture
def client(broker: ThreadedBroker) -> Iterator[kproto.sync.Client]:
    with kproto.sync.Client(broker.bootstrap) as opened:
        yield opened


@pytest.fixture
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes a chunk of an iterator have at most seven elements."""
    monkeypatch.setattr(iterator_sends, "CHUNK_RECORDS", 7)


def values(broker: ThreadedBroker) -> list[bytes | None]:
    return [each.value for each in broker.call(lambda it: it.records("one"))]


@pytest.mark.usefixtures("_small_chunks")
def test_each_element_is_sent_or_unsent_or_unread() -> None:
    with threaded_broker() as broker, kproto.sync.Client(broker.bootstrap) as client:
        broker.call(lambda it: it.create_topic("one"))

        @given(calls())
        def check(call: Call) -> None:
            before = len(values(broker))
            argument, rest = call.as_argument()
            unsent: list[Any] = []
            with client.producer(**call.codecs) as producer:
                try:
                    producer.send_many("one", argument)
                except EncodeError as error:
                    unsent = error.unsent
                except SourceError:
                    pass
            call.check(values(broker)[before:], unsent, rest)

        check()


@pytest.mark.usefixtures("_small_chunks")
@pytest.mark.parametrize("codec", [None, StringCodec()])
def test_failed_record_and_invalid_elements_of_one_call_are_all_returned(
    client: kproto.sync.Client, codec: Any
) -> None:
    value: Any = b"x" if codec is None else "x"
    elements: list[Any] = [value, value * 2_000_000, value, 5, value, value]
    source = iter(elements)
    with (
        client.producer(value=codec) as producer,
        pytest.raises(DeliveryError) as raised,
    ):
        producer.send_many("one", source)
    cause = raised.value.__cause__
    assert isinstance(cause, EncodeError)
    assert [len(record.value or b"") for record in raised.value.records] == [2_000_000]
    assert [*cause.unsent, *source] == elements[3:]


def test_events_that_are_not_sent_are_returned(
    client: kproto.sync.Client, broker: ThreadedBroker
) -> None:
    events: list[Any] = [CloudEvent(id=str(at), source="/s", type="t") for at in range(6)]
    for argument in (iter(events), events):
        with client.producer() as producer, pytest.raises(EncodeError) as raised:
            producer.send_events("one", argument, partition=99)
        assert raised.value.unsent == events
    others: list[Any] = [*events, b"no event"]
    with client.producer() as producer, pytest.raises(EncodeError) as raised:
        producer.send_events("one", others)
    assert raised.value.unsent == others
    with client.producer() as producer, pytest.raises(EncodeError) as raised:
        producer.send_events("one", iter(others))
    assert raised.value.unsent == [b"no event"]
    assert len(values(broker)) == len(events)


@pytest.mark.parametrize("topic", ["one", 5])
def test_iterator_is_not_read_if_the_producer_accepts_no_records(
    client: kproto.sync.Client, topic: Any
) -> None:
    source = iter([b"x"])
    producer = client.producer()
    if topic == "one":
        producer.close()
    with pytest.raises(ConfigurationError if topic == "one" else EncodeError):
        producer.send_many(topic, source)
    assert [*source] == [b"x"]
    producer.close()


@pytest.mark.usefixtures("_small_chunks")
@pytest.mark.parametrize("closed", ["producer", "client"])
def test_elements_that_were_read_before_a_close_are_returned(
    broker: ThreadedBroker, closed: str
) -> None:
    client = kproto.sync.Client(broker.bootstrap)
    producer = client.producer()

    def numbers() -> Iterator[bytes]:
        for number in range(20):
            if number == 9:
                (producer if closed == "producer" else client).close()
            yield b"%d" % number

    source = numbers()
    with pytest.raises(DeliveryError) as raised:
        producer.send_many("one", source)
    assert isinstance(raised.value.cause, ConfigurationError)
    assert [record.value for record in raised.value.records] == [
        b"%d" % number for number in range(7, 14)
    ]
    assert [*source] == [b"%d" % number for number in range(14, 20)]
    client.close()
    assert values(broker) == [b"%d" % number for number in range(7)]
