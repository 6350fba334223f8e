"""One client: moves the bytes of its connection, and works on one request after the other.

What the bytes mean is `kproto.protocol`'s, what is answered the handlers', and how to wait for an
answer that is not there yet `waiting`'s; all three end with the connection. As in Kafka, responses
leave in the order of the requests, because the next one is begun when the last is answered: a
fetch that waits holds up those behind it. Reading stops while too much is queued, work stops
while the client does not take its responses.
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
from ..wire.errors import DecodeError, KprotoError, ProtocolError
from .context import Context
from .faults import Controls, Cut, Delay, Refuse
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
from .throttle import apply_quotas

__all__ = ["Session", "await_response"]

logger = logging.getLogger("kproto.broker")

#: A response larger than this, in bytes, is written by itself and not gathered with others.
_LARGE: Final = 65_536

#: What a queued frame takes beside its bytes, about.
_FRAME_WEIGHT: Final = 48

#: What is left of a time of which nothing is left, in seconds: the settings count in ms.
_OVER: Final = 0.001


class Session(asyncio.BufferedProtocol):
    """The broker's end of one connection; `closed` is done once nothing of it is left.

    It calls `made` with itself once it is connected, and then `gone`.
    """

    def __init__(
        self,
        context: Context,
        apis: Mapping[int, Api],
        classes: MessageClasses,
        controls: Controls,
        made: Callable[[Session], None],
        gone: Callable[[Session], None],
        gate: SaslAuthenticator | None = None,
    ) -> None:
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.peer = "?"
        self._context = context
        self._clock = context.clock
        self._settings = context.settings
        self._idle_limit = context.settings.idle_timeout_ms / 1000
        self._apis = apis
        self._controls = controls
        self._made = made
        self._gone = gone
        self._gate = gate
        self._protocol = ServerConnection(classes)
        self._reader = FrameReader(
            context.settings.max_frame_bytes
            if gate is None
            else context.settings.sasl_max_receive_bytes
        )
        self._transport: asyncio.Transport | None = None
        self._worker: asyncio.Task[None] | None = None
        self._queue: deque[bytes] = deque()
        self._queued_bytes = 0
        self._reading = True
        self._arrived = asyncio.Event()
        self._at_work = False
        self._writable = asyncio.Event()
        self._writable.set()
        self._outgoing: list[bytes] = []
        self._gathered_bytes = 0
        self._last_active = 0.0
        self._handled_s = 0.0
        #: Ends the connection: first when it is idle, then when it does not take its last bytes.
        self._timer: Timer | None = None

    def abort(self) -> None:
        """End the connection now; responses not yet taken are lost."""
        if self._transport is not None:
            self._transport.abort()

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=self._settings.max_unsent_bytes)
        address = transport.get_extra_info("peername")
        if address:
            self.peer = f"{address[0]}:{address[1]}"
            if len(self._context.cluster.nodes) > 1:  # whose logs are one
                self.peer = f"broker {self._context.node_id}: {self.peer}"
            self._context = replace(self._context, host=address[0])
        self._take_certificate(transport)
        self._last_active = self._clock.monotonic()
        self._timer = self._clock.call_later(self._idle_limit, self._check_idle)
        self._worker = asyncio.get_running_loop().create_task(self._work())
        self._made(self)

    def _take_certificate(self, transport: asyncio.BaseTransport) -> None:
        """Whoever shows a certificate comes in by it, unless SASL asks who it is."""
        encrypted = transport.get_extra_info("ssl_object")
        certificate = None if encrypted is None else encrypted.getpeercert(binary_form=True)
        if certificate is not None and self._gate is None:
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
            self._end(f"{error}")
            return
        if not frames:
            return
        self._queue.extend(frames)
        self._queued_bytes += sum(map(_weight, frames))
        self._arrived.set()
        self._read_or_pause()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if self._reader.pending:
            logger.info("%s left %d bytes into a request", self.peer, self._reader.pending)
        if self._timer is not None:
            self._timer.cancel()
        self._transport = None
        assert self._worker is not None
        self._worker.cancel()
        self._worker.add_done_callback(self._finished)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def _check_idle(self) -> None:
        """Close the connection when nothing was heard for too long, and nothing worked on."""
        now = self._clock.monotonic()
        if self._at_work:
            self._last_active = now
        left = self._last_active + self._idle_limit - now
        if left > _OVER:
            self._timer = self._clock.call_later(left, self._check_idle)
        else:
            self._end(f"idle for {self._settings.idle_timeout_ms} ms (idle_timeout_ms)")

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
                if not self._outgoing:
                    await self._clock.sleep(0)  # much was written: let the others of this loop run
        except CloseConnection as reason:
            self._end(str(reason))
        except (DecodeError, ProtocolError) as error:
            self._end(f"{type(error).__name__}: {error}")
        except Exception:
            logger.exception("%s: the broker failed on a request", self.peer)
            self._end("the broker failed")

    async def _next_frame(self) -> bytes:
        """The next request, once it is there and the client takes its responses."""
        while not self._queue:
            self._flush()
            self._arrived.clear()
            self._at_work = False
            await self._arrived.wait()
            self._at_work = True
        if not self._writable.is_set():
            await self._until_writable()
        data = self._queue.popleft()
        self._queued_bytes -= _weight(data)
        self._read_or_pause()
        return data

    async def _until_writable(self) -> None:
        """Wait until the client takes its responses; CloseConnection when it does not."""
        try:
            async with self._clock.timeout(self._idle_limit):
                await self._writable.wait()
        except TimeoutError:
            self.abort()
            raise CloseConnection(
                f"took no response for {self._settings.idle_timeout_ms} ms (idle_timeout_ms)"
            ) from None

    async def _serve(self, data: bytes) -> None:
        if self._gate is not None:
            if self._gate.expects_token_without_header:
                await self._take_bare_token(self._gate, data)
                return
            self._gate.check(data)
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
        fate = await self._fate_of(request)
        if fate.handled:
            await self._handle(request, fate)
        if fate.silent:
            self._flush()
            await asyncio.get_running_loop().create_future()  # until the connection ends
        if fate.close:
            raise CloseConnection("a control function closed it")

    async def _fate_of(self, request: ReceivedRequest) -> RequestOutcome:
        """What the controls decide; a delay passes here."""
        fate = RequestOutcome()
        for outcome in self._controls.outcomes(request, self._topic_lookup):
            if isinstance(outcome, Delay):
                self._flush()
                await self._clock.sleep(outcome.ms / 1000)
                self._last_active = self._clock.monotonic()
            if fate.take(outcome):
                break
        return fate

    @property
    def _topic_lookup(self) -> TopicLookup:
        """What a control has to know of topics and fetch sessions."""
        context = self._context
        return TopicLookup(context.cluster.topics.name_of, context.fetch_sessions.partitions_of)

    async def _handle(self, request: ReceivedRequest, fate: RequestOutcome) -> None:
        """Let the broker work, and answer as far as `fate` lets it."""
        if fate.answer is not None:
            response: Response | None = fate.answer
            rest_ms = fate.throttle_ms
        else:
            response = await self._answer_or_refuse(request, fate.refuse)
            response, rest_ms = apply_quotas(
                self._context, request, response, self._handled_s, fate.throttle_ms
            )
        if fate.close or fate.silent:
            return
        if response is not None:
            self._send(request, response, fate.cut)
        if self._gate is not None and self._gate.closing is not None:
            raise CloseConnection(self._gate.closing)
        if rest_ms:
            await self._rest(rest_ms)

    async def _answer_or_refuse(
        self, request: ReceivedRequest, refuse: Refuse | None
    ) -> Response | None:
        """The broker's answer, with the error where a control function wants one."""
        message, version = request.message, request.version
        if refuse is None or message is None:
            return await self._answer(request)
        if is_refused_by_handler(message, refuse):
            answer = await self._answer(request, refuse)
            mark_refused(answer, refuse, self._topic_lookup)
            return answer
        rest, refused = split_refused(message, version, refuse, self._topic_lookup)
        if not expects_response(message, version):
            raise CloseConnection("a control function refused a request without an answer")
        if rest is None:
            return refused
        answer = await self._answer(request._replace(message=rest))
        if answer is not None:
            merge_refused(answer, refused, message, version)
        return answer

    async def _rest(self, ms: int) -> None:
        """Work on nothing for as long as a quota says (KIP-219)."""
        self._flush()
        await self._clock.sleep(ms / 1000)
        self._last_active = self._clock.monotonic()

    async def _take_bare_token(self, gate: SaslAuthenticator, data: bytes) -> None:
        """A token without a header is answered by one."""
        answer = frame(await gate.take_token_without_header(data))
        self._take_identity(gate)
        self._outgoing.append(answer)
        self._gathered_bytes += len(answer)

    def _take_identity(self, gate: SaslAuthenticator) -> None:
        """Let the client in as whom it has shown to be."""
        identity = gate.identity
        if identity is not None:
            self._context = replace(
                self._context,
                principal=identity.principal,
                token_authenticated=identity.token_authenticated,
            )
            self._reader.max_frame_bytes = self._settings.max_frame_bytes

    async def _answer(
        self, request: ReceivedRequest, refuse: Refuse | None = None
    ) -> Response | None:
        """Let the handler answer. Raises CloseConnection, as Kafka closes on what it cannot."""
        self._handled_s = 0.0  # also of what no handler answers
        api = self._apis.get(request.api_key)
        message = request.message
        context = self._context_of(request)
        if refuse is not None:
            context = replace(context, refuse=refuse)
        if api is None or message is None or request.version not in api.versions:
            if api is not None and api.fallback is not None:
                return api.fallback(context)
            raise CloseConnection(f"{request.name} v{request.version} is not supported")
        if self._gate is not None:
            answer = await self._gate.answer(request)
            if answer is not None:
                self._take_identity(self._gate)
                return answer
        began = self._clock.monotonic()
        decision = api.handle(context, message, request.version)
        self._handled_s = self._clock.monotonic() - began
        if isinstance(decision, DelayedResponse):
            self._flush()
            response = await await_response(decision, self._clock)
            self._last_active = self._clock.monotonic()
            return response
        if self._gate is not None:
            self._gate.answered(request, decision)
        return decision

    def _context_of(self, request: ReceivedRequest) -> Context:
        """What the handler may know: that of the last request, unless the client's id is new."""
        if request.client_id != self._context.client_id:
            self._context = replace(self._context, client_id=request.client_id)
        return self._context

    def _send(self, request: ReceivedRequest, response: Response, cut: Cut | None = None) -> None:
        if request.message is None or self._is_beyond(request):
            version = 0
        elif expects_response(request.message, request.version):
            version = request.version
        else:
            return
        data = self._protocol.send(request, response, version)
        if cut is not None:
            self._outgoing.append(cut.of(data))
            raise CloseConnection("a control function cut the answer")
        self._outgoing.append(data)
        self._gathered_bytes += len(data)
        if self._gathered_bytes > _LARGE:
            self._flush()  # so that a client that does not read is seen, and waited for

    def _is_beyond(self, request: ReceivedRequest) -> bool:
        """Whether a version is not taken, and all the same answered."""
        api = self._apis.get(request.api_key)
        return api is not None and api.fallback is not None and request.version not in api.versions

    def _flush(self) -> None:
        """Write the responses that were gathered while more requests were at hand."""
        if self._outgoing and self._transport is not None:
            self._transport.write(b"".join(self._outgoing))
        self._outgoing.clear()
        self._gathered_bytes = 0

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
        logger.info("%s closed: %s", self.peer, log_safe(reason))
        self._flush()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.close()
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._clock.call_later(self._idle_limit, self.abort)


def _weight(frame: bytes) -> int:
    """What a frame counts of those that are queued: empty ones take memory, too."""
    return len(frame) + _FRAME_WEIGHT


async def await_response(decision: Decision, clock: Clock) -> Response | None:
    """Waits until a decision is no `DelayedResponse` any more, and returns the response.

    Several changes within one iteration of the event loop call `try_complete` once. No watcher and
    no timer stays behind if this is cancelled or `try_complete` raises.
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
