"""`WriteQueue`: the bytes of one connection on their way out.

What is written in one turn of the event loop goes out together. Nothing is written while the
broker does not read, or has asked for a wait: who comes meanwhile stands in one line. Knows nothing
of what the bytes say, and of requests only whether their bytes have been given to the socket.
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

#: Turns of the loop in which it sees that the broker has closed: one for the socket, one to be told
#: of it, one to be rid of it.
TURNS: Final = 3

#: From this size in bytes on a frame is written alone: a copy of it costs more than a call.
_LARGE_BYTES: Final = 65_536


class WriteQueue:
    """What goes out on a connection that is made later, by `attach`, and over with `end`.

    `used_at` is when something was written last, in seconds of the clock. `muting` is for how long
    the broker has asked to be left alone.
    """

    def __init__(self, clock: Clock) -> None:
        self.used_at = clock.monotonic()
        self.muting = Throttle(clock)
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._outgoing: list[bytes] = []
        self._unwritten: list[InFlightRequest] = []
        self._flush_is_due = False
        self._is_over = False
        self._is_paused = False
        self._writable = asyncio.Event()
        self._writable.set()
        self._kept_waiting = 0  # who waits until it is writable
        self._line = RequestSlots(1)  # in which they stand

    # The socket

    def attach(self, transport: asyncio.Transport) -> None:
        """From now on it goes out by `transport`, unless it is over already."""
        self._transport = transport
        if self._is_over:
            transport.abort()

    def detach(self) -> None:
        """The socket is gone."""
        self._transport = None

    def pause(self) -> None:
        """The broker does not read."""
        self._is_paused = True
        self._writable.clear()

    def resume(self) -> None:
        """It reads again."""
        self._is_paused = False
        self._writable.set()

    def end(self) -> bool:
        """Write nothing more, and drop the socket; False where there is none."""
        self._is_over = True
        self._outgoing.clear()
        self.resume()
        self.muting.end()
        if self._transport is None:
            return False
        self._transport.abort()
        return True

    # Now or later

    @property
    def is_free(self) -> bool:
        """True where nothing has to be waited for before something is written."""
        return not (self._kept_waiting or self._is_paused or self.muting.is_on)

    @property
    def is_at_hand(self) -> bool:
        """True where that is so, and what is written goes to a socket at once."""
        return not (
            self._kept_waiting or self._is_paused or self.muting.is_on or self._transport is None
        )

    @property
    def is_empty(self) -> bool:
        """True where nothing is to be written, and nobody waits to."""
        return not (self._kept_waiting or self._outgoing)

    async def turn(self, limit_s: float, is_quiet: Callable[[], bool]) -> None:
        """Wait until the broker reads, behind those who wait already.

        Where it `is_quiet`, the loop first sees whether the broker has closed the connection.
        Raises TimeoutError after `limit_s` and what the broker asked for. Who writes at once when
        it returns is overtaken by nobody.
        """
        self._kept_waiting += 1
        try:
            async with self._clock.timeout(limit_s + self.muting.left_s), self._line:
                for _ in range(TURNS if is_quiet() else 0):
                    await asyncio.sleep(0)
                await self.muting.over()
                await self._writable.wait()
        finally:
            self._kept_waiting -= 1

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Hold back all that is not written yet."""
        self._kept_waiting += 1
        try:
            async with self._line:
                await self._writable.wait()
                yield
        finally:
            self._kept_waiting -= 1

    # Bytes

    def write(self, data: bytes, now: float) -> None:
        """Write `data` in this turn, with what else is written then. `now` is the clock's."""
        self._outgoing.append(data)
        self.used_at = now
        if not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self._flush)

    def write_now(self, data: bytes, now: float) -> None:
        """Write `data` at once, and what is still to be written before it. For who `is_at_hand`."""
        self.used_at = now
        if self._flush_is_due or self._transport is None:
            self._outgoing.append(data)
            self._flush()
        elif not self._is_over:
            self._transport.write(data)

    def note(self, exchange: InFlightRequest) -> None:
        """Tell `exchange` when its bytes, which come next, have been given to the socket."""
        exchange.is_written = False
        self._unwritten.append(exchange)

    def _flush(self) -> None:
        self._flush_is_due = False
        if self._unwritten:
            for exchange in self._unwritten:
                exchange.is_written = True
            self._unwritten.clear()
        if self._transport is not None and self._outgoing and not self._is_over:
            for data in _joined(self._outgoing):
                self._transport.write(data)
        self._outgoing.clear()


def _joined(frames: list[bytes]) -> list[bytes]:
    """Small frames as one, as each write costs a call; a large one alone, as copying costs more."""
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
