"""One connection of a client: moves bytes, and works on one request after the other.

What the bytes mean is `kproto.protocol`'s, what is answered the handlers'. As in Kafka, responses
leave in the order of the requests, because the next one is begun when the last is answered: a
fetch that waits holds up those behind it. Reading stops while too much is queued, work stops
while the client does not take its responses.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Callable
from typing import Final, cast

from ..messages.base import Response
from ..protocol.connection import ReceivedRequest, ServerConnection, expects_response
from ..protocol.framing import FrameReader
from ..protocol.headers import API_VERSIONS
from ..wire.errors import DecodeError, KprotoError, ProtocolError
from .control import Controls, Delay
from .handlers.api_18_api_versions import unsupported_api_versions
from .registry import APIS, Answer, CloseConnection, served_versions
from .state import BrokerState

__all__ = ["ClientOfBroker"]

logger = logging.getLogger("kproto.broker")

#: A response larger than this, in bytes, is written by itself and not gathered with others.
_LARGE: Final = 65_536


class ClientOfBroker(asyncio.BufferedProtocol):
    """The broker's end of one connection; `closed` is done once nothing of it is left.

    It calls `made` with itself once it is connected, and then `gone`.
    """

    def __init__(
        self,
        state: BrokerState,
        controls: Controls,
        made: Callable[[ClientOfBroker], None],
        gone: Callable[[ClientOfBroker], None],
    ) -> None:
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.peer = "?"
        self._state = state
        self._settings = state.settings
        self._controls = controls
        self._made = made
        self._gone = gone
        self._protocol = ServerConnection()
        self._reader = FrameReader(state.settings.max_frame_bytes)
        self._transport: asyncio.Transport | None = None
        self._worker: asyncio.Task[None] | None = None
        self._queue: deque[bytes] = deque()
        self._queued_bytes = 0
        self._reading = True
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._outgoing: list[bytes] = []
        self._last_heard = 0.0
        self._lingering: asyncio.TimerHandle | None = None

    def abort(self) -> None:
        """End the connection now; responses not yet taken are lost."""
        if self._transport is not None:
            self._transport.abort()

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=self._settings.max_unsent_bytes)
        address = transport.get_extra_info("peername")
        self.peer = f"{address[0]}:{address[1]}" if address else "?"
        loop = asyncio.get_running_loop()
        self._last_heard = loop.time()
        self._worker = loop.create_task(self._work())
        self._made(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self._last_heard = asyncio.get_running_loop().time()
        try:
            frames = self._reader.advance(nbytes)
        except KprotoError as error:
            self._end(f"{error}")
            return
        if not frames:
            return
        self._queue.extend(frames)
        self._queued_bytes += sum(map(len, frames))
        self._arrived.set()
        self._read_or_pause()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if self._reader.pending:
            logger.info("%s left %d bytes into a request", self.peer, self._reader.pending)
        if self._lingering is not None:
            self._lingering.cancel()
        self._transport = None
        assert self._worker is not None
        self._worker.cancel()
        self._worker.add_done_callback(self._finished)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def _finished(self, worker: asyncio.Task[None]) -> None:
        if not worker.cancelled():
            worker.exception()  # `_work` logs what it raises; here it is seen
        self._gone(self)
        self.closed.set_result(None)

    # Work

    async def _work(self) -> None:
        """Answer requests until the connection ends; every error ends this connection alone."""
        try:
            while True:
                data = await self._next_frame()
                await self._serve(data)
        except CloseConnection as reason:
            self._end(str(reason))
        except (DecodeError, ProtocolError) as error:
            self._end(f"{type(error).__name__}: {error}")
        except Exception:
            logger.exception("%s: the broker failed on a request", self.peer)
            self._end("the broker failed")

    async def _next_frame(self) -> bytes:
        """The next request. Raises CloseConnection when nothing was heard for too long."""
        limit = self._settings.idle_timeout_ms / 1000
        while not self._queue:
            self._flush()
            self._arrived.clear()
            try:
                async with asyncio.timeout_at(self._last_heard + limit):
                    await self._arrived.wait()
            except TimeoutError:
                if asyncio.get_running_loop().time() - self._last_heard >= limit:
                    raise CloseConnection(
                        f"idle for {self._settings.idle_timeout_ms} ms (idle_timeout_ms)"
                    ) from None
        if not self._writable.is_set():
            await self._until_writable(limit)
        data = self._queue.popleft()
        self._queued_bytes -= len(data)
        self._read_or_pause()
        return data

    async def _until_writable(self, limit: float) -> None:
        """Wait until the client takes its responses; CloseConnection when it does not."""
        try:
            async with asyncio.timeout(limit):
                await self._writable.wait()
        except TimeoutError:
            self.abort()
            raise CloseConnection(
                f"took no response for {self._settings.idle_timeout_ms} ms (idle_timeout_ms)"
            ) from None

    async def _serve(self, data: bytes) -> None:
        request = self._protocol.receive(data)
        if logger.isEnabledFor(logging.INFO):
            logger.info(
                "%s %s v%d, %d bytes, from %s",
                self.peer,
                request.name,
                request.version,
                request.size,
                request.client_id,
            )
        close_after = False
        for outcome in self._controls.outcomes(request):
            if isinstance(outcome, Delay):
                self._flush()
                await asyncio.sleep(outcome.ms / 1000)
                continue
            if isinstance(outcome, Response):
                self._send(request, outcome)
                return
            close_after = outcome.after_handling
            if not close_after:
                raise CloseConnection("a control function closed it")
            break
        response = await self._answer(request)
        if close_after:
            raise CloseConnection("a control function closed it after the request was handled")
        if response is not None:
            self._send(request, response)

    async def _answer(self, request: ReceivedRequest) -> Response | None:
        """Let the handler answer. Raises CloseConnection, as Kafka closes on what it cannot."""
        api = APIS.get(request.api_key)
        message = request.message
        if (
            api is None
            or message is None
            or request.version not in served_versions(api, self._settings)
        ):
            if request.api_key == API_VERSIONS:
                return unsupported_api_versions(self._settings)
            raise CloseConnection(f"{request.name} v{request.version} is not supported")
        answer: Answer = api.handle(self._state, message, request.version)
        if inspect.isawaitable(answer):
            self._flush()
            return await answer
        return answer

    def _send(self, request: ReceivedRequest, response: Response) -> None:
        if request.message is None:
            version = 0
        elif expects_response(request.message, request.version):
            version = request.version
        else:
            return
        self._outgoing.append(self._protocol.send(request, response, version))
        if len(self._outgoing[-1]) > _LARGE:
            self._flush()

    def _flush(self) -> None:
        """Write the responses that were gathered while more requests were at hand."""
        if self._outgoing and self._transport is not None:
            self._transport.write(b"".join(self._outgoing))
        self._outgoing.clear()

    def _read_or_pause(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        wanted = self._queued_bytes < self._settings.max_queued_bytes
        if wanted and not self._reading:
            self._transport.resume_reading()
        elif not wanted and self._reading:
            self._transport.pause_reading()
        self._reading = wanted

    def _end(self, reason: str) -> None:
        """Close the connection once the responses given so far are written.

        A client that does not take them has as long for it as it may be idle.
        """
        logger.info("%s closed: %s", self.peer, reason)
        self._flush()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.close()
            self._lingering = asyncio.get_running_loop().call_later(
                self._settings.idle_timeout_ms / 1000, self.abort
            )
