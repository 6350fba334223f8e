"""Members of confluent-kafka for `tools.bench.groups.many_members`."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from confluent_kafka import Consumer

from tools.bench.groups.many_members import HEARTBEAT_MS, Group

__all__ = ["ConfluentKafkaMember", "make"]


class ConfluentKafkaMember:
    """A member that a thread polls."""

    def __init__(self, group: Group) -> None:
        self.assigned = 0
        self.records = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(group,), daemon=True)
        self._thread.start()

    def _run(self, group: Group) -> None:
        settings: dict[str, Any] = {"group.protocol": group.protocol}
        if group.protocol == "classic":
            settings["partition.assignment.strategy"] = group.assignor
            settings["heartbeat.interval.ms"] = HEARTBEAT_MS
            settings["session.timeout.ms"] = 45_000
        else:
            settings["group.remote.assignor"] = group.assignor
        is_cooperative = group.assignor == "cooperative-sticky" or group.protocol == "consumer"
        consumer = Consumer(
            {
                "bootstrap.servers": group.bootstrap,
                "group.id": group.group_id,
                "auto.offset.reset": "earliest",
                **settings,
            }
        )

        def on_assigned(consumer: Any, partitions: list[Any]) -> None:
            if is_cooperative:
                consumer.incremental_assign(partitions)
            else:
                consumer.assign(partitions)
            self.assigned += len(partitions)

        def on_revoked(consumer: Any, partitions: list[Any]) -> None:
            if is_cooperative:
                consumer.incremental_unassign(partitions)
            else:
                consumer.unassign()
            self.assigned -= len(partitions)

        consumer.subscribe([group.topic], on_assign=on_assigned, on_revoke=on_revoked)
        while not self._stop.is_set():
            message = consumer.poll(1.0)
            if message is not None and not message.error():
                self.records += 1
        consumer.close()

    async def stop(self) -> None:
        self._stop.set()
        await asyncio.to_thread(self._thread.join)


make = ConfluentKafkaMember
