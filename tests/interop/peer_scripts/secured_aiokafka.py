"""Runs aiokafka with a secured broker: `SETTINGS` is JSON; prints one line of JSON.

Writes a record to the topic and reads it back. Prints the value read, or the error together with
the log: the error alone does not tell why no broker was reached.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
import ssl
import sys
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaError

logged = io.StringIO()
logging.basicConfig(stream=logged)
wanted = json.loads(sys.argv[1])


class Provider(AbstractTokenProvider):  # type: ignore[misc]  # the peer has no types
    """A token provider that always returns the token of the test."""

    async def token(self) -> str:
        return str(wanted["token"])


def settings() -> dict[str, Any]:
    made = {"bootstrap_servers": wanted["bootstrap"], "security_protocol": wanted["protocol"]}
    if wanted["protocol"].endswith("SSL"):
        context = ssl.create_default_context(cafile=wanted["ca"])
        context.load_cert_chain(wanted["certificate"])
        made |= {"ssl_context": context}
    if wanted["mechanism"] == "OAUTHBEARER":
        made |= {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": Provider()}
    elif wanted["mechanism"]:
        made |= {
            "sasl_mechanism": wanted["mechanism"],
            "sasl_plain_username": wanted["user"],
            "sasl_plain_password": wanted["password"],
        }
    return made


async def write_and_read() -> str:
    producer = AIOKafkaProducer(**settings(), acks="all")
    try:
        await producer.start()
        offset = (await producer.send_and_wait(wanted["topic"], b"hello", partition=0)).offset
    finally:
        await producer.stop()
    async with AIOKafkaConsumer(**settings(), enable_auto_commit=False) as consumer:
        partition = TopicPartition(wanted["topic"], 0)
        consumer.assign([partition])
        consumer.seek(partition, offset)
        return str((await consumer.getone()).value.decode())


try:
    print(json.dumps({"value": asyncio.run(write_and_read())}))
except KafkaError as error:
    print(json.dumps({"error": f"{type(error).__name__} {error} {logged.getvalue()}"}))
