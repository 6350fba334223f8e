"""Tests by the pytest plugin with other clients, to be run by pytest in the peers' environment.

test_pytest_plugin.py runs this file. The variables JAVA and JAVA_CLASSPATH name a Java with Kafka's
tools; without JAVA the test of Java is skipped.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable

import pytest

from kproto.broker import ErrorCode, RunningBroker
from kproto.messages import MetadataRequest, ProduceRequest

pytestmark = pytest.mark.kafka(topics={"orders": 1})

VALUES = [b"one", b"two", b"three"]


def send_with_confluent_kafka(bootstrap: str) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap})
    for value in VALUES:
        producer.produce("orders", value)
    assert producer.flush(30) == 0


def send_with_kafka_python(bootstrap: str) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for value in VALUES:
        producer.send("orders", value)
    producer.flush(30)
    producer.close()


def send_with_aiokafka(bootstrap: str) -> None:
    from aiokafka import AIOKafkaProducer

    async def send() -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            for value in VALUES:
                await producer.send_and_wait("orders", value)

    asyncio.run(send())


def send_with_java(bootstrap: str) -> None:
    if "JAVA" not in os.environ:
        pytest.skip("the variable JAVA names no Java")
    command = [os.environ["JAVA"], "-cp", os.environ["JAVA_CLASSPATH"]]
    tool = ["org.apache.kafka.tools.ConsoleProducer", "--bootstrap-server", bootstrap]
    subprocess.run(
        [*command, *tool, "--topic", "orders"],
        input=b"\n".join(VALUES) + b"\n",
        capture_output=True,
        timeout=120,
        check=True,
    )


SENDERS = [
    send_with_aiokafka,
    send_with_confluent_kafka,
    send_with_java,
    send_with_kafka_python,
]


@pytest.mark.parametrize("send", SENDERS)
def test_client_sends_records_although_the_leader_moves(
    kafka_broker: RunningBroker, send: Callable[[str], None]
) -> None:
    kafka_broker.control(ErrorCode("NOT_LEADER_OR_FOLLOWER"), request=ProduceRequest)
    send(kafka_broker.bootstrap)
    assert [record.value for record in kafka_broker.records("orders")] == VALUES
    assert len(kafka_broker.requests(ProduceRequest)) > 1
    assert kafka_broker.requests(MetadataRequest)


def read_with_confluent_kafka(bootstrap: str, group: str) -> list[bytes]:
    from confluent_kafka import Consumer

    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    values = [message.value() for message in consumer.consume(len(VALUES), timeout=60)]
    consumer.close()
    return values


def read_with_kafka_python(bootstrap: str, group: str) -> list[bytes]:
    from kafka import KafkaConsumer

    consumer = KafkaConsumer(
        "orders", bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest"
    )
    values = [next(consumer).value for _ in VALUES]
    consumer.close()
    return values


def read_with_aiokafka(bootstrap: str, group: str) -> list[bytes]:
    from aiokafka import AIOKafkaConsumer

    async def read() -> list[bytes]:
        consumer = AIOKafkaConsumer(
            "orders", bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest"
        )
        async with consumer:
            return [(await consumer.getone()).value for _ in VALUES]

    return asyncio.run(read())


READERS = [read_with_aiokafka, read_with_confluent_kafka, read_with_kafka_python]


@pytest.mark.parametrize("read", READERS)
def test_group_reads_records_and_commits(
    kafka_broker: RunningBroker, read: Callable[[str, str], list[bytes]]
) -> None:
    for value in VALUES:
        kafka_broker.produce("orders", value)
    assert read(kafka_broker.bootstrap, "billing") == VALUES
    group = kafka_broker.wait_for_group("billing", lag=0, members=0)
    assert group.offsets == {("orders", 0): len(VALUES)}
