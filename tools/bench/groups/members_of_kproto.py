"""Members of kproto for `tools.bench.groups.many_members`."""

from __future__ import annotations

import asyncio
from typing import Any

import kproto
from tools.bench.groups.many_members import HEARTBEAT_MS, Group

__all__ = ["KprotoMember", "make"]


class KprotoMember:
    """A member in a task, with a client of its own."""

    def __init__(self, group: Group) -> None:
        self.assigned = 0
        self.records = 0
        self._stop = asyncio.Event()
        self._task = asyncio.create_task(self._run(group))

    async def _run(self, group: Group) -> None:
        settings: dict[str, Any] = {"group_protocol": group.protocol}
        if group.protocol == "classic":
            settings |= {"assignors": [group.assignor], "heartbeat_interval_ms": HEARTBEAT_MS}
        else:
            settings["server_assignor"] = group.assignor
        async with (
            kproto.Client(group.bootstrap) as client,
            client.consumer(
                group.topic,
                group=group.group_id,
                on_assigned=self._on_assigned,
                on_revoked=self._on_revoked,
                **settings,
            ) as consumer,
        ):
            reading = asyncio.create_task(self._read(consumer))
            await self._stop.wait()
            reading.cancel()
            await asyncio.wait([reading])

    async def _read(self, consumer: Any) -> None:
        async for _ in consumer:
            self.records += 1

    def _on_assigned(self, tps: list[Any]) -> None:
        self.assigned += len(tps)

    def _on_revoked(self, tps: list[Any]) -> None:
        self.assigned -= len(tps)

    async def stop(self) -> None:
        self._stop.set()
        await self._task


make = KprotoMember
