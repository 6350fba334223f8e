"""One of those that handle, and what it has in hand. Plain data, but for its task."""

from __future__ import annotations

import asyncio
from typing import Final

from ...records import Record
from .shards import OrderedShard, Shard

__all__ = ["Worker"]

_LONG_AGO: Final = float("-inf")


class Worker:
    """One that handles: `lane` while it does. `sign` is what it had when somebody looked last.

    One that `is_cut` takes no more of its portion.
    """

    __slots__ = ("is_cancelled", "is_cut", "lane", "record", "sign", "since", "task")

    def __init__(self) -> None:
        self.task: asyncio.Task[None]
        self.lane: Shard | None = None
        self.record: Record | None = None
        self.is_cancelled = False
        self.is_cut = False
        self.sign: object = None
        self.since = _LONG_AGO

    def cancel(self) -> None:
        """Have it end, and what it has in hand."""
        if not self.is_cancelled:
            self.is_cancelled = self.is_cut = True
            self.task.cancel()

    def cut(self) -> None:
        """Have it come back when what it has in hand is handled."""
        self.is_cut = True
        if isinstance(self.lane, OrderedShard):
            self.lane.cut()
