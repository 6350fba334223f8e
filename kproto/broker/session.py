"""Serves one client connection: reads requests, calls their handlers, and sends the responses.

As in Kafka, each request is processed only after the response to the previous request. So a delayed
Fetch also delays later requests. The task of the connection waits for a `DelayedResponse`, and the
wait ends with the connection. Reading pauses while too many bytes are queued, and processing pauses
while the client does not read its responses.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, cast

from ..clock import Clock, Timer
from ..messages.base import Response
from ..protocol.connection import ReceivedRequest, ServerConnection, expects_response
from ..protocol.framing import FrameReader, frame
from ..protocol.message_classes import MessageClasses
from ..tasks import start_task
from ..wire.errors import DecodeError, KprotoError, ProtocolError
from .context import Context
from .faults import ControlFunctions, Cut, Delay, Refuse
from .faults.error_responses import (
    TopicLookup,
    is_refused_by_handler,
    mark_refused,
    merge_refused,
    split_refused,
)
from .faults.outcomes import RequestOutcome
from .log_escaping import log_safe
from .principals import USER, Principal
from .registry import Api, CloseConnection, Decision, DelayedResponse
from .sasl_authenticator import SaslAuthenticator
from .security.subjects import subject_of
from .throttle import apply_quotas, with_throttle_time

__all__ = ["Session", "await_response"]

logger = logging.getLogger("kproto.broker")

#: While more requests are queued, responses are collected. They are written when their total size
#: exceeds this number of bytes.
_MAX_GATHERED_BYTES: Final = 65_536

#: Approximate memory of a queued frame in bytes, in addition to its content.
_FRAME_WEIGHT: Final = 48

#: A timeout with at most this many seconds left counts as expired, because settings are in ms.
_TIMER_TOLERANCE_S: Final = 0.001


class Session(asyncio.BufferedProtocol):
    """Implements the broker's side of one connection.

    Calls `on_connected` with itself when the client has connected, and `on_closed` when the
    connection and its task have ended. The future `closed` is then done.
    """

    def __init__(
        self,
        context: Context,
        apis: Mapping[int, Api],
        classes: MessageClasses,
        controls: ControlFunctions,
        on_connected: Callable[[Session], None],
        on_closed: Callable[[Session], None],
        sasl_authenticator: SaslAuthenticator | None = None,
    ) -> None:
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.peer = "?"
        self._context = context
        self._clock = context.clock
        self._settings = context.settings
        self._idle_limit = context.settings.idle_timeout_ms / 1000
        self._apis = apis
        self._controls = controls
        self._on_connected = on_connected
        self._on_closed = on_closed
        self._sasl_authenticator = sasl_authenticator
        self._protocol = ServerConnection(classes)
        self._reader = FrameReader(
            context.settings.max_frame_bytes
            if sasl_authenticator is None
            else context.settings.sasl_max_receive_bytes
        )
        self._transport: asyncio.Transport | None = None
        self._worker: asyncio.Task[None] | None = None
        self._queue: deque[bytes] = deque()
        self._queued_bytes = 0
        self._reading = True
        self._frame_arrived = asyncio.Event()
        self._is_processing = False
        self._writable = asyncio.Event()
        self._writable.set()
        self._outgoing: list[bytes] = []
        self._gathered_bytes = 0
        self._last_active = 0.0
        self._handled_s = 0.0
        #: Closes the connection if no request arrives within the idle timeout. After the broker
        #: has closed the connection, aborts it if the client does not read the last responses.
        self._timer: Timer | None = None

    def abort(self) -> None:
        """Closes the connection at once; responses that are not sent yet are lost."""
        if self._transport is not None:
            self._transport.abort()

    # Methods that asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=self._settings.max_unsent_bytes)
        address = transport.get_extra_info("peername")
        if address:
            self.peer = f"{address[0]}:{address[1]}"
            if len(self._context.cluster.nodes) > 1:  # all nodes log to the same logger
                self.peer = f"broker {self._context.node_id}: {self.peer}"
            self._context = replace(self._context, host=address[0])
        self._context = replace(self._context, connection_id=f"{self.peer}-{id(self)}")
        self._set_certificate_principal(transport)
        self._last_active = self._clock.monotonic()
        self._timer = self._clock.call_later(self._idle_limit, self._check_idle)
        self._worker = start_task(self._process_requests())
        self._on_connected(self)

    def _set_certificate_principal(self, transport: asyncio.BaseTransport) -> None:
        """Sets the principal to the subject of the client's certificate, if the client sent one.

        Does nothing if the listener uses SASL. Closes the connection if the subject is unreadable.
        """
        encrypted = transport.get_extra_info("ssl_object")
        certificate = None if encrypted is None else encrypted.getpeercert(binary_form=True)
        if certificate is not None and self._sasl_authenticator is None:
            try:
                principal = Principal(USER, subject_of(certificate))
            except KprotoError as error:
                logger.warning("%s closed: %s", self.peer, log_safe(error))
                self.abort()
                return
            self._context = replace(self._context, principal=principal)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self._last_active = self._clock.monotonic()
        try:
            frames = self._reader.advance(nbytes)
        except KprotoError as error:
            self._close(f"{error}")
            return
        if not frames:
            return
        self._queue.extend(frames)
        self._queued_bytes += sum(map(_queued_size, frames))
        self._frame_arrived.set()
        self._read_or_pause()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if self._reader.pending:
            logger.info(
                "%s disconnected after %d bytes of a request", self.peer, self._reader.pending
            )
        if self._timer is not None:
            self._timer.cancel()
        self._transport = None
        assert self._worker is not None
        self._worker.cancel()
        self._worker.add_done_callback(self._on_processing_ended)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def _check_idle(self) -> None:
        """Closes the connection after the idle timeout, unless a request is being processed."""
        now = self._clock.monotonic()
        if self._is_processing:
            self._last_active = now
        left = self._last_active + self._idle_limit - now
        if left > _TIMER_TOLERANCE_S:
            self._timer = self._clock.call_later(left, self._check_idle)
        else:
            self._close(f"idle for {self._settings.idle_timeout_ms} ms (idle_timeout_ms)")

    def _on_processing_ended(self, worker: asyncio.Task[None]) -> None:
        if not worker.cancelled():
            worker.exception()  # retrieved here, logged by `_process_requests`
        context = self._context
        context.share_partitions.on_disconnect(context.connection_id, context.now)
        self._on_closed(self)
        self.closed.set_result(None)

    # Requests

    async def _process_requests(self) -> None:
        """Processes requests until the connection ends; an error closes only this connection."""
        try:
            while True:
                data = await self._next_frame()
                await self._process(data)
                if not self._outgoing:
                    await self._clock.sleep(0)  # many bytes were written: let other tasks run
        except CloseConnection as reason:
            self._close(str(reason))
        except (DecodeError, ProtocolError) as error:
            self._close(f"{type(error).__name__}: {error}")
        except Exception:
            logger.exception("%s: the broker failed on a request", self.peer)
            self._close("the broker failed")

    async def _next_frame(self) -> bytes:
        """Returns the frame of the next request.

        Waits while no request is queued, and while the client leaves too many bytes of responses
        unread.
        """
        while not self._queue:
            self._flush()
            self._frame_arrived.clear()
            self._is_processing = False
            await self._frame_arrived.wait()
            self._is_processing = True
        if not self._writable.is_set():
            await self._until_writable()
        data = self._queue.popleft()
        self._queued_bytes -= _queued_size(data)
        self._read_or_pause()
        return data

    async def _until_writable(self) -> None:
        """Waits until the client has read enough of the responses that were sent.

        Raises CloseConnection after the idle timeout.
        """
        try:
            async with self._clock.timeout(self._idle_limit):
                await self._writable.wait()
        except TimeoutError:
            self.abort()
            raise CloseConnection(
                f"the client read no response for {self._settings.idle_timeout_ms} ms"
                " (idle_timeout_ms)"
            ) from None

    async def _process(self, data: bytes) -> None:
        if self._sasl_authenticator is not None:
            if self._sasl_authenticator.expects_token_without_header:
                await self._take_token_without_header(self._sasl_authenticator, data)
                return
            self._sasl_authenticator.check(data)
        request = self._protocol.receive(data)
        if logger.isEnabledFor(logging.INFO):
            logger.info(
                "%s %s v%d, %d bytes, from %s as %s",
                self.peer,
                request.name,
                request.version,
                request.size,
                log_safe(request.client_id),
                log_safe(self._context.principal),
            )
        outcome = await self._decide_outcome(request)
        if outcome.handled:
            await self._handle(request, outcome)
        if outcome.silent:
            self._flush()
            await asyncio.get_running_loop().create_future()  # until the connection ends
        if outcome.close:
            raise CloseConnection("a control function closed it")

    async def _decide_outcome(self, request: ReceivedRequest) -> RequestOutcome:
        """Calls the control functions, and returns their combined outcome.

        Waits for the delays that the control functions request.
        """
        outcome = RequestOutcome()
        for decided in self._controls.outcomes(request, self._topic_lookup):
            if isinstance(decided, Delay):
                self._flush()
                await self._clock.sleep(decided.ms / 1000)
                self._last_active = self._clock.monotonic()
            if outcome.apply(decided):
                break
        return outcome

    @property
    def _topic_lookup(self) -> TopicLookup:
        """Returns the look-ups that control functions need to test a request.

        The look-ups find the name of a topic id, and the partitions of a fetch session.
        """
        context = self._context
        return TopicLookup(context.cluster.topics.name_of, context.fetch_sessions.partitions_of)

    async def _handle(self, request: ReceivedRequest, outcome: RequestOutcome) -> None:
        """Calls the handler and sends its response; `outcome` may replace or drop the response."""
        if outcome.answer is not None:
            throttle_ms = outcome.throttle_ms
            response: Response | None = with_throttle_time(outcome.answer, throttle_ms)
        else:
            response = await self._handle_or_refuse(request, outcome.refuse)
            response, throttle_ms = apply_quotas(
                self._context, request, response, self._handled_s, outcome.throttle_ms
            )
        if outcome.close or outcome.silent:
            return
        if response is not None:
            self._send(request, response, outcome.cut)
        if self._sasl_authenticator is not None and self._sasl_authenticator.closing is not None:
            raise CloseConnection(self._sasl_authenticator.closing)
        if throttle_ms:
            await self._mute(throttle_ms)

    async def _handle_or_refuse(
        self, request: ReceivedRequest, refuse: Refuse | None
    ) -> Response | None:
        """Handles a request of which a control function refuses a part; returns the response.

        The response has the error of `refuse` for each refused part. Returns None if no response is
        sent. If `is_refused_by_handler` returns True, the handler gets the whole request. Otherwise
        it gets only the partitions, topics or groups that are not refused.
        """
        message, version = request.message, request.version
        if refuse is None or message is None:
            return await self._handle_request(request)
        if is_refused_by_handler(message, refuse):
            answer = await self._handle_request(request, refuse)
            mark_refused(answer, refuse, self._topic_lookup)
            return answer
        rest, refused = split_refused(message, version, refuse, self._topic_lookup)
        if not expects_response(message, version):
            raise CloseConnection("a control function refused a request that has no response")
        if rest is None:
            return refused
        answer = await self._handle_request(request._replace(message=rest))
        if answer is not None:
            merge_refused(answer, refused, message, version)
        return answer

    async def _mute(self, ms: int) -> None:
        """Processes no request of the connection for the throttle time `ms` (KIP-219)."""
        self._flush()
        await self._clock.sleep(ms / 1000)
        self._last_active = self._clock.monotonic()

    async def _take_token_without_header(
        self, sasl_authenticator: SaslAuthenticator, data: bytes
    ) -> None:
        """Evaluates a SASL token without a request header, and sends the response token.

        The response token has no header either.
        """
        answer = frame(await sasl_authenticator.take_token_without_header(data))
        self._set_principal(sasl_authenticator)
        self._outgoing.append(answer)
        self._gathered_bytes += len(answer)

    def _set_principal(self, sasl_authenticator: SaslAuthenticator) -> None:
        """Sets principal and frame limit (`max_frame_bytes`) if the client is authenticated."""
        identity = sasl_authenticator.identity
        if identity is not None:
            self._context = replace(
                self._context,
                principal=identity.principal,
                token_authenticated=identity.token_authenticated,
            )
            self._reader.max_frame_bytes = self._settings.max_frame_bytes

    async def _handle_request(
        self, request: ReceivedRequest, refuse: Refuse | None = None
    ) -> Response | None:
        """Returns the response of the handler, after its delay; None for no response.

        Raises CloseConnection for an unsupported API, and for an unsupported version of an API
        without a fallback.
        """
        self._handled_s = 0.0  # in case that no handler is called
        api = self._apis.get(request.api_key)
        message = request.message
        context = self._update_context(request)
        if refuse is not None:
            context = replace(context, refuse=refuse)
        if api is None or message is None or request.version not in api.versions:
            if api is not None and api.fallback is not None:
                return api.fallback(context)
            raise CloseConnection(f"{request.name} v{request.version} is not supported")
        if self._sasl_authenticator is not None:
            answer = await self._sasl_authenticator.answer(request)
            if answer is not None:
                self._set_principal(self._sasl_authenticator)
                return answer
        started = self._clock.monotonic()
        decision = api.handle(context, message, request.version)
        self._handled_s = self._clock.monotonic() - started
        if isinstance(decision, DelayedResponse):
            self._flush()
            response = await await_response(decision, self._clock)
            self._last_active = self._clock.monotonic()
            return response
        if self._sasl_authenticator is not None:
            self._sasl_authenticator.on_response(request, decision)
        return decision

    def _update_context(self, request: ReceivedRequest) -> Context:
        """Returns the context with the client id of `request`."""
        if request.client_id != self._context.client_id:
            self._context = replace(self._context, client_id=request.client_id)
        return self._context

    def _send(self, request: ReceivedRequest, response: Response, cut: Cut | None = None) -> None:
        if request.message is None or self._has_fallback(request):
            version = 0
        elif expects_response(request.message, request.version):
            version = request.version
        else:
            return
        data = self._protocol.send(request, response, version)
        if cut is not None:
            self._outgoing.append(cut.of(data))
            raise CloseConnection("a control function cut the response")
        self._outgoing.append(data)
        self._gathered_bytes += len(data)
        if self._gathered_bytes > _MAX_GATHERED_BYTES:
            self._flush()  # so that `_next_frame` waits if the client does not read

    def _has_fallback(self, request: ReceivedRequest) -> bool:
        """Returns True if the version is unsupported and the API has a fallback."""
        api = self._apis.get(request.api_key)
        return api is not None and api.fallback is not None and request.version not in api.versions

    def _flush(self) -> None:
        """Writes the responses that were collected while more requests were queued."""
        if self._outgoing and self._transport is not None:
            self._transport.write(b"".join(self._outgoing))
        self._outgoing.clear()
        self._gathered_bytes = 0

    def _read_or_pause(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        should_read = self._queued_bytes < self._settings.max_queued_bytes
        if should_read and not self._reading:
            self._transport.resume_reading()
        elif not should_read and self._reading:
            self._transport.pause_reading()
        self._reading = should_read

    def _close(self, reason: str) -> None:
        """Closes the connection after the collected responses are sent.

        If the client does not read the responses, aborts the connection after the idle timeout.
        """
        logger.info("%s closed: %s", self.peer, log_safe(reason))
        self._flush()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.close()
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._clock.call_later(self._idle_limit, self.abort)


def _queued_size(frame: bytes) -> int:
    """Returns the approximate memory of a queued frame in bytes; empty frames take memory, too."""
    return len(frame) + _FRAME_WEIGHT


async def await_response(decision: Decision, clock: Clock) -> Response | None:
    """Waits until `decision` is a response, and returns the response; None for no response.

    If several watched objects change within one iteration of the event loop, calls `try_complete`
    once. Removes watchers and timer even if the wait is cancelled or `try_complete` raises.
    """
    while isinstance(decision, DelayedResponse):
        decision = await _next_decision(decision, clock)
    return decision


async def _next_decision(delayed: DelayedResponse, clock: Clock) -> Decision:
    changed = asyncio.Event()
    is_deadline = False

    def on_deadline() -> None:
        nonlocal is_deadline
        is_deadline = True
        changed.set()

    for watched in delayed.watched:
        watched.watchers.add(changed.set)
    timer = clock.call_later(max(0.0, delayed.deadline - clock.monotonic()), on_deadline)
    try:
        while True:
            await changed.wait()
            changed.clear()
            decision = delayed.try_complete(is_deadline)
            if decision is not delayed:
                return decision
    finally:
        timer.cancel()
        for watched in delayed.watched:
            watched.watchers.discard(changed.set)
