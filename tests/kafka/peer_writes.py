"""Writes records with another client: `PEER BOOTSTRAP TOPIC CODEC`.

This program runs in the environment of the other clients. It writes a hundred records to partition
0: key `key`, value `value N` repeated ten times, header h: N.
"""

from __future__ import annotations

import asyncio
import sys

peer, bootstrap, topic, codec = sys.argv[1:]
RECORDS = [(b"value %d " % n * 10, [("h", b"%d" % n)]) for n in range(100)]


def with_kafka_python() -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        compression_type=None if codec == "none" else codec,
        linger_ms=200,
    )
    for value, headers in RECORDS:
        producer.send(topic, value, key=b"key", headers=headers, partition=0)
    producer.flush()
    producer.close()


def with_confluent_kafka() -> None:
    from confluent_kafka import Producer

    producer = Producer(
        {"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 200}
    )
    for value, headers in RECORDS:
        producer.produce(topic, value, key=b"key", headers=headers, partition=0)
    producer.flush()


async def with_aiokafka() -> None:
    from aiokafka import AIOKafkaProducer

    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap,
        compression_type=None if codec == "none" else codec,
        linger_ms=200,
    )
    await producer.start()
    sent = [
        await producer.send(topic, value, key=b"key", headers=headers, partition=0)
        for value, headers in RECORDS
    ]
    for future in sent:
        await future
    await producer.stop()


if peer == "kafka_python":
    with_kafka_python()
elif peer == "confluent_kafka":
    with_confluent_kafka()
else:
    asyncio.run(with_aiokafka())
