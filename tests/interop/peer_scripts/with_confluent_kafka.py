"""Runs confluent-kafka with a broker: `BOOTSTRAP TOPIC COMMAND`; prints one line of JSON.

`write` creates the topic with two partitions, produces to partition 0 without and then with
idempotence, and prints the offsets. `read COUNT` reads partition 0, and prints the records.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

bootstrap, topic, command = sys.argv[1:4]


def write() -> list[int]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(topic, 2, 1)]).values():
        future.result(10)
    offsets: list[int] = []

    def delivered(error: object, message: Any) -> None:
        assert error is None, error
        offsets.append(message.offset())

    for idempotent in (False, True):
        producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": idempotent})
        for n in range(100):
            producer.produce(
                topic,
                b"value %d" % n,
                key=b"key",
                partition=0,
                headers=[("h", b"%d" % n)],
                on_delivery=delivered,
            )
        assert producer.flush(10) == 0
    return offsets


def read(count: int) -> list[list[object]]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    assert consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10) == (0, count)
    records: list[list[object]] = []
    while len(records) < count:
        message = consumer.poll(10)
        assert message is not None, "nothing came for 10 s"
        assert message.error() is None, message.error()
        headers = [[name, value.decode()] for name, value in message.headers() or ()]
        key, value = message.key().decode(), message.value().decode()
        records.append([message.offset(), key, value, headers])
    consumer.close()
    return records


print(json.dumps(write() if command == "write" else read(int(sys.argv[4]))))
