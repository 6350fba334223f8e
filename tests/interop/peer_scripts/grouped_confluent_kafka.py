"""Runs librdkafka as a group member: `BOOTSTRAP TOPIC GROUP`.

Prints the same events as `grouped_aiokafka`.
"""

from __future__ import annotations

import json
import sys
import threading

from confluent_kafka import Consumer, TopicPartition

bootstrap, topic, group = sys.argv[1:4]


def tell(*what: object) -> None:
    print(json.dumps(what), flush=True)


def assigned(consumer: Consumer, partitions: list[TopicPartition]) -> None:
    tell("assigned", sorted(it.partition for it in partitions))


ended = threading.Event()


def wait_for_end() -> None:
    sys.stdin.read()
    ended.set()


consumer = Consumer(
    {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "heartbeat.interval.ms": 200,
        "auto.commit.interval.ms": 200,
        "partition.assignment.strategy": "roundrobin",
    }
)
consumer.subscribe([topic], on_assign=assigned)
threading.Thread(target=wait_for_end, daemon=True).start()
while not ended.is_set():
    message = consumer.poll(0.1)
    if message is not None and message.error() is None:
        tell("read", message.partition(), message.value().decode())
consumer.close()
tell("left")
