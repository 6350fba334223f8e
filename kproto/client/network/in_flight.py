"""What was asked on a connection and is not answered yet, in its order, and the time of each.

Knows no socket. One timer watches over all of them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias

from ...clock import Clock, Timer
from ...messages.base import Message, Response
from ...wire.errors import KprotoError

__all__ = ["NEVER", "InFlightRequest", "InFlightRequests", "Tell"]

#: Is told what has become of a request.
Tell: TypeAlias = Callable[[Response | KprotoError], None]

NEVER: Final = float("inf")


class InFlightRequest:
    """A request that waits for its response until `ends_at`, in seconds; then it had `limit_ms`.

    `holds_slot` until it is told, where nobody waits who would give the slot back. `is_written`
    once its bytes have been given to the socket; `woke` where nothing had passed for a while then,
    so that the broker may have been closing the connection.
    """

    __slots__ = (
        "ends_at",
        "holds_slot",
        "is_written",
        "limit_ms",
        "request",
        "tell",
        "version",
        "woke",
    )

    def __init__(
        self,
        request: type[Message],
        version: int,
        tell: Tell,
        ends_at: float = NEVER,
        limit_ms: int = 0,
        holds_slot: bool = False,
    ) -> None:
        self.request = request
        self.version = version
        self.tell = tell
        self.ends_at = ends_at
        self.limit_ms = limit_ms
        self.holds_slot = holds_slot
        self.is_written = True
        self.woke = False


class InFlightRequests:
    """Those of one connection, oldest first. `give_up` is told of one that has had its time.

    It is no longer among them then.
    """

    def __init__(self, clock: Clock, give_up: Callable[[InFlightRequest], None]) -> None:
        self._clock = clock
        self._give_up = give_up
        self._waiting: deque[InFlightRequest] = deque()
        self._timer: Timer | None = None
        self._looks_at = NEVER
        self._loop = asyncio.get_running_loop()

    def __len__(self) -> int:
        return len(self._waiting)

    def expect(self, exchange: InFlightRequest) -> None:
        """Wait for one more answer, behind the others."""
        self._waiting.append(exchange)
        if exchange.ends_at < self._looks_at:
            self._look_at(exchange.ends_at)

    def take(self) -> InFlightRequest | None:
        """The oldest, which is answered now."""
        return self._waiting.popleft() if self._waiting else None

    def put_back(self, exchange: InFlightRequest | None) -> None:
        """Let the one that was taken be the oldest again: it was not answered."""
        if exchange is not None:
            self._waiting.appendleft(exchange)

    @property
    def hold_work(self) -> bool:
        """True where any of them is more than what ended a silence."""
        return any(not exchange.woke for exchange in self._waiting)

    @property
    def last_end(self) -> float:
        """When the last of them must be answered, in seconds; now where none has a time."""
        ends = [each.ends_at for each in self._waiting if each.ends_at != NEVER]
        return max(ends, default=self._clock.monotonic())

    def stop(self) -> None:
        """Keep no time any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_at(self, moment: float) -> None:
        """Look at `moment` whether a request has had its time."""
        self.stop()
        self._looks_at = moment
        seconds = max(0.0, moment - self._clock.monotonic())
        self._timer = self._clock.call_later(seconds, self._look)

    def _look(self) -> None:
        """Give up the request that has had its time, else look again later."""
        self.stop()
        self._looks_at = NEVER
        first = min(self._waiting, key=lambda exchange: exchange.ends_at, default=None)
        if first is None or first.ends_at == NEVER:
            return
        if first.ends_at > self._clock.monotonic():
            self._look_at(first.ends_at)
            return
        # The loop may have stood still: what has come meanwhile is read before it is given up.
        self._loop.call_soon(self._end, first)

    def _end(self, late: InFlightRequest) -> None:
        """Give up a request unless its answer has come."""
        if late not in self._waiting or late.ends_at == NEVER:
            self._look()
            return
        self._waiting.remove(late)
        self._give_up(late)
