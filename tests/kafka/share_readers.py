"""Reads a share group during the disturbances of a test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import kproto
from tests.support.share_groups import ShareQueue

__all__ = ["ShareReader"]


class ShareReader:
    """Accepts all records of a queue.

    `confirmed` has the offsets whose acceptance is confirmed, `again` the offsets that were
    delivered after that, and `counts` the last delivery count by offset.
    """

    def __init__(self, queue: ShareQueue) -> None:
        self._queue = queue
        self.confirmed: set[int] = set()
        self.again: list[int] = []
        self.counts: dict[int, int] = {}

    def has_confirmed(self, count: int) -> bool:
        """Returns True if the acceptances of `count` records are confirmed."""
        return len(self.confirmed) == count

    def _on_acknowledged(self, result: kproto.AcknowledgeResult) -> None:
        if result.error is None:
            self.confirmed.update(offset for offsets in result.accepted for offset in offsets)

    async def _read(self) -> None:
        async with self._queue.consumer(
            max_poll_records=10, on_acknowledged=self._on_acknowledged
        ) as consumer:
            async for record in consumer:
                if record.offset in self.confirmed:
                    self.again.append(record.offset)
                self.counts[record.offset] = record.delivery_count
                await consumer.accept(record)
                await asyncio.sleep(0.001)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[asyncio.Task[None]]:
        """Reads during the block."""
        reading = asyncio.create_task(self._read())
        try:
            yield reading
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
