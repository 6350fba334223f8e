"""Members of aiokafka for `tools.bench.groups.many_members`."""

from __future__ import annotations

import asyncio
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from tools.bench.groups.many_members import HEARTBEAT_MS, Group

__all__ = ["AiokafkaMember", "make"]

ASSIGNORS = {"range": RangePartitionAssignor, "sticky": StickyPartitionAssignor}


class AiokafkaMember(ConsumerRebalanceListener):  # type: ignore[misc]
    """A member in a task."""

    def __init__(self, group: Group) -> None:
        self.assigned = 0
        self.records = 0
        self._stop = asyncio.Event()
        self._task = asyncio.create_task(self._run(group))

    async def _run(self, group: Group) -> None:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=group.bootstrap,
            group_id=group.group_id,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=HEARTBEAT_MS,
            session_timeout_ms=45_000,
            partition_assignment_strategy=[ASSIGNORS[group.assignor]],
        )
        consumer.subscribe([group.topic], listener=self)
        await consumer.start()
        reading = asyncio.create_task(self._read(consumer))
        await self._stop.wait()
        reading.cancel()
        await asyncio.wait([reading])
        await consumer.stop()

    async def _read(self, consumer: Any) -> None:
        async for _ in consumer:
            self.records += 1

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.assigned = len(assigned)

    def on_partitions_revoked(self, revoked: Any) -> None:
        self.assigned = 0

    async def stop(self) -> None:
        self._stop.set()
        await self._task


make = AiokafkaMember
