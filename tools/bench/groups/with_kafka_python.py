"""Runs the rounds of `tools.bench.groups.members` with kafka-python.

Each round measures the start of a member, and then a handover of partitions to another member.
The arguments are: BOOTSTRAP TOPIC GROUP HEARTBEAT_MS ROUNDS PROTOCOL.
"""

from __future__ import annotations

import sys
from typing import Any

from kafka import KafkaConsumer
from kafka.coordinator.assignors.range import RangePartitionAssignor

from tools.bench.groups.threads import PollLoopFunctions, run

bootstrap, topic, group = sys.argv[1:4]
heartbeat_ms, rounds = map(int, sys.argv[4:6])


def make(name: str) -> Any:
    return KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=name,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        heartbeat_interval_ms=heartbeat_ms,
        session_timeout_ms=6_000,
        partition_assignment_strategy=[RangePartitionAssignor],
    )


def poll(consumer: Any) -> list[int]:
    # A short timeout that ends during the join leaves kafka-python 3.0 without partitions.
    return [r.partition for records in consumer.poll(1_000).values() for r in records]


def assigned(consumer: Any) -> list[int]:
    return [place.partition for place in consumer.assignment()]


run(PollLoopFunctions(make, poll, assigned), group, rounds)
