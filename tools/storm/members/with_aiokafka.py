"""Runs aiokafka as a member of the group."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Collection
from pathlib import Path

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from tools.storm.members.lines import MemberLog
from tools.storm.protocols import SESSION_MS

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


class LoggingListener(ConsumerRebalanceListener):  # type: ignore[misc]  # not installed beside us
    def __init__(self, log: MemberLog) -> None:
        self._log = log

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        self._log.partitions("revoked", [tp.partition for tp in revoked])

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        self._log.partitions("assigned", [tp.partition for tp in assigned])


async def main() -> None:
    bootstrap, topic, group, assignor, path, *instance = sys.argv[1:]
    log = MemberLog(path)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        client_id=Path(path).stem,
        group_id=group,
        group_instance_id=instance[0] if instance else None,
        partition_assignment_strategy=[ASSIGNORS[assignor]],
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=500,
        auto_offset_reset="earliest",
        auto_commit_interval_ms=1_000,
    )
    log.say("started")
    consumer.subscribe([topic], listener=LoggingListener(log))
    await consumer.start()
    while not stop.is_set():
        batches = await consumer.getmany(timeout_ms=100, max_records=50)
        for records in batches.values():
            for record in records:
                log.read(record.partition, record.offset)
        await asyncio.sleep(0.01)
    # aiokafka calls no listener for the partitions that it revokes in `stop`.
    log.partitions("revoked", [tp.partition for tp in consumer.assignment()])
    await consumer.stop()
    log.say("left")


asyncio.run(main())
