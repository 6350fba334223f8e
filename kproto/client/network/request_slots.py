"""Limits the requests in flight, first come, first served."""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType

__all__ = ["RequestSlots"]


class RequestSlots:
    """A semaphore that serves waiters in order; a free slot can be taken without waiting."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: deque[asyncio.Future[None]] = deque()

    def try_acquire(self) -> bool:
        """Takes a free slot; returns False if no slot is free, or if callers wait for a slot."""
        if not self._free:
            return False
        self._free -= 1
        return True

    async def acquire(self) -> None:
        """Takes a slot; callers that already wait get their slots first."""
        if self.try_acquire():
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if not waiter.cancelled():
                self.release()  # the slot was passed on already
            raise

    def release(self) -> None:
        """Passes the slot to the caller that has waited longest; frees the slot if none waits."""
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._free += 1

    async def __aenter__(self) -> None:
        await self.acquire()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()
