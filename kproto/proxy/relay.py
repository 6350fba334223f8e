"""One client's connection and its twin to a broker: moves bytes, and tells what passed.

What is not rewritten is passed on before it is looked at, as it came. Nothing is read from one side
while the other has much to take, so that memory is bounded.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Final

from ..study.conversations import Conversation, Event, Side
from ..wire.errors import KprotoError
from .settings import ProxySettings
from .upstream import Stream

__all__ = ["Relay", "now_us"]

#: The wall clock once, and what has passed since: latencies do not jump when the clock is set.
_START_US: Final = time.time_ns() // 1000 - time.monotonic_ns() // 1000


def now_us() -> int:
    """Microseconds since 1970."""
    return _START_US + time.monotonic_ns() // 1000


class Relay:
    """A connection between `client` and the broker that `connect` leads to, from begin to end.

    `on_events` gets the events as they come. With `rewrite` each frame of the broker is held until
    it is whole, and what that returns is passed on in its place.
    """

    def __init__(
        self,
        client: Stream,
        connect: Callable[[], Awaitable[Stream]],
        settings: ProxySettings,
        on_events: Callable[[list[Event]], None],
        rewrite: Callable[[Event], Awaitable[bytes]] | None = None,
    ) -> None:
        self._client = client
        self._connect = connect
        self._settings = settings
        self._on_events = on_events
        self._rewrite = rewrite
        self._conversation = Conversation(max_frame_bytes=settings.max_frame_bytes)
        self._moved = 0  # bytes so far, either way

    async def run(self) -> str:
        """Pass on until both sides have ended, or one is lost; why it ended."""
        settings = self._settings
        from_client, to_client = self._client
        try:
            from_broker, to_broker = await self._connect()
        except KprotoError as error:
            return str(error)
        for writer in (to_client, to_broker):
            writer.transport.set_write_buffer_limits(settings.max_unsent_bytes)
        directions = (
            asyncio.create_task(self._pass_on(Side.CLIENT, from_client, to_broker)),
            asyncio.create_task(self._pass_on(Side.BROKER, from_broker, to_client)),
        )
        try:
            try:
                return await self._ended(directions)
            finally:
                for direction in directions:
                    direction.cancel()
                try:
                    await asyncio.gather(*directions, return_exceptions=True)
                finally:  # told also when the proxy ends while this waits
                    self._on_events(self._conversation.end(now_us()))
                await self._close(to_client, to_broker)
        finally:  # cancelled once more, nothing of the above may have been
            for writer in (to_client, to_broker):
                writer.transport.abort()

    async def _ended(self, directions: tuple[asyncio.Task[None], asyncio.Task[None]]) -> str:
        """Wait until both ways have ended, or one was lost, or is silent behind the other's end."""
        patience = self._settings.half_closed_timeout_ms / 1000
        done, left = await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        first = "the client" if directions[0] in done else "the broker"
        moved = -1
        while (
            left and not any(direction.exception() for direction in done) and moved != self._moved
        ):
            moved = self._moved
            ended, left = await asyncio.wait(left, timeout=patience)
            done |= ended
        for direction, who in zip(directions, ("the client", "the broker"), strict=True):
            if direction in done and (error := direction.exception()) is not None:
                if not isinstance(error, OSError):
                    raise error
                return f"lost, passing on what {who} sent: {_reason(error)}"
        if left:
            return f"given up: {first} ended its half, and the other was silent for {patience:g} s"
        return f"ended by {first}"

    async def _pass_on(
        self, side: Side, source: asyncio.StreamReader, target: asyncio.StreamWriter
    ) -> None:
        is_held = side is Side.BROKER and self._rewrite is not None
        conversation = self._conversation
        while data := await source.read(self._settings.read_bytes):
            self._moved += len(data)
            if not is_held:
                target.write(data)
            events = conversation.feed(side, now_us(), data)
            self._on_events(events)
            if is_held:
                await self._pass_events(events, target)
            await target.drain()
        events = conversation.end_side(side, now_us())
        self._on_events(events)
        if is_held:
            await self._pass_events(events, target)
        if target.can_write_eof():
            with contextlib.suppress(OSError):  # who has gone need not be told
                target.write_eof()
        else:
            target.close()  # TLS has no half of a connection that could end

    async def _pass_events(self, events: list[Event], target: asyncio.StreamWriter) -> None:
        assert self._rewrite is not None
        for event in events:
            target.write(await self._rewrite(event))

    async def _close(self, *writers: asyncio.StreamWriter) -> None:
        """Close both ends; what they hold may still go out for a while."""
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
