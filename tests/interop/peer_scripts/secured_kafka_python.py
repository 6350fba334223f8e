"""Runs kafka-python with a secured broker: `SETTINGS` is JSON; prints one line of JSON.

Writes a record to the topic and reads it back. Prints the value read, or the error together with
the log: the error alone does not tell why no broker was reached.
"""

from __future__ import annotations

import io
import json
import logging
import sys

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError
from kafka.net.sasl.oauth import AbstractTokenProvider

logged = io.StringIO()
logging.basicConfig(stream=logged)
wanted = json.loads(sys.argv[1])


class Provider(AbstractTokenProvider):  # type: ignore[misc]  # the peer has no types
    """A token provider that always returns the token of the test."""

    def token(self) -> str:
        return str(wanted["token"])


settings = {"bootstrap_servers": wanted["bootstrap"], "security_protocol": wanted["protocol"]}
settings["bootstrap_timeout_ms"] = wanted["patience_ms"]
if wanted["protocol"].endswith("SSL"):
    settings |= {"ssl_cafile": wanted["ca"], "ssl_certfile": wanted["certificate"]}
if wanted["mechanism"] == "OAUTHBEARER":
    settings |= {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": Provider()}
elif wanted["mechanism"]:
    settings |= {
        "sasl_mechanism": wanted["mechanism"],
        "sasl_plain_username": wanted["user"],
        "sasl_plain_password": wanted["password"],
    }


def write_and_read() -> str:
    producer = KafkaProducer(**settings, max_block_ms=10_000, acks="all")
    try:
        offset = producer.send(wanted["topic"], b"hello", partition=0).get(10).offset
    finally:
        producer.close(1)
    consumer = KafkaConsumer(**settings, group_id=None, enable_auto_commit=False)
    partition = TopicPartition(wanted["topic"], 0)
    consumer.assign([partition])
    consumer.seek(partition, offset)
    value = str(next(consumer).value.decode())
    consumer.close()
    return value


try:
    print(json.dumps({"value": write_and_read()}))
except KafkaError as error:
    print(json.dumps({"error": f"{type(error).__name__} {error} {logged.getvalue()}"}))
