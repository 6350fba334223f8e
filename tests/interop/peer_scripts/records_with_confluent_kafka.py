"""Writes or reads records with confluent-kafka: `BOOTSTRAP TOPIC write`, or `... read COUNT`.

Standard input and output have the format of tools/reference/java/Client.java: one line per record
with key, value, and NAME:VALUE for each header. A null key or value is "-"; any other key, value or
header part is "=" followed by its Base64.
"""

from __future__ import annotations

import base64
import sys
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

bootstrap, topic, command = sys.argv[1:4]


def decoded(text: str) -> bytes | None:
    return None if text == "-" else base64.b64decode(text[1:])


def encoded(part: bytes | None) -> str:
    return "-" if part is None else "=" + base64.b64encode(part).decode()


def write() -> None:
    def delivered(error: object, message: Any) -> None:
        assert error is None, error
        print(message.offset())

    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for line in sys.stdin:
        key, value, *pairs = line.split()
        headers = []
        for pair in pairs:
            name, _, held = pair.partition(":")
            headers.append(((decoded(name) or b"").decode(), decoded(held)))
        producer.produce(
            topic,
            decoded(value),
            key=decoded(key),
            partition=0,
            headers=headers,
            on_delivery=delivered,
        )
    assert producer.flush(30) == 0


def read(count: int) -> None:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    for _ in range(count):
        message = consumer.poll(30)
        assert message is not None, "nothing came for 30 s"
        assert message.error() is None, message.error()
        pairs = [
            f"{encoded(name.encode())}:{encoded(value)}" for name, value in message.headers() or ()
        ]
        print(encoded(message.key()), encoded(message.value()), *pairs)
    consumer.close()


if command == "write":
    write()
else:
    read(int(sys.argv[4]))
