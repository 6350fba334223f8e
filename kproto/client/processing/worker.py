"""`PoolWorker`: a task of the processing pool. Holds plain data and the asyncio task."""

from __future__ import annotations

import asyncio
from typing import Final

from ...records import Record
from .ordered_shard import OrderedShard
from .shard import Shard

__all__ = ["PoolWorker"]

_LONG_AGO: Final = float("-inf")


class PoolWorker:
    """A task that calls the handler with records of `shard`.

    `marker` identifies the record that the handler processes. `started_at` is the time of the first
    call of `ProcessingPool.oldest_started_at` during this processing. That method sets `marker` and
    `started_at`. If `stops_early` is True, the worker ends its batch after this record.
    """

    __slots__ = (
        "in_flight",
        "is_cancelled",
        "marker",
        "record",
        "shard",
        "started_at",
        "stops_early",
        "task",
    )

    def __init__(self) -> None:
        self.task: asyncio.Task[None]
        self.shard: Shard | None = None
        self.record: Record | None = None
        self.in_flight = 1  # records, while it has a shard
        self.is_cancelled = False
        self.stops_early = False
        self.marker: object = None
        self.started_at = _LONG_AGO

    def cancel(self) -> None:
        """Cancels the task, and the handler in it."""
        if not self.is_cancelled:
            self.is_cancelled = self.stops_early = True
            self.task.cancel()

    def stop_early(self) -> None:
        """Ends the batch after the record that the handler processes now."""
        self.stops_early = True
        if isinstance(self.shard, OrderedShard):
            self.shard.stop_early()
