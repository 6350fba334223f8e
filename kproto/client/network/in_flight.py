"""Watches the deadlines of the requests in flight on one connection, with one timer for all.

`kproto.protocol` stores the requests in the order of their writes. This module uses no socket.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeAlias

from ...clock import Clock, Timer
from ...messages.base import Message, Response
from ...protocol.received import PendingRequest, PendingRequests
from ...wire.errors import KprotoError

__all__ = ["NEVER", "InFlightRequest", "OnOutcome", "RequestDeadlines"]

#: A function that gets the response to a request, or the error of the request.
OnOutcome: TypeAlias = Callable[[Response | KprotoError], None]

NEVER: Final = float("inf")


class InFlightRequest:
    """A request that waits for its response until `ends_at`, in seconds of the clock.

    `limit_ms` is its timeout, for the text of the error. `holds_slot` is True if the request
    occupies a slot, which is released before `callback` is called. `is_written` is True once the
    socket has the bytes of the request. `was_idle` is True if the connection was idle before the
    write: the broker may have been closing it.
    """

    __slots__ = (
        "callback",
        "ends_at",
        "holds_slot",
        "is_written",
        "limit_ms",
        "request",
        "version",
        "was_idle",
    )

    def __init__(
        self,
        request: type[Message],
        version: int,
        callback: OnOutcome,
        ends_at: float = NEVER,
        limit_ms: int = 0,
        holds_slot: bool = False,
    ) -> None:
        self.request = request
        self.version = version
        self.callback = callback
        self.ends_at = ends_at
        self.limit_ms = limit_ms
        self.holds_slot = holds_slot
        self.is_written = True
        self.was_idle = False


class RequestDeadlines:
    """Watches the deadlines of the requests in flight on one connection.

    `pending` has the requests, each with its `InFlightRequest` as context. After its deadline a
    request is removed, and `on_timeout` is called with it.
    """

    def __init__(
        self,
        clock: Clock,
        pending: PendingRequests,
        on_timeout: Callable[[InFlightRequest], None],
    ) -> None:
        self._clock = clock
        self._pending = pending
        self._on_timeout = on_timeout
        self._timer: Timer | None = None
        self._timer_at = NEVER
        self._loop = asyncio.get_running_loop()

    def watch(self, request: InFlightRequest) -> None:
        """Watches the deadline of a pending request."""
        if request.ends_at < self._timer_at:
            self._set_timer(request.ends_at)

    @property
    def has_requests(self) -> bool:
        """True if a request is in flight.

        Requests that were sent on an idle connection do not count.
        """
        return any(not each.context.was_idle for each in self._pending)

    @property
    def latest_deadline(self) -> float:
        """The latest deadline of the requests in flight, in seconds of the clock.

        This is the present time if no request has a deadline.
        """
        ends = [each.context.ends_at for each in self._pending if each.context.ends_at != NEVER]
        return max(ends, default=self._clock.monotonic())

    def stop(self) -> None:
        """Stops the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self, deadline: float) -> None:
        """Sets the timer to `deadline`, in seconds of the clock."""
        self.stop()
        self._timer_at = deadline
        seconds = max(0.0, deadline - self._clock.monotonic())
        self._timer = self._clock.call_later(seconds, self._on_timer)

    def _on_timer(self) -> None:
        """Fails the request with the first deadline, or sets the timer if no deadline is over."""
        self.stop()
        self._timer_at = NEVER
        first = min(self._pending, key=lambda each: each.context.ends_at, default=None)
        if first is None or first.context.ends_at == NEVER:
            return
        if first.context.ends_at > self._clock.monotonic():
            self._set_timer(first.context.ends_at)
            return
        # The event loop may have been blocked: bytes that have arrived are read first.
        self._loop.call_soon(self._expire, first)

    def _expire(self, late: PendingRequest) -> None:
        """Fails a request with a timeout.

        If the response has arrived, or the caller has stopped waiting, sets the timer for the next
        deadline instead.
        """
        request: InFlightRequest = late.context
        if request.ends_at == NEVER or late not in self._pending:
            self._on_timer()
            return
        self._pending.remove(late)
        self._on_timeout(request)
