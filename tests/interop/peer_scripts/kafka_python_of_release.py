"""Runs kafka-python with a broker of some release: `BOOTSTRAP TOPIC RELEASE`.

With `-` as RELEASE, kafka-python asks the broker for its versions. The script writes to two
partitions and reads the records.
Prints the release that kafka-python assumes, and the records read.
"""

from __future__ import annotations

import json
import sys

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

bootstrap, topic, release = sys.argv[1:4]
settings: dict[str, object] = {"bootstrap_servers": bootstrap}
if release != "-":
    settings["api_version"] = tuple(int(part) for part in release.split("."))

producer = KafkaProducer(**settings)
consumer = KafkaConsumer(
    group_id=None, enable_auto_commit=False, consumer_timeout_ms=20_000, **settings
)
partitions = [TopicPartition(topic, index) for index in range(2)]
consumer.assign(partitions)
consumer.seek_to_beginning()
values: list[str] = []
for number in range(20):
    producer.send(topic, b"%d" % number, partition=number % 2)
    producer.flush()
    values.append(next(consumer).value.decode())
taken_for = ".".join(map(str, consumer.config["api_version"]))
producer.close()
consumer.close()
print(json.dumps([taken_for, values]))
