"""Observes one connection: its opening, its requests in flight, and its end.

Brokers respond to the requests of a connection in order. So the watch has its own queue of
requests, and the connection reports a response without its request.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

from ...messages.base import Message, Response
from ...messages.fetch_response import FetchResponse
from ...messages.produce_response import ProduceResponse
from ...protocol.codes_in_messages import error_codes_in
from ...protocol.error_codes import ERRORS
from ...wire.errors import KprotoError
from .calls import HookCalls
from .counts import ApiCounts, BrokerCounts
from .hooks import ConnectionEvent, RequestEvent
from .log_lines import is_enabled, log, reason_of

__all__ = ["NO_WATCH", "ConnectionWatch", "NullWatch"]

T = TypeVar("T")

#: The size of the length field before each frame.
_LENGTH_BYTES: Final = 4

#: The field with the partitions of a topic, for frequent responses.
_PARTS: Final[dict[type[Response], str]] = {
    ProduceResponse: "partition_responses",
    FetchResponse: "partitions",
}

#: The class of a request, its version, the size of its frame in bytes, and the time of its write.
_Written = tuple[type[Message], int, int, float]


class ConnectionWatch:
    """Counts and reports the requests of one connection.

    The connection calls a method for each event. Times are in seconds of the client's clock.
    """

    __slots__ = (
        "_apis",
        "_broker",
        "_calls",
        "_is_throttled",
        "_monotonic",
        "_opened_at",
        "_written",
        "address",
    )

    def __init__(
        self,
        address: str,
        broker: BrokerCounts,
        apis: dict[type[Message], ApiCounts],
        calls: HookCalls,
        monotonic: Callable[[], float],
    ) -> None:
        self.address = address
        self._broker = broker
        self._apis = apis
        self._calls = calls
        self._monotonic = monotonic
        self._written: deque[_Written] = deque()
        self._opened_at = -1.0
        self._is_throttled = False

    # Opening and closing

    async def open(self, connect: Callable[[], Awaitable[T]]) -> T:
        """Returns the connection that `connect` opens; reports success or failure."""
        started_at = self._monotonic()
        broker, address = self._broker, self.address
        try:
            connection = await connect()
        except KprotoError as error:
            broker.failed += 1
            broker.failures_in_a_row += 1
            level = logging.WARNING if broker.failures_in_a_row == 1 else logging.DEBUG
            log(level, "no connection to %s: %s", address, reason_of(error))
            self._report_event("failed", started_at, error)
            raise
        self._opened_at = self._monotonic()
        broker.opened += 1
        if broker.failures_in_a_row:
            failures = broker.failures_in_a_row
            log(logging.INFO, "connected to %s, after %d failed attempts", address, failures)
            broker.failures_in_a_row = 0
        else:
            took_ms = 1000 * (self._opened_at - started_at)
            log(logging.INFO, "connected to %s in %.1f ms", address, took_ms)
        self._report_event("opened", started_at, None)
        return connection

    def lost(self, error: KprotoError, *, had_requests: bool, was_closed_here: bool) -> None:
        """Reports the end of the connection: requests in flight get no response.

        Only the first call has an effect. `had_requests` is True if a request was in flight. A
        request that was sent on an idle connection does not count. `was_closed_here` is True if the
        client closed the connection itself.
        """
        in_flight = len(self._written)
        while self._written:
            self._complete(self._written.popleft(), 0, (type(error).__name__,))
        if self._opened_at < 0:
            return
        started_at, self._opened_at = self._opened_at, -1.0
        self._broker.closed += 1
        seconds = self._monotonic() - started_at
        if was_closed_here:
            log(logging.DEBUG, "closed the connection to %s after %.1f s", self.address, seconds)
        else:
            self._broker.lost += 1
            log(
                logging.WARNING if had_requests else logging.INFO,
                "lost the connection to %s after %.1f s, %d requests were in flight: %s",
                self.address,
                seconds,
                in_flight,
                reason_of(error),
            )
        self._report_event("closed", started_at, None if was_closed_here else error)

    def _report_event(self, kind: Any, started_at: float, error: KprotoError | None) -> None:
        if self._calls.on_connection is not None:
            took_ms = 1000 * (self._monotonic() - started_at)
            self._calls.on_connection(ConnectionEvent(kind, self.address, took_ms, error))

    # Requests

    def written(self, request: type[Message], version: int, size: int, now: float) -> None:
        """Reports a request that gets a response; its frame has `size` bytes."""
        self._written.append((request, version, size, now))
        self._broker.in_flight += 1

    def sent_only(self, request: type[Message], version: int, size: int, now: float) -> None:
        """Reports a request that gets no response."""
        self._broker.in_flight += 1
        self._complete((request, version, size, now), 0, ())

    def answered(self, size: int, outcome: Response | KprotoError) -> None:
        """Reports the outcome of the oldest request in flight: the response or an error.

        `size` is the size of the response in bytes, without the length field of the frame.
        """
        if not self._written:
            return
        written = self._written.popleft()
        errors: Sequence[str]
        if isinstance(outcome, KprotoError):
            errors = (type(outcome).__name__,)
        else:
            errors = _errors_of(outcome)
            throttle_ms = getattr(outcome, "throttle_time_ms", 0)
            if throttle_ms > 0 or self._is_throttled:
                self._throttled(throttle_ms, written[0])
        self._complete(written, size + _LENGTH_BYTES, errors)

    def _complete(self, written: _Written, bytes_in: int, errors: Sequence[str]) -> None:
        request, version, bytes_out, at = written
        api = self._apis.get(request)
        if api is None:
            api = self._apis[request] = ApiCounts(_name_of(request))
        latency_ms = 1000 * (self._monotonic() - at)
        self._broker.in_flight -= 1
        api.requests += 1
        api.bytes_out += bytes_out
        if bytes_in:
            api.bytes_in += bytes_in
            api.latency.add(latency_ms)
        if errors:
            api.errors.update(errors)
        on_request = self._calls.on_request
        if on_request is not None:
            first = errors[0] if errors else None
            on_request(
                RequestEvent(
                    api.name, version, self.address, bytes_out, bytes_in, latency_ms, first
                )
            )
        if is_enabled(logging.DEBUG):
            log(
                logging.DEBUG,
                "%s v%d to %s: %d bytes, %d back in %.1f ms, %s",
                api.name,
                version,
                self.address,
                bytes_out,
                bytes_in,
                latency_ms,
                ", ".join(errors) or "no error",
            )

    def _throttled(self, ms: int, request: type[Message]) -> None:
        if ms > 0:
            self._broker.throttled += 1
            self._broker.throttle_ms += ms
            if not self._is_throttled:
                line = "%s throttles this client, by %d ms for %s"
                log(logging.WARNING, line, self.address, ms, _name_of(request))
        else:
            log(logging.INFO, "%s throttles this client no more", self.address)
        self._is_throttled = ms > 0


class NullWatch(ConnectionWatch):
    """Counts nothing, and reports nothing."""

    def __init__(self) -> None:
        super().__init__("", BrokerCounts(), {}, HookCalls(None), lambda: 0.0)

    async def open(self, connect: Callable[[], Awaitable[T]]) -> T:
        return await connect()

    def lost(self, error: KprotoError, *, had_requests: bool, was_closed_here: bool) -> None:
        pass

    def written(self, request: type[Message], version: int, size: int, now: float) -> None:
        pass

    def sent_only(self, request: type[Message], version: int, size: int, now: float) -> None:
        pass

    def answered(self, size: int, outcome: Response | KprotoError) -> None:
        pass


NO_WATCH: Final = NullWatch()


def _name_of(request: type[Message]) -> str:
    return request.__name__.removesuffix("Request")


def _errors_of(response: Response) -> Sequence[str]:
    """Returns the names of all error codes in a response, with shortcuts for frequent responses."""
    parts = _PARTS.get(type(response))
    if parts is not None:
        often: Any = response
        codes = [
            part.error_code
            for topic in often.responses
            for part in getattr(topic, parts)
            if part.error_code
        ]
        if parts == "partitions" and often.error_code:
            codes.append(often.error_code)
    else:
        codes = [code for code in error_codes_in(response) if code]
    return [_error_name(code) for code in codes] if codes else ()


def _error_name(code: int) -> str:
    """Returns the name of an error code.

    All unknown codes share one name, because a broker may send many of them.
    """
    known = ERRORS.get(code)
    return "UNKNOWN_CODE" if known is None else known.name
