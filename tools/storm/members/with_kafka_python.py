"""Runs kafka-python as a member of the group."""

from __future__ import annotations

import signal
import sys
from collections.abc import Collection
from pathlib import Path

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from tools.storm.members.lines import MemberLog
from tools.storm.protocols import SESSION_MS

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}

bootstrap, topic, group, assignor, path, *instance = sys.argv[1:]
log = MemberLog(path)
going = True


def stop(*_: object) -> None:
    global going
    going = False


class LoggingListener(ConsumerRebalanceListener):  # type: ignore[misc]  # not installed beside us
    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        log.partitions("revoked", [tp.partition for tp in revoked])

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        log.partitions("assigned", [tp.partition for tp in assigned])

    def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
        log.partitions("lost", [tp.partition for tp in lost])


signal.signal(signal.SIGTERM, stop)
consumer = KafkaConsumer(
    bootstrap_servers=bootstrap,
    client_id=Path(path).stem,
    group_id=group,
    group_instance_id=instance[0] if instance else None,
    partition_assignment_strategy=[ASSIGNORS[assignor]],
    session_timeout_ms=SESSION_MS,
    heartbeat_interval_ms=500,
    auto_offset_reset="earliest",
    auto_commit_interval_ms=1_000,
    max_poll_records=50,
)
log.say("started")
consumer.subscribe([topic], listener=LoggingListener())
while going:
    for records in consumer.poll(100).values():
        for record in records:
            log.read(record.partition, record.offset)
consumer.close()
log.say("left")
