"""The producer and the consumer of confluent-kafka for `tools.bench.clients.memory`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from tools.bench.clients.memory import ROUNDS, SETTLE_S, VALUE, MemoryTask, rss_mb

__all__ = ["WORKS"]


def _produce(task: MemoryTask) -> float:
    tps = task.tps()
    producer = Producer({"bootstrap.servers": task.bootstrap, "enable.idempotence": True})
    failed: list[object] = []

    def on_delivery(error: object, message: object) -> None:
        if error is not None:
            failed.append(error)

    for _ in range(ROUNDS):
        for topic, partition in tps:
            producer.produce(topic, VALUE, partition=partition, on_delivery=on_delivery)
            producer.poll(0)
        producer.flush()
    if failed:
        raise RuntimeError(f"{len(failed)} records failed: {failed[0]}")
    time.sleep(SETTLE_S)
    return rss_mb()


def _consume(task: MemoryTask) -> float:
    tps = task.tps()
    consumer: Any = Consumer(
        {
            "bootstrap.servers": task.bootstrap,
            "group.id": "memory",
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, at, OFFSET_BEGINNING) for topic, at in tps])
    left = set(tps)
    while left:
        for message in consumer.consume(500, 1.0):
            if message.error():
                raise RuntimeError(str(message.error()))
            left.discard((message.topic(), message.partition()))
    ends_at = time.monotonic() + SETTLE_S
    while time.monotonic() < ends_at:
        consumer.consume(500, 0.1)
    steady = rss_mb()
    consumer.close()
    return steady


WORKS: Final[dict[str, Callable[[MemoryTask], float]]] = {
    "produce": _produce,
    "consume": _consume,
}
