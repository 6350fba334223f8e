"""`BrokerProtocol`: the callbacks of the event loop for the socket of a connection to a broker.

It reads frames and passes each response to its request. If the bytes are invalid or the socket is
closed, the connection fails. The subclass `BrokerConnection` sends the requests.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import cast

from ...clock import Clock
from ...messages.base import Response
from ...protocol.connection import ClientConnection
from ...protocol.framing import FrameReader
from ...security.diagnosis import Stage, unexpected_tls
from ...security.tls import TlsContexts
from ...wire.errors import DecodeError, KprotoError, ProtocolError
from ..observing.connection_watch import ConnectionWatch
from ..settings import Address, ClientSettings
from .authenticator import Authenticator
from .disconnect_errors import disconnect_error
from .in_flight import InFlightRequest
from .node_state import NodeState
from .throttle import throttle_time_ms_of
from .write_queue import WriteQueue

__all__ = ["BrokerProtocol"]


class BrokerProtocol(asyncio.BufferedProtocol, ABC):
    """Receives the responses of one connection."""

    def __init__(
        self,
        address: Address,
        settings: ClientSettings,
        clock: Clock,
        tls: TlsContexts,
        watch: ConnectionWatch,
    ) -> None:
        self.address = address
        self.settings = settings
        self.clock = clock
        self.node_state = NodeState(settings)
        self._tls = tls
        self._watch = watch
        self._protocol = ClientConnection(settings.client_id)
        self._pending = self._protocol.pending
        self._reader = FrameReader(settings.max_frame_bytes)
        self._write_queue = WriteQueue(clock)
        self._error: KprotoError | None = None
        self._is_closed_by_peer = False
        self._disconnected: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sasl: Authenticator | None = None
        self._stage = Stage.VERSIONS
        self._last_handshake_id = -1  # the correlation id of the last request of the handshake
        #: The broker's token, without a header.
        self._bare_token: asyncio.Future[bytes] | None = None

    @abstractmethod
    def fail(self, error: KprotoError) -> None:
        """Fails every request in flight, and closes the socket."""

    @abstractmethod
    def _complete(self, exchange: InFlightRequest, outcome: Response | KprotoError) -> None:
        """Passes the outcome of a request to its callback."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._write_queue.attach(cast(asyncio.Transport, transport))

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        if self._error is not None:
            return
        try:
            for data in self._reader.advance(nbytes):
                if self._bare_token is None:
                    self._receive(data)
                elif not self._bare_token.done():
                    self._bare_token.set_result(data)
        except KprotoError as error:
            if self._stage is Stage.VERSIONS and not self._tls.enabled:
                error = unexpected_tls(self._reader.first_bytes, str(self.address)) or error
            self.fail(error)

    def _receive(self, data: bytes) -> None:
        pending = self._pending.oldest
        outcome: Response | KprotoError
        try:
            message = self._pending.match_message(data)
        except DecodeError as error:
            outcome = error
        except BaseException as error:
            # The connection fails, and with it the request.
            if pending is not None:
                self._pending.restore(pending)
            if not isinstance(error, ProtocolError):
                raise  # e.g. MemoryError: the event loop closes the connection
            self.fail(error)
            return
        else:
            assert message is not None, "each request has a response class"
            outcome = message
            if getattr(message, "throttle_time_ms", 0) and pending is not None:
                self._throttle(throttle_time_ms_of(message, pending.version))
        if pending is not None:
            self._watch.answered(len(data), outcome)
            self._complete(pending.context, outcome)

    def _throttle(self, throttle_ms: int) -> None:
        """Stops writing for the throttle time (KIP-219), but at most for `throttle_max_ms`."""
        waits_ms = min(throttle_ms, self.settings.throttle_max_ms)
        self.node_state.throttled_ms += waits_ms
        self._write_queue.throttle.begin(waits_ms)

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        unread_bytes = self._reader.pending
        self._write_queue.detach()
        self._is_closed_by_peer = not unread_bytes
        is_in_sasl = self._stage is Stage.AUTHENTICATION and self._sasl is not None
        error = disconnect_error(
            exc,
            unread_bytes,
            self._current_stage(),
            address=self.address,
            settings=self.settings,
            tls=self._tls,
            cut_off=self._sasl.cut_off_error() if is_in_sasl and self._sasl is not None else None,
            has_pending=self._protocol.pending.oldest is not None,
        )
        self.fail(error)
        if not self._disconnected.done():
            self._disconnected.set_result(None)

    def _current_stage(self) -> Stage:
        """Returns the stage of the connection.

        After the handshake it is FIRST_REQUEST while the first request is in flight, else OPEN.
        """
        oldest = self._protocol.pending.oldest
        if self._stage is Stage.FIRST_REQUEST and (
            oldest is None or oldest.correlation_id != self._last_handshake_id + 1
        ):
            return Stage.OPEN
        return self._stage

    def pause_writing(self) -> None:
        self._write_queue.pause()

    def resume_writing(self) -> None:
        self._write_queue.resume()
