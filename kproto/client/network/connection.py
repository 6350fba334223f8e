"""`BrokerConnection`: one TCP connection to a broker, with the timeouts of its requests.

`kproto.protocol` encodes and decodes; `write_queue` decides when bytes are written. The callback of
a request is called in the iteration of the event loop in which the response arrives. The connection
fails as a whole: if the socket is closed, a frame is broken or a request times out, every request
in flight gets an error. A single timer watches the deadlines of all requests. If the SASL session
has a lifetime, a second timer starts reauthentication before the session ends (KIP-368).
Reauthentication begins on the broker after the broker has answered the requests in flight. Later
requests wait until reauthentication has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias, TypeVar, cast

from ...clock import SYSTEM_CLOCK, Clock
from ...messages.base import Message, Request, Response
from ...messages.produce_request import ProduceRequest
from ...protocol.connection import expects_response
from ...protocol.framing import frame
from ...protocol.negotiation import ApiRange, negotiate
from ...security.authentication import Answer, Step
from ...security.diagnosis import Stage
from ...security.tls import TlsContexts
from ...wire.errors import (
    BrokerConnectionError,
    ConfigurationError,
    DecodeError,
    KprotoError,
    ProtocolError,
    RequestTimeoutError,
)
from ..observing.connection_watch import NO_WATCH, ConnectionWatch
from ..release import MAGIC_OF_BATCHES, message_magic
from ..settings import Address, ClientSettings
from .addresses import HostAddresses, SocketAddress
from .authenticator import Authenticator
from .broker_protocol import BrokerProtocol
from .disconnect_errors import error_for_request, throttled_error, timed_out_error
from .handshake import attach, negotiate_features, resolve_addresses, tls_context
from .in_flight import NEVER, InFlightRequest, OnOutcome, RequestDeadlines
from .node_state import NodeState
from .request_slots import RequestSlots
from .resend import may_resend

__all__ = ["BrokerConnection"]

R = TypeVar("R", bound=Response)

Reopen: TypeAlias = Callable[[], Awaitable["BrokerConnection"]]

#: After this many idle seconds the broker may be closing the connection.
IDLE_S: Final = 1.0


class BrokerConnection(BrokerProtocol):
    """A connection to a broker, with negotiated versions; `open` creates it."""

    def __init__(
        self,
        address: Address,
        settings: ClientSettings,
        clock: Clock,
        tls: TlsContexts,
        watch: ConnectionWatch = NO_WATCH,
    ) -> None:
        super().__init__(address, settings, clock, tls, watch)
        self.ranges: Mapping[int, ApiRange] = {}
        #: The level of each finalized feature by name, as of the handshake (KIP-584).
        self.finalized_features: Mapping[str, int] = {}
        self.message_magic = MAGIC_OF_BATCHES  # the newest record format that the broker accepts
        self.socket_address: SocketAddress | None = None  # the IP address of the socket
        self._versions: dict[tuple[type[Message], int | None], int] = {}
        self._loop = asyncio.get_running_loop()
        self._deadlines = RequestDeadlines(clock, self._pending, self._on_timeout)
        self._slots = RequestSlots(settings.max_in_flight)
        self.reopen: Reopen | None = None  # opens a connection to the same broker
        self.failed_at = NEVER
        self._was_closed_here = False
        self._had_requests = False
        if settings.sasl is not None:
            self._sasl = Authenticator(self, settings.sasl, address, settings, clock)

    @classmethod
    async def open(
        cls,
        address: Address,
        settings: ClientSettings,
        clock: Clock = SYSTEM_CLOCK,
        *,
        tls: TlsContexts | None = None,
        node_state: NodeState | None = None,
        watch: ConnectionWatch = NO_WATCH,
    ) -> BrokerConnection:
        """Connects to `address`, negotiates versions, and authenticates.

        By default `tls` and `node_state` are created from `settings`. Each IP address of the host
        name is tried until one works, or a broker refuses the client. `node_state` determines the
        address that is tried first, and the timeout.

        Raises BrokerConnectionError if no address answers or the peer closes the connection,
        ProtocolError if the peer is no Kafka broker, AuthenticationError if one side refuses the
        other, ConfigurationError for TLS files that cannot be used, and RequestTimeoutError after
        the timeout of `node_state` (at first `connect_timeout_ms`), or if SASL takes too long.
        """
        node_state = node_state or NodeState(settings)
        limit_ms = node_state.connect_timeout_ms
        tls = tls or TlsContexts(settings.tls)
        ends_at = clock.monotonic() + limit_ms / 1000
        try:
            async with clock.timeout(limit_ms / 1000):
                addresses = await resolve_addresses(address, node_state.failed_ip)
        except TimeoutError:
            raise RequestTimeoutError(
                f"{address}: its name was not looked up within {limit_ms} ms (connect_timeout_ms)"
            ) from None
        while True:
            connection = cls(address, settings, clock, tls, watch)
            connection.node_state = node_state
            try:
                await connection._open(addresses, ends_at, limit_ms)
            except (BrokerConnectionError, ProtocolError, RequestTimeoutError) as error:
                addresses.on_attempt_failed(connection.socket_address, error)
                node_state.failed_ip = addresses.last_failed_ip
                if not addresses.remaining or clock.monotonic() >= ends_at:
                    raise addresses.combined_error() from None
            else:
                return connection

    async def _open(self, addresses: HostAddresses, ends_at: float, limit_ms: int) -> None:
        """Connects to one of the addresses, and authenticates.

        If this fails, closes the connection, and then raises the error.
        """
        address, clock = self.address, self.clock
        try:
            async with clock.timeout(max(ends_at - clock.monotonic(), 0.0)):
                context = await tls_context(self._tls)
                connected, self.socket_address = await addresses.connect(clock)
            # An address that does not answer must leave time for the others.
            seconds = max(ends_at - clock.monotonic(), 0.0) / (1 + len(addresses.remaining))
            async with clock.timeout(seconds):
                try:
                    await attach(self, connected, address, self._tls, context)
                except asyncio.CancelledError:
                    self.abort()
                    if connected.fileno() < 0:  # uvloop has closed it without `connection_lost`
                        self.connection_lost(None)
                    raise
                self.ranges, self.finalized_features = await negotiate_features(
                    self._exchange, address, self.settings.broker_version
                )
            produce = self.ranges.get(ProduceRequest.API_KEY)
            if produce is not None:
                self.message_magic = message_magic(produce.highest)
            if self._sasl is not None:
                self._stage = Stage.AUTHENTICATION
                exchange = await self._sasl.exchange()
                async with clock.timeout(self.settings.connect_timeout_ms / 1000):
                    await self._sasl.authenticate(exchange)
            self._stage = Stage.FIRST_REQUEST
            self._last_handshake_id = self._protocol.last_correlation_id
            self._raise_if_failed()  # bytes after the last response may fail the connection
        except DecodeError as error:
            await self.close()
            raise ProtocolError(
                f"{address}: the peer does not speak Kafka's protocol correctly ({error})"
            ) from None
        except KprotoError:
            await self.close()
            raise
        except TimeoutError:
            await self.close()
            raise RequestTimeoutError(
                f"{address}: no broker answered within {limit_ms} ms "
                "(connect_timeout_ms); is that a Kafka listener, with TLS as configured?"
            ) from None
        except BaseException:
            await self.close()
            raise

    # SASL

    async def send_step(self, step: Step, ends_at: float) -> Answer:
        """Sends a step of an authentication before all queued requests; returns the response."""
        if step.request is None:
            return await self._exchange_tokens(step.token)
        request: Request[Any] = step.request
        limit_ms = self.settings.request_timeout_ms
        return cast(Answer, await self._exchange(request, step.version, ends_at, limit_ms))

    async def _exchange_tokens(self, token: bytes) -> bytes:
        """Sends a token as a bare frame (SaslHandshake v0); returns the broker's token."""
        self._raise_if_failed()
        self._bare_token = self._loop.create_future()
        self._write_queue.write(frame(token), self.clock.monotonic())
        try:
            return await self._bare_token
        finally:
            self._bare_token = None

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[float]:
        """Delays all requests that are not written yet, until the block ends.

        Yields the deadline, in seconds of the clock, of the response to a request that the block
        sends. The broker responds to the requests in flight first. So the deadline is
        `request_timeout_ms` after the latest deadline of the requests in flight, or after the
        present time if no request is in flight.
        """
        async with self._write_queue.exclusive():
            yield self._deadlines.latest_deadline + self.settings.request_timeout_ms / 1000

    @property
    def usable(self) -> bool:
        """True until the connection is closed or fails."""
        return self._error is None

    @property
    def used_at(self) -> float:
        """The time of the last write, in seconds of the clock."""
        return self._write_queue.used_at

    @property
    def in_flight(self) -> int:
        """The number of requests in flight."""
        return len(self._pending)

    @property
    def was_dropped(self) -> bool:
        """True if the connection failed with requests in flight, and this client did not close it.

        A request that was sent after an idle time does not count, because brokers close idle
        connections.
        """
        return self._error is not None and self._had_requests and not self._was_closed_here

    @property
    def has_timed_out(self) -> bool:
        """True if the connection failed because a request was not answered in time."""
        return isinstance(self._error, RequestTimeoutError)

    def version_of(self, request: type[Request[R]], at_most: int | None = None) -> int:
        """Returns the highest version of a request that both sides support, up to `at_most`.

        Raises UnsupportedVersionError if there is none.
        """
        known = self._versions.get((request, at_most))
        if known is None:
            unstable = self.settings.unstable_versions
            known = negotiate(request, self.ranges, unstable=unstable, at_most=at_most)
            self._versions[request, at_most] = known
        return known

    def version_for(self, request: Request[R]) -> int:
        """Returns the highest version that both sides support and that can express `request`.

        The version has every field whose value is not the default, with two exceptions. First, it
        may lack an ignorable field that only later versions have; an id, such as a topic id, is
        ignorable only if the request also has the name. Second, it may lack a name if the request
        also has the id that replaces the name.

        Raises UnsupportedVersionError if there is no such version. If a field is the reason, the
        error names the field. If no version has two of the fields together, the error names these
        two fields.
        """
        # Imported here, because it loads the definitions of messages, and the requests of producers
        # and consumers have a fixed version.
        from .version_selection import version_for

        return version_for(request, self.version_of)

    async def request(
        self, request: Request[R], *, version: int | None = None, timeout_ms: int | None = None
    ) -> R:
        """Sends `request`, and waits for its response.

        `version` is by default the result of `version_for`.

        Raises EncodeError if that version cannot express the request, BrokerConnectionError if the
        connection is lost, and DecodeError if the response cannot be decoded. Raises
        RequestTimeoutError if the request cannot be written within `timeout_ms` plus the throttle
        time, or if no response arrives within `timeout_ms` after the write. A timeout fails the
        connection, because the broker may be lost; a timeout during a throttle does not fail it.
        `timeout_ms` is by default `request_timeout_ms`; the wait for a free slot does not count.

        If the connection was closed before the request was written, the request is sent once more,
        on a new connection. A request that only reads is also sent once more if the broker closed
        an idle connection. Requests are sent once more only on the connections of a client, not on
        a connection that a program creates by `open`.
        """
        try:
            return await self._request(request, version, timeout_ms)
        except BrokerConnectionError as error:
            if self.reopen is None or not may_resend(type(request), error):
                raise
        connection = await self.reopen()
        return await connection._request(request, version, timeout_ms)

    async def _request(self, request: Request[R], version: int | None, timeout_ms: int | None) -> R:
        self._raise_if_failed()
        used = self.version_for(request) if version is None else version
        limit_ms = self.settings.request_timeout_ms if timeout_ms is None else timeout_ms
        async with self._slots:
            await self._until_writable(type(request), used, limit_ms, "was not answered")
            ends_at = self.clock.monotonic() + limit_ms / 1000
            return cast(R, await self._exchange(request, used, ends_at, limit_ms))

    def try_send(
        self, request: Request[R], *, version: int, callback: OnOutcome, may_be_lost: bool = False
    ) -> bool:
        """Writes `request` now, and calls `callback` later with the response or an error.

        Returns False and does nothing if the request would have to wait: because other requests are
        queued, no slot is free, the broker does not read, the broker throttles the client, or the
        broker may be closing the idle connection. With `may_be_lost` the state of an idle
        connection is ignored. If this method returns False, call `request`. Raises the errors that
        `request` raises before it writes.
        """
        self._check_expects_response(request, version)
        now = self.clock.monotonic()
        if not self._can_send_now(now, may_be_lost=may_be_lost):
            return False
        sent = self._new_request(type(request), version, callback, now)
        try:
            _, data = self._protocol.send(request, version, sent)
        except BaseException:
            self._slots.release()
            raise
        self._write_frame(sent, data, now)
        return True

    def try_send_encoded(
        self, request: type[Request[R]], body: Sequence[bytes], *, version: int, callback: OnOutcome
    ) -> bool:
        """Sends an encoded request as `try_send` does; `body` is the encoded body in pieces.

        Does not check that the request has a response.
        """
        now = self.clock.monotonic()
        if not self._can_send_now(now):
            return False
        sent = self._new_request(request, version, callback, now)
        try:
            data = self._protocol.send_encoded(request, version, body, sent)
        except BaseException:
            self._slots.release()
            raise
        self._write_frame(sent, data, now)
        return True

    def _can_send_now(self, now: float, *, may_be_lost: bool = False) -> bool:
        """Takes a slot and returns True if a request can be written at once, else returns False.

        If the connection was idle, returns True only with `may_be_lost`. Raises the connection's
        error.
        """
        if not self._write_queue.can_write_now:
            return False
        self._raise_if_failed()
        return (may_be_lost or not self._is_idle(now)) and self._slots.try_acquire()

    def _is_idle(self, now: float) -> bool:
        """Returns True if the connection was idle for `IDLE_S`: the broker may be closing it."""
        return now - self._write_queue.used_at > IDLE_S and not self._pending

    def is_idle_since(self, since: float) -> bool:
        """Returns True if no request is queued or in flight, and none was written after `since`.

        `since` is in seconds of the clock.
        """
        return self.used_at <= since and not self._pending and self._write_queue.is_empty

    def _new_request(
        self, request: type[Message], version: int, callback: OnOutcome, now: float
    ) -> InFlightRequest:
        limit_ms = self.settings.request_timeout_ms
        ends_at = now + limit_ms / 1000
        return InFlightRequest(request, version, callback, ends_at, limit_ms, holds_slot=True)

    def _write_frame(self, sent: InFlightRequest, data: bytes, now: float) -> None:
        """Writes the frame of a request; then watches its deadline, and reports the request."""
        self._write_queue.write_now(data, now)
        self._deadlines.watch(sent)
        self._watch.written(sent.request, sent.version, len(data), now)

    def _complete(self, exchange: InFlightRequest, outcome: Response | KprotoError) -> None:
        if exchange.holds_slot:
            self._slots.release()
        exchange.callback(outcome)

    async def send_only(self, request: Request[R], *, version: int | None = None) -> None:
        """Sends a request that brokers do not answer (Produce with acks=0).

        Waits while the broker does not read, and while it throttles the client. Raises the errors
        of `request`; after `request_timeout_ms` a broker that does not read counts as lost.
        """
        used = self.version_for(request) if version is None else version
        limit_ms = self.settings.request_timeout_ms
        await self._until_writable(type(request), used, limit_ms, "could not be sent")
        self._raise_if_failed()
        _, data = self._protocol.send(request, used)
        now = self.clock.monotonic()
        self._write_queue.write(data, now)
        self._watch.sent_only(type(request), used, len(data), now)

    def try_send_only(self, request: Request[R], *, version: int) -> bool:
        """Writes at once a request to which there is no response.

        Returns False if the request would have to wait. Also returns False if the connection is
        idle, because the broker may be closing the connection. Raises the errors that `send_only`
        raises before it writes.
        """
        now = self.clock.monotonic()
        if not self._write_queue.can_write_now:
            return False
        self._raise_if_failed()
        if self._is_idle(now):
            return False
        _, data = self._protocol.send(request, version)
        self._write_queue.write_now(data, now)
        self._watch.sent_only(type(request), version, len(data), now)
        return True

    @property
    def has_unsent_bytes(self) -> bool:
        """True if the socket has not taken all written bytes yet."""
        return self._write_queue.has_unsent_bytes

    async def drain(self) -> None:
        """Waits until the socket has taken all written bytes. Raises the connection's error."""
        await self._write_queue.drain()
        self._raise_if_failed()

    async def _until_writable(
        self, request: type[Message], version: int, limit_ms: int, what: str
    ) -> None:
        """Waits until the socket accepts writes and no throttle is active.

        Serves callers in the order of their calls. Raises RequestTimeoutError after `limit_ms` plus
        the throttle time, and fails the connection unless the broker throttles the client. If the
        caller writes in the iteration of the event loop in which this call returns, no other
        request is written before the caller's request.
        """
        is_idle = self._error is None and self._is_idle(self.clock.monotonic())
        if self._write_queue.is_writable and not is_idle:
            return
        try:
            await self._write_queue.wait_until_writable(
                limit_ms / 1000, lambda: self._is_idle(self.clock.monotonic())
            )
        except TimeoutError:
            throttle = self._write_queue.throttle
            if throttle.is_on:
                raise throttled_error(
                    self.address, request, version, limit_ms, throttle.remaining_s
                ) from None
            error = timed_out_error(self.address, request, version, what, limit_ms)
            self.fail(error)
            raise error from None

    async def _exchange(
        self,
        request: Request[R],
        version: int,
        ends_at: float = NEVER,
        limit_ms: int = 0,
    ) -> Response:
        """Queues a request for the next write of the socket, and waits for its response."""
        self._raise_if_failed()
        future: asyncio.Future[Response] = self._loop.create_future()

        def callback(outcome: Response | KprotoError) -> None:
            if future.done():
                return
            if isinstance(outcome, Response):
                future.set_result(outcome)
            else:
                future.set_exception(outcome)

        exchange = InFlightRequest(type(request), version, callback, ends_at, limit_ms)
        now = self.clock.monotonic()
        self._write_queue.write(self._register(request, exchange, now), now)
        try:
            return await future
        except asyncio.CancelledError:
            exchange.ends_at = NEVER  # no caller waits for it any more
            raise

    def _register(self, request: Request[R], exchange: InFlightRequest, now: float) -> bytes:
        """Stores a request as in flight; returns its frame, which the caller writes next."""
        self._check_expects_response(request, exchange.version)
        exchange.was_idle = self._is_idle(now)
        _, data = self._protocol.send(request, exchange.version, exchange)
        self._write_queue.mark_unwritten(exchange)
        self._deadlines.watch(exchange)
        self._watch.written(exchange.request, exchange.version, len(data), now)
        return data

    def _check_expects_response(self, request: Request[R], version: int) -> None:
        if not expects_response(request, version):
            raise ConfigurationError(
                f"no broker answers this {type(request).__name__} v{version}: it has "
                "acks=0, or needs no response; `BrokerConnection.send_only` does not wait"
            )

    def _on_timeout(self, late: InFlightRequest) -> None:
        """Fails the connection, because the broker did not answer the request `late` in time."""
        what = "was not answered"
        error = timed_out_error(self.address, late.request, late.version, what, late.limit_ms)
        self._complete(late, error)
        self.fail(error)

    def _raise_if_failed(self) -> None:
        if self._error is not None:
            error = error_for_request(self._error, self.address)
            if isinstance(error, BrokerConnectionError):
                error.never_written = True
            raise error

    def fail(self, error: KprotoError) -> None:
        """Fails every request in flight, and closes the socket.

        The requests get `error`; if the connection had failed before this call, they get the
        earlier error.
        """
        if self._error is None:
            self._error = error
            self.failed_at = self.clock.monotonic()
            self._had_requests = self._deadlines.has_requests
        self._deadlines.stop()
        if self._sasl is not None:
            self._sasl.stop()
        if self._bare_token is not None and not self._bare_token.done():
            self._bare_token.set_exception(error_for_request(self._error, self.address))
        self._watch.lost(
            self._error, had_requests=self._had_requests, was_closed_here=self._was_closed_here
        )
        if not self._write_queue.end() and not self._disconnected.done():
            self._disconnected.set_result(None)
        while (pending := self._pending.take()) is not None:
            self._complete(pending.context, self._disconnect_error_for(pending.context))

    def _disconnect_error_for(self, exchange: InFlightRequest) -> KprotoError:
        """Returns the error for a request that was in flight."""
        assert self._error is not None
        error = error_for_request(self._error, self.address)
        if isinstance(error, BrokerConnectionError):
            error.never_written = not exchange.is_written
            error.was_idle = exchange.was_idle and self._is_closed_by_peer
        return error

    async def close(self) -> None:
        """Closes the connection and waits for the socket; requests in flight fail."""
        self.abort()
        await asyncio.shield(self._disconnected)
        if self._sasl is not None:
            await self._sasl.stopped()

    def abort(self) -> None:
        """Closes the connection without waiting; requests in flight fail."""
        self._was_closed_here = True
        self.fail(BrokerConnectionError("the connection was closed", address=str(self.address)))
