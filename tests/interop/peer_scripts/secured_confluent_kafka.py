"""Runs confluent-kafka with a secured broker: `SETTINGS` is JSON; prints one line of JSON.

Writes a record to the topic and reads it back. Prints the value read, or the first error.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

wanted = json.loads(sys.argv[1])
PATIENCE_S = 20


def token(_: str) -> tuple[str, float]:
    return wanted["token"], time.time() + 60


errors: list[KafkaError] = []
settings: dict[str, Any] = {
    "bootstrap.servers": wanted["bootstrap"],
    "security.protocol": wanted["protocol"],
    "error_cb": errors.append,
    "log_level": 0,
}
if wanted["protocol"].endswith("SSL"):
    settings |= {
        "ssl.ca.location": wanted["ca"],
        "ssl.certificate.location": wanted["certificate"],
        "ssl.key.location": wanted["certificate"],
    }
if wanted["mechanism"] == "OAUTHBEARER":
    settings |= {"sasl.mechanism": "OAUTHBEARER", "oauth_cb": token}
elif wanted["mechanism"]:
    settings |= {
        "sasl.mechanism": wanted["mechanism"],
        "sasl.username": wanted["user"],
        "sasl.password": wanted["password"],
    }


def check() -> None:
    if errors:
        raise KafkaException(errors[0])


def write_and_read() -> str:
    written: list[Any] = []
    producer = Producer(settings)
    producer.produce(
        wanted["topic"],
        b"hello",
        partition=0,
        on_delivery=lambda _, message: written.append(message),
    )
    end = time.monotonic() + PATIENCE_S
    while not written and time.monotonic() < end:
        producer.poll(0.05)
        check()
    (message,) = written
    if message.error():
        raise KafkaException(message.error())
    consumer = Consumer({**settings, "group.id": "none", "enable.auto.commit": False})
    consumer.assign([TopicPartition(wanted["topic"], 0, message.offset())])
    while (found := consumer.poll(0.05)) is None and time.monotonic() < end:
        check()
    value: bytes = found.value()
    consumer.close()
    return value.decode()


try:
    print(json.dumps({"value": write_and_read()}))
except KafkaException as error:
    print(json.dumps({"error": f"{error.args[0].name()} {error.args[0].str()}"}))
