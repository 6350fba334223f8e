"""How many requests may be under way at once, and who waits for one of them to end."""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType

__all__ = ["RequestSlots"]


class RequestSlots:
    """So many may hold one at a time; who waits gets his in the order of asking.

    Like asyncio.Semaphore, but one may also be taken in the turn in which it is asked for.
    """

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: deque[asyncio.Future[None]] = deque()

    def take_at_once(self) -> bool:
        """Take one, if there is one: there is none as long as somebody waits for it."""
        if not self._free:
            return False
        self._free -= 1
        return True

    async def take(self) -> None:
        """Take one, once it is this caller's turn."""
        if self.take_at_once():
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self.give_back()  # it had been handed over already
            raise

    def give_back(self) -> None:
        """Hand it to who has waited longest; nobody who comes in between gets it."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    async def __aenter__(self) -> None:
        await self.take()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.give_back()
