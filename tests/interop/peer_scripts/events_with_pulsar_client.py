"""Checks kproto_cloudevents with pulsar-client, as a program.

Without an argument, the program passes each event through the message builder of pulsar-client. If
the argument is the service URL of a broker, the program sends each event through this broker. Fails
if an event has changed afterwards. Prints the number of events.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pulsar
from kproto_cloudevents import JSON_NULL, CloudEvent
from kproto_cloudevents.pulsar import (
    NotAPulsarEvent,
    OpaquePulsarEvent,
    PulsarMessage,
    from_pulsar,
    to_pulsar,
)

REQUIRED = {"specversion": "1.0", "id": "grün", "source": "/s", "type": "t"}
OLD = {
    "cloudEventsVersion": "0.1",
    "eventType": "t",
    "source": "/s",
    "eventID": "1",
    # Sorted by name, as pulsar-client returns properties.
    "extensions": '{"m":{"a":[1.10]},"n":5,"traceparent":"00-1"}',
}
JSON = {"datacontenttype": "application/json"}
EVENTS = [
    CloudEvent(REQUIRED, n=5, ok=True, raw=b"\x00", text='a "quoted" text', data=b"\x00\xff"),
    CloudEvent(REQUIRED, time="2018-04-05T03:56:24.10+02:00", data={"a": 1.5}, **JSON),
    CloudEvent(REQUIRED, data=JSON_NULL, **JSON),
    CloudEvent(REQUIRED, data="text", datacontenttype="text/plain"),
    CloudEvent(REQUIRED, data=b""),
    CloudEvent(REQUIRED),
    CloudEvent({**REQUIRED, "specversion": "0.3"}, schemaurl="/x", data=[1], **JSON),
    CloudEvent(OLD, contentType="text/plain", data="text"),
]
OTHERS: list[tuple[PulsarMessage, type]] = [
    (PulsarMessage({"CE-ContentType": "application/cloudevents+xml"}, b"<x/>"), OpaquePulsarEvent),
    (PulsarMessage({"CE-Specversion": '"9.9"'}, b""), OpaquePulsarEvent),
    (PulsarMessage({"mine": "", "grün": "ü"}, None), NotAPulsarEvent),
]

OPTIONS: list[dict[str, Any]] = [
    {"mode": "binary"},
    {"mode": "structured"},
    {"mode": "structured", "repeat_attributes": True},
]

Through = Callable[[PulsarMessage], PulsarMessage]


def parts_of(message: Any) -> PulsarMessage:
    """Returns a message of pulsar-client as plain data; `data()` returns b"" for null."""
    payload = None if message.has_null_value() else message.data()
    return PulsarMessage(message.properties(), payload)


@contextmanager
def builder() -> Iterator[Through]:
    def through(message: PulsarMessage) -> PulsarMessage:
        building = pulsar._pulsar.MessageBuilder()
        if message.payload is None:
            building.set_null_value()
        else:
            building.content(message.payload)
        for name, text in message.properties.items():
            building.property(name, text)
        return parts_of(building.build())

    yield through


@contextmanager
def broker(url: str) -> Iterator[Through]:
    quiet = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)  # it writes to stdout
    client = pulsar.Client(url, operation_timeout_seconds=30, logger=quiet)
    topic = f"events-{uuid.uuid4().hex}"
    consumer = client.subscribe(topic, "reader")
    producer = client.create_producer(topic)

    def through(message: PulsarMessage) -> PulsarMessage:
        producer.send(message.payload, message.properties)
        received = consumer.receive(timeout_millis=30_000)
        consumer.acknowledge(received)
        return parts_of(received)

    try:
        yield through
    finally:
        client.close()


def check(through: Through) -> int:
    count = 0
    for event in EVENTS:
        for options in OPTIONS:
            sent = to_pulsar(event, properties={"mine": ""}, **options)
            received = through(sent)
            assert received == sent, (received, sent)
            read = from_pulsar(*received)
            assert read == event, (read, event)
            assert to_pulsar(read) == sent
            count += 1
    for message, kind in OTHERS:
        found = from_pulsar(*through(message))
        assert type(found) is kind
        assert to_pulsar(found) == message
        count += 1
    return count


if __name__ == "__main__":
    with broker(sys.argv[1]) if len(sys.argv) > 1 else builder() as through:
        print(check(through))
