"""Queues the bytes that one connection writes.

All frames of one turn of the event loop are written together. Nothing is written while the broker
does not read or throttles this client: callers wait in one queue. Knows nothing of the meaning of
the bytes, and of a request only whether the socket has its bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from ...clock import Clock
from .in_flight import InFlightRequest
from .request_slots import RequestSlots
from .throttle import Throttle

__all__ = ["WriteQueue"]

#: Turns of the loop in which it notices that the broker closed: one polls the socket, one calls
#: `connection_lost`, one runs what that scheduled.
TURNS: Final = 3

#: A frame of at least so many bytes is written alone: a copy costs more than a call.
_LARGE_BYTES: Final = 65_536


class WriteQueue:
    """The outgoing bytes of a connection, from `attach` to `end`.

    `used_at` is when bytes were written last, in seconds of the clock. `throttle` is the throttle
    that the broker asked for.
    """

    def __init__(self, clock: Clock) -> None:
        self.used_at = clock.monotonic()
        self.throttle = Throttle(clock)
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._outgoing: list[bytes] = []
        self._unwritten: list[InFlightRequest] = []
        self._flush_is_due = False
        self._has_ended = False
        self._is_paused = False
        self._writable = asyncio.Event()
        self._writable.set()
        self._queued_calls = 0  # calls that wait until it is writable
        self._call_queue = RequestSlots(1)  # in their order

    # The socket

    def attach(self, transport: asyncio.Transport) -> None:
        """Writes to `transport` from now on, unless the queue has ended."""
        self._transport = transport
        if self._has_ended:
            transport.abort()

    def detach(self) -> None:
        """Notes that the socket is closed."""
        self._transport = None

    def pause(self) -> None:
        """Stops writing: the broker does not read."""
        self._is_paused = True
        self._writable.clear()

    def resume(self) -> None:
        """Writes again: the broker reads."""
        self._is_paused = False
        self._writable.set()

    def end(self) -> bool:
        """Stops writing for good and aborts the socket; returns False if there is none."""
        self._has_ended = True
        self._outgoing.clear()
        self.resume()
        self.throttle.end()
        if self._transport is None:
            return False
        self._transport.abort()
        return True

    # Waiting

    @property
    def is_writable(self) -> bool:
        """True if a write needs to wait for nothing."""
        return not (self._queued_calls or self._is_paused or self.throttle.is_on)

    @property
    def can_write_now(self) -> bool:
        """True if a write needs to wait for nothing, and reaches a socket at once."""
        return not (
            self._queued_calls or self._is_paused or self.throttle.is_on or self._transport is None
        )

    @property
    def is_empty(self) -> bool:
        """True if no bytes and no callers wait."""
        return not (self._queued_calls or self._outgoing)

    async def turn(self, limit_s: float, is_quiet: Callable[[], bool]) -> None:
        """Waits until the broker reads, behind the callers that wait already.

        If the connection `is_quiet`, the loop first gets the turns in which it notices that the
        broker closed. Raises TimeoutError after `limit_s` plus the throttle time. No other caller
        writes between the return of this call and a write in the same turn.
        """
        self._queued_calls += 1
        try:
            async with self._clock.timeout(limit_s + self.throttle.left_s), self._call_queue:
                for _ in range(TURNS if is_quiet() else 0):
                    await asyncio.sleep(0)
                await self.throttle.over()
                await self._writable.wait()
        finally:
            self._queued_calls -= 1

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Holds back all writes that are queued."""
        self._queued_calls += 1
        try:
            async with self._call_queue:
                await self._writable.wait()
                yield
        finally:
            self._queued_calls -= 1

    # Bytes

    def write(self, data: bytes, now: float) -> None:
        """Writes `data` in this turn, together with other frames. `now` is in seconds of
        the clock.
        """
        self._outgoing.append(data)
        self.used_at = now
        if not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self._flush)

    def write_now(self, data: bytes, now: float) -> None:
        """Writes `data` at once, after what is queued. Only while it `can_write_now`."""
        self.used_at = now
        if self._flush_is_due or self._transport is None:
            self._outgoing.append(data)
            self._flush()
        elif not self._has_ended:
            self._transport.write(data)

    def note(self, exchange: InFlightRequest) -> None:
        """Marks `exchange` as not written until the socket has the next bytes."""
        exchange.is_written = False
        self._unwritten.append(exchange)

    def _flush(self) -> None:
        self._flush_is_due = False
        if self._unwritten:
            for exchange in self._unwritten:
                exchange.is_written = True
            self._unwritten.clear()
        if self._transport is not None and self._outgoing and not self._has_ended:
            for data in _joined(self._outgoing):
                self._transport.write(data)
        self._outgoing.clear()


def _joined(frames: list[bytes]) -> list[bytes]:
    """Joins small frames, because each write costs a call; keeps large ones, because a copy costs
    more.
    """
    if len(frames) == 1:
        return frames[:]
    joined: list[bytes] = []
    small: list[bytes] = []
    for frame in frames:
        if len(frame) < _LARGE_BYTES:
            small.append(frame)
            continue
        if small:
            joined.append(b"".join(small))
            small.clear()
        joined.append(frame)
    if small:
        joined.append(b"".join(small))
    return joined
