"""Runs kafka-python with a broker: `BOOTSTRAP TOPIC COMMAND`; prints one line of JSON.

`write` creates the topic with two partitions, produces to partition 0 without and then with
idempotence, and prints the offsets. `read COUNT` reads partition 0, and prints the records.
"""

from __future__ import annotations

import json
import sys

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

bootstrap, topic, command = sys.argv[1:4]


def write() -> list[int]:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic(topic, 2, 1)])
    admin.close()
    offsets: list[int] = []
    for idempotent in (False, True):
        producer = KafkaProducer(
            bootstrap_servers=bootstrap, acks="all", enable_idempotence=idempotent
        )
        sent = [
            producer.send(
                topic, b"value %d" % n, key=b"key", partition=0, headers=[("h", b"%d" % n)]
            )
            for n in range(100)
        ]
        producer.flush()
        offsets += [future.get(10).offset for future in sent]
        producer.close()
    return offsets


def read(count: int) -> list[list[object]]:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False)
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    assert consumer.beginning_offsets([partition]) == {partition: 0}
    assert consumer.end_offsets([partition]) == {partition: count}
    records: list[list[object]] = []
    for record in consumer:
        headers = [[name, value.decode()] for name, value in record.headers]
        records.append([record.offset, record.key.decode(), record.value.decode(), headers])
        if len(records) == count:
            break
    consumer.close()
    return records


print(json.dumps(write() if command == "write" else read(int(sys.argv[4]))))
