"""Runs librdkafka as a member of a KIP-848 group: `BOOTSTRAP TOPIC GROUP`.

Prints the same events as the script `grouped_aiokafka`. A TOPIC that begins with `^` is a regular
expression. In KIP-848 groups, librdkafka passes only the added or the revoked partitions to a
rebalance callback, so the script tracks the current partitions itself.
"""

from __future__ import annotations

import json
import sys
import threading

from confluent_kafka import Consumer, TopicPartition

bootstrap, topic, group = sys.argv[1:4]
held: set[int] = set()


def tell(*what: object) -> None:
    print(json.dumps(what), flush=True)


def assigned(consumer: Consumer, partitions: list[TopicPartition]) -> None:
    held.update(it.partition for it in partitions)
    tell("assigned", sorted(held))


def revoked(consumer: Consumer, partitions: list[TopicPartition]) -> None:
    held.difference_update(it.partition for it in partitions)
    tell("assigned", sorted(held))


ended = threading.Event()


def wait_for_end() -> None:
    sys.stdin.read()
    ended.set()


consumer = Consumer(
    {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "group.protocol": "consumer",
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": 200,
    }
)
consumer.subscribe([topic], on_assign=assigned, on_revoke=revoked, on_lost=revoked)
threading.Thread(target=wait_for_end, daemon=True).start()
while not ended.is_set():
    message = consumer.poll(0.1)
    if message is not None and message.error() is None:
        tell("read", message.partition(), message.value().decode())
consumer.close()
tell("left")
