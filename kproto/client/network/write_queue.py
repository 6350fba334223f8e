"""Queues the bytes that one connection writes.

`write` queues a frame; small frames of one iteration of the event loop are written together.
`write_now` writes at once. While the broker does not read, or throttles this client, callers wait
in one queue. `WriteQueue` also marks the requests whose bytes were passed to the socket.
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

#: The iterations in which the event loop notices that the broker has closed the connection: the
#: first polls the socket, the second calls `connection_lost`, the third runs its callbacks.
IDLE_ITERATIONS: Final = 3

#: A frame of at least this many bytes is written alone: a copy costs more than a call.
_LARGE_BYTES: Final = 65_536


class WriteQueue:
    """Queues the bytes of one connection, and writes them to its socket.

    `attach` sets the socket, and `end` stops writing. `used_at` is the time of the last write, in
    seconds of the clock. `throttle` blocks writes while the broker throttles the client.
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
        self._queued_calls = 0  # the number of calls that wait until it is writable
        self._call_queue = RequestSlots(1)  # serves them in order

    # The socket

    def attach(self, transport: asyncio.Transport) -> None:
        """Writes to `transport` from now on; aborts it if the queue has ended."""
        self._transport = transport
        if self._has_ended:
            transport.abort()

    def detach(self) -> None:
        """Drops the transport, because the socket is closed."""
        self._transport = None

    def pause(self) -> None:
        """Makes callers wait, because the broker does not read."""
        self._is_paused = True
        self._writable.clear()

    def resume(self) -> None:
        """Wakes the callers that wait to write, because the broker reads again."""
        self._is_paused = False
        self._writable.set()

    def end(self) -> bool:
        """Stops writing for good and aborts the socket; returns False if no socket is attached."""
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
        """True if a write need not wait."""
        return not (self._queued_calls or self._is_paused or self.throttle.is_on)

    @property
    def can_write_now(self) -> bool:
        """True if a write need not wait, and a socket is attached."""
        return not (
            self._queued_calls or self._is_paused or self.throttle.is_on or self._transport is None
        )

    @property
    def is_empty(self) -> bool:
        """True if no bytes and no callers wait."""
        return not (self._queued_calls or self._outgoing)

    async def wait_until_writable(self, limit_s: float, is_idle: Callable[[], bool]) -> None:
        """Waits until the socket accepts writes and no throttle is active.

        Serves callers in the order of their calls. If `is_idle` returns True, the call first waits
        for `IDLE_ITERATIONS` iterations of the event loop, in which the loop may notice that the
        broker has closed the connection. Raises TimeoutError after `limit_s` plus the throttle time
        that is left at the call. If the caller writes in the iteration of the event loop in which
        this call returns, no other caller writes before this caller.
        """
        self._queued_calls += 1
        try:
            async with self._clock.timeout(limit_s + self.throttle.remaining_s), self._call_queue:
                for _ in range(IDLE_ITERATIONS if is_idle() else 0):
                    await asyncio.sleep(0)
                await self.throttle.wait_until_over()
                await self._writable.wait()
        finally:
            self._queued_calls -= 1

    @property
    def has_unsent_bytes(self) -> bool:
        """True if the socket has not taken all bytes yet."""
        transport = self._transport
        return transport is not None and (
            bool(self._outgoing) or transport.get_write_buffer_size() > 0
        )

    async def drain(self) -> None:
        """Waits until the socket has taken all bytes, or until the queue has ended."""
        self._flush()
        transport = self._transport
        if transport is None or not self.has_unsent_bytes:
            return
        transport.set_write_buffer_limits(high=0)  # asyncio pauses writes until no byte is left
        try:
            await self._writable.wait()
        finally:
            if self._transport is transport:  # uvloop raises RuntimeError for a closed transport
                transport.set_write_buffer_limits()

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        """Delays other callers of `wait_until_writable` until the end of the block."""
        self._queued_calls += 1
        try:
            async with self._call_queue:
                await self._writable.wait()
                yield
        finally:
            self._queued_calls -= 1

    # Bytes

    def write(self, data: bytes, now: float) -> None:
        """Queues `data`; the next iteration of the event loop writes it, with other frames.

        `now` is in seconds of the clock.
        """
        self._outgoing.append(data)
        self.used_at = now
        if not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self._flush)

    def write_now(self, data: bytes, now: float) -> None:
        """Writes queued frames and `data` at once. Call it only if `can_write_now` is True."""
        self.used_at = now
        if self._flush_is_due or self._transport is None:
            self._outgoing.append(data)
            self._flush()
        elif not self._has_ended:
            self._transport.write(data)

    def mark_unwritten(self, exchange: InFlightRequest) -> None:
        """Marks `exchange` as not written until the next flush."""
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
    """Joins small frames, because each write costs a call; copying large frames would cost more."""
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
