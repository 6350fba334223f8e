"""Relays one client's connection to a broker, and reports its events.

Forwards bytes unchanged before it decodes them; only with rewriting, it decodes a broker's frames
before it forwards them. To bound memory, it stops reading from the client while too many bytes wait
to be sent to the broker, and the reverse.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Final

from ..study.conversations import ConversationSplitter, Side, TrafficEvent
from ..tasks import start_task
from ..wire.errors import KprotoError
from .settings import ProxySettings
from .upstream import Stream

__all__ = ["Relay", "now_us"]

#: Wall clock minus monotonic clock in µs. Latencies do not jump if the wall clock is adjusted.
_START_US: Final = time.time_ns() // 1000 - time.monotonic_ns() // 1000


def now_us() -> int:
    """Returns the time in microseconds since 1970, by a clock that never goes back."""
    return _START_US + time.monotonic_ns() // 1000


class Relay:
    """Relays between `client` and the broker that `connect` connects to.

    Calls `on_events` with the events as they occur. If `rewrite` is set, each frame of the broker
    is buffered until it is complete, and the frame that `rewrite` returns is forwarded instead.
    """

    def __init__(
        self,
        client: Stream,
        connect: Callable[[], Awaitable[Stream]],
        settings: ProxySettings,
        on_events: Callable[[list[TrafficEvent]], None],
        rewrite: Callable[[TrafficEvent], Awaitable[bytes]] | None = None,
    ) -> None:
        self._client = client
        self._connect = connect
        self._settings = settings
        self._on_events = on_events
        self._rewrite = rewrite
        self._conversation = ConversationSplitter(
            max_frame_bytes=settings.max_frame_bytes, classes=settings.classes
        )
        self._forwarded_bytes = 0  # in both directions

    async def run(self) -> str:
        """Forwards bytes until both client and broker have closed, or a connection is lost.

        After one side has closed, also ends when the other side sends nothing for
        `half_closed_timeout_ms`. Returns the reason for the end as text for the log; if no broker
        can be reached, this is the text of the error.
        """
        settings = self._settings
        from_client, to_client = self._client
        try:
            from_broker, to_broker = await self._connect()
        except KprotoError as error:
            return str(error)
        for writer in (to_client, to_broker):
            writer.transport.set_write_buffer_limits(settings.max_unsent_bytes)
        directions = (
            start_task(self._forward(Side.CLIENT, from_client, to_broker)),
            start_task(self._forward(Side.BROKER, from_broker, to_client)),
        )
        try:
            try:
                return await self._wait_until_ended(directions)
            finally:
                for direction in directions:
                    direction.cancel()
                try:
                    await asyncio.gather(*directions, return_exceptions=True)
                finally:  # also when the proxy ends during the wait
                    self._on_events(self._conversation.end(now_us()))
                await self._close(to_client, to_broker)
        finally:  # a second cancellation may have skipped the steps above
            for writer in (to_client, to_broker):
                writer.transport.abort()

    async def _wait_until_ended(
        self, directions: tuple[asyncio.Task[None], asyncio.Task[None]]
    ) -> str:
        """Waits until both directions have ended, or one has failed; returns the reason.

        After one direction has ended, the wait also ends if the other direction forwards no bytes
        for `half_closed_timeout_ms`.
        """
        timeout_s = self._settings.half_closed_timeout_ms / 1000
        done, pending = await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        first = "the client" if directions[0] in done else "the broker"
        forwarded = -1
        while (
            pending
            and not any(direction.exception() for direction in done)
            and forwarded != self._forwarded_bytes
        ):
            forwarded = self._forwarded_bytes
            ended, pending = await asyncio.wait(pending, timeout=timeout_s)
            done |= ended
        for direction, side in zip(directions, ("the client", "the broker"), strict=True):
            if direction in done and (error := direction.exception()) is not None:
                if not isinstance(error, OSError):
                    raise error
                return f"lost while forwarding from {side}: {_reason(error)}"
        if pending:
            return f"closed: {first} closed its half, and the other was silent for {timeout_s:g} s"
        return f"ended by {first}"

    async def _forward(
        self, side: Side, source: asyncio.StreamReader, target: asyncio.StreamWriter
    ) -> None:
        rewrites = side is Side.BROKER and self._rewrite is not None
        conversation = self._conversation
        while data := await source.read(self._settings.read_bytes):
            self._forwarded_bytes += len(data)
            if not rewrites:
                target.write(data)
            events = conversation.feed(side, now_us(), data)
            self._on_events(events)
            if rewrites:
                await self._forward_rewritten(events, target)
            await target.drain()
        events = conversation.end_side(side, now_us())
        self._on_events(events)
        if rewrites:
            await self._forward_rewritten(events, target)
        if target.can_write_eof():
            with contextlib.suppress(OSError):  # the peer has disconnected
                target.write_eof()
        else:
            target.close()  # TLS cannot close only one half of a connection

    async def _forward_rewritten(
        self, events: list[TrafficEvent], target: asyncio.StreamWriter
    ) -> None:
        assert self._rewrite is not None
        for event in events:
            target.write(await self._rewrite(event))

    async def _close(self, *writers: asyncio.StreamWriter) -> None:
        """Closes both connections; unsent bytes are sent for at most `close_timeout_ms`."""
        for writer in writers:
            writer.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.close_timeout_ms / 1000):
                await _all_closed(writers)
        for writer in writers:
            writer.transport.abort()
        await _all_closed(writers)


async def _all_closed(writers: tuple[asyncio.StreamWriter, ...]) -> None:
    for writer in writers:
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


def _reason(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__
