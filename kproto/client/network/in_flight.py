"""Tracks the requests in flight on one connection, in their order, and the deadline of each.

Knows no socket. One timer watches all of them.
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

#: Called with the outcome of a request.
Tell: TypeAlias = Callable[[Response | KprotoError], None]

NEVER: Final = float("inf")


class InFlightRequest:
    """A request that waits for its response until `ends_at`, in seconds; it had `limit_ms`.

    `holds_slot` if the slot of the request is given back when `tell` is called. `is_written` once
    the socket has its bytes; `woke` if the connection was idle before, so that the broker may have
    been closing it.
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
    """The requests in flight on one connection, oldest first.

    `give_up` is called with a request whose deadline has passed, after its removal.
    """

    def __init__(self, clock: Clock, give_up: Callable[[InFlightRequest], None]) -> None:
        self._clock = clock
        self._give_up = give_up
        self._waiting: deque[InFlightRequest] = deque()
        self._timer: Timer | None = None
        self._timer_at = NEVER
        self._loop = asyncio.get_running_loop()

    def __len__(self) -> int:
        return len(self._waiting)

    def expect(self, exchange: InFlightRequest) -> None:
        """Adds a request, behind the others."""
        self._waiting.append(exchange)
        if exchange.ends_at < self._timer_at:
            self._set_timer(exchange.ends_at)

    def take(self) -> InFlightRequest | None:
        """Removes and returns the oldest, whose response has arrived."""
        return self._waiting.popleft() if self._waiting else None

    def restore(self, exchange: InFlightRequest | None) -> None:
        """Adds a request that `take` returned in front again: its response was not read."""
        if exchange is not None:
            self._waiting.appendleft(exchange)

    @property
    def has_requests(self) -> bool:
        """True if any request is more than the first after an idle time."""
        return any(not exchange.woke for exchange in self._waiting)

    @property
    def latest_deadline(self) -> float:
        """Returns the latest deadline, in seconds; now if no request has a deadline."""
        ends = [each.ends_at for each in self._waiting if each.ends_at != NEVER]
        return max(ends, default=self._clock.monotonic())

    def stop(self) -> None:
        """Stops the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self, moment: float) -> None:
        """Sets the timer to `moment`, in seconds of the clock."""
        self.stop()
        self._timer_at = moment
        seconds = max(0.0, moment - self._clock.monotonic())
        self._timer = self._clock.call_later(seconds, self._look)

    def _look(self) -> None:
        """Gives up the request whose deadline has passed, else sets the timer again."""
        self.stop()
        self._timer_at = NEVER
        first = min(self._waiting, key=lambda exchange: exchange.ends_at, default=None)
        if first is None or first.ends_at == NEVER:
            return
        if first.ends_at > self._clock.monotonic():
            self._set_timer(first.ends_at)
            return
        # The loop may have been blocked: bytes that have arrived are read before the request fails.
        self._loop.call_soon(self._end, first)

    def _end(self, late: InFlightRequest) -> None:
        """Gives up a request unless its response arrived meanwhile."""
        if late not in self._waiting or late.ends_at == NEVER:
            self._look()
            return
        self._waiting.remove(late)
        self._give_up(late)
