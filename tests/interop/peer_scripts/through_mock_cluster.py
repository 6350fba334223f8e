"""Writes to and reads from each partition of a topic with confluent-kafka: `BOOTSTRAP TOPIC`."""

from __future__ import annotations

import json
import sys
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

bootstrap, topic = sys.argv[1:3]
failed: list[str] = []


def delivered(error: Any, _message: Any) -> None:
    if error is not None:
        failed.append(str(error))


producer = Producer({"bootstrap.servers": bootstrap})
partitions = sorted(producer.list_topics(topic, timeout=20).topics[topic].partitions)
for partition in partitions:
    for n in range(10):
        producer.produce(topic, b"%d" % n, partition=partition, on_delivery=delivered)
left = producer.flush(30)
consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "enable.auto.commit": False})
consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
read = 0
while read < 10 * len(partitions):
    message = consumer.poll(20)
    if message is None or message.error() is not None:
        break
    read += 1
consumer.close()
print(json.dumps({"partitions": len(partitions), "left": left, "failed": failed, "read": read}))
