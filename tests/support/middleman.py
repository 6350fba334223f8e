"""Runs a TCP proxy between a client and a broker; the proxy can inject faults into responses.

The proxy replaces every broker address in Metadata by the proxy's address, so the client connects
only to the proxy. Everything else passes unchanged. A test chooses faults for the next responses of
a type. A test can also choose a type of request that the proxy holds: the client loses its
connection when it sends such a request, and the broker gets the request late.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Self

from kproto.messages import MetadataResponse
from kproto.messages.base import Request, Response
from kproto.protocol.connection import (
    PendingRequests,
    ReceivedRequest,
    ReceivedResponse,
    ServerConnection,
)
from kproto.protocol.framing import FrameReader, frame
from kproto.wire.errors import KprotoError

__all__ = ["Middleman", "Spoil", "cut", "drop", "other_correlation_id", "scramble"]

#: Event loop iterations until a new connection is accepted: select, accept, create transport and
#: streams, and a spare one.
_PASSES_TO_ACCEPT = 5

#: Maps the content of a response frame to the bytes to send, and whether to close the connection.
Spoil = Callable[[bytes], "tuple[bytes, bool]"]


def drop(content: bytes) -> tuple[bytes, bool]:
    """Drops the response and closes the connection."""
    return b"", True


def cut(content: bytes) -> tuple[bytes, bool]:
    """Sends half of the response, then closes the connection."""
    return frame(content)[: 4 + len(content) // 2], True


def scramble(content: bytes) -> tuple[bytes, bool]:
    """Replaces all bytes after the correlation id."""
    return frame(content[:4], b"\xff" * max(len(content) - 4, 20)), False


def other_correlation_id(content: bytes) -> tuple[bytes, bool]:
    """Replaces the correlation id by an id that no request has."""
    return frame(b"\x7f\xff\xff\xff", content[4:]), False


class _Order(NamedTuple):
    """A fault that the proxy applies to the next response of type `response`."""

    response: type[Response]
    spoil: Spoil


class Middleman:
    """Listens at `bootstrap` within `async with` and forwards to the broker at `target`."""

    def __init__(self, target: str) -> None:
        host, _, port = target.partition(",")[0].rpartition(":")
        self._target = (host, int(port))
        self.requests: list[ReceivedRequest] = []
        self.faults: list[KprotoError] = []
        self._orders: list[_Order] = []
        #: While set, requests of this class are held.
        self.holds: type[Request[Any]] | None = None
        self.has_held = asyncio.Event()
        self._held: list[bytes] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def spoil(self, response: type[Response], how: Spoil, times: int = 1) -> None:
        """Applies `how` to the next `times` responses of this type."""
        self._orders += [_Order(response, how)] * times

    async def deliver(self) -> list[Response | None]:
        """Sends the held requests to the broker, one at a time; returns the broker's responses."""
        answers = []
        for content in self._held:
            connection, pending, frames = ServerConnection(), PendingRequests(), FrameReader()
            expected = connection.pending(connection.receive(content))
            assert expected is not None
            pending.expect(expected)
            from_broker, to_broker = await asyncio.open_connection(*self._target)
            to_broker.write(frame(content))
            while not (found := list(frames.feed(await from_broker.read(65_536)))):
                pass
            answers += [pending.match(each).message for each in found]
            to_broker.close()
            await to_broker.wait_closed()
        self._held.clear()
        return answers

    @property
    def left(self) -> int:
        """Returns how many faults have not been applied yet."""
        return len(self._orders)

    def versions(self, name: str) -> list[int]:
        """Returns the version of each request with this class name, in the order of arrival."""
        return [request.version for request in self.requests if request.name == name]

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.bootstrap = f"127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *error: object) -> None:
        # The newest connection may not be accepted yet, and asyncio's Server loses a connection
        # that it accepts while it is being closed.
        for _ in range(_PASSES_TO_ACCEPT):
            await asyncio.sleep(0)
        self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._server.wait_closed()
        assert not self.faults, "some frames could not be decoded"

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(partial(self._served, writer))

    def _served(self, to_client: asyncio.StreamWriter, task: asyncio.Task[None]) -> None:
        to_client.close()
        self._tasks.discard(task)

    async def _serve(
        self, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter
    ) -> None:
        try:
            from_broker, to_broker = await asyncio.open_connection(*self._target)
        except OSError:
            return  # the client loses its connection
        pending = PendingRequests()
        directions = [
            asyncio.create_task(self._requests(from_client, to_broker, pending)),
            asyncio.create_task(self._responses(from_broker, to_client, pending)),
        ]
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            to_broker.transport.abort()  # done first, because the code below may be cancelled
            for direction in directions:
                direction.cancel()
            ended = await asyncio.gather(*directions, return_exceptions=True)
        self.faults += [end for end in ended if isinstance(end, KprotoError)]

    async def _requests(
        self,
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        pending: PendingRequests,
    ) -> None:
        frames, connection = FrameReader(), ServerConnection()
        while data := await source.read(65_536):
            for content in frames.feed(data):
                request = connection.receive(content)
                self.requests.append(request)
                if self.holds is not None and isinstance(request.message, self.holds):
                    self._held.append(bytes(content))
                    self.has_held.set()
                    return
                expected = connection.pending(request)
                if expected is not None:
                    pending.expect(expected)
                target.write(frame(content))
            await target.drain()

    async def _responses(
        self,
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        pending: PendingRequests,
    ) -> None:
        frames = FrameReader()
        while data := await source.read(65_536):
            for content in frames.feed(data):
                passed, hang_up = self._passed(content, pending.match(content))
                target.write(passed)
                await target.drain()
                if hang_up:
                    return

    def _passed(self, content: bytes, response: ReceivedResponse) -> tuple[bytes, bool]:
        for order in self._orders:
            if isinstance(response.message, order.response):
                self._orders.remove(order)
                return order.spoil(content)
        if isinstance(response.message, MetadataResponse):
            return self._renamed(response, response.message), False
        return frame(content), False

    def _renamed(self, response: ReceivedResponse, message: MetadataResponse) -> bytes:
        for broker in message.brokers:
            broker.host, broker.port = "127.0.0.1", self.port
        request = ReceivedRequest(
            response.api_key, response.version, response.correlation_id, None, None, 0, b""
        )
        return ServerConnection().send(request, message)
