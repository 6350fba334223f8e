"""Runs the rounds of `tools.bench.groups.members` with confluent-kafka.

Each round measures the start of a member, and then a handover of partitions to another member.
The arguments are: BOOTSTRAP TOPIC GROUP HEARTBEAT_MS ROUNDS PROTOCOL.
"""

from __future__ import annotations

import sys
from typing import Any

from confluent_kafka import Consumer

from tools.bench.groups.threads import PollLoopFunctions, run

bootstrap, topic, group = sys.argv[1:4]
heartbeat_ms, rounds = map(int, sys.argv[4:6])

OF_PROTOCOL: dict[str, dict[str, Any]] = {
    "classic": {
        "heartbeat.interval.ms": heartbeat_ms,
        "session.timeout.ms": 6_000,
        "partition.assignment.strategy": "range",
    },
    "consumer": {"group.protocol": "consumer", "group.remote.assignor": "range"},
}


def make(name: str) -> Any:
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": name,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        **OF_PROTOCOL[sys.argv[6]],
    }
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    return consumer


def poll(consumer: Any) -> list[int]:
    message = consumer.poll(0.05)
    return [] if message is None or message.error() else [message.partition()]


def assigned(consumer: Any) -> list[int]:
    return [place.partition for place in consumer.assignment()]


run(PollLoopFunctions(make, poll, assigned), group, rounds)
