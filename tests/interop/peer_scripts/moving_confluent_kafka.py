"""Writes numbers with librdkafka while leaders move: `BOOTSTRAP TOPIC PARTITIONS COUNT`.

Reads the numbers at the same time. Prints the refused records and the records read, as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
import time

from confluent_kafka import Consumer, Producer, TopicPartition

PATIENCE_S = 50


def main() -> None:
    bootstrap, topic, partitions, count = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
    read: list[int] = []
    refused: list[str] = []

    def consume() -> None:
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g"})
        consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
        end = time.monotonic() + PATIENCE_S
        while len(read) < count and time.monotonic() < end:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                read.append(int(message.value()))
        consumer.close()

    def delivered(error: object, message: object) -> None:
        if error is not None:
            refused.append(str(error))

    reading = threading.Thread(target=consume)
    reading.start()
    producer = Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 2}
    )
    for number in range(count):
        producer.produce(
            topic, str(number).encode(), partition=number % partitions, on_delivery=delivered
        )
        producer.poll(0.002)
    producer.flush(PATIENCE_S)
    reading.join()
    print(json.dumps({"refused": refused, "read": read}))


main()
