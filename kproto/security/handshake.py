"""Encodes the first requests of a connection, ApiVersions and SASL, without I/O.

The proxy authenticates to a broker with this module before it forwards a client's bytes.
"""

from __future__ import annotations

from typing import Any, Final

from ..messages.api_versions_request import ApiVersionsRequest
from ..messages.base import Request
from ..protocol.headers import encode_request_header, parse_response_header, response_class
from ..protocol.negotiation import broker_ranges
from ..protocol.sasl import ClientExchange
from ..wire.errors import AuthenticationError, KprotoError, ProtocolError
from .authentication import Authentication, Step
from .sasl import Sasl

__all__ = ["ConnectionHandshake", "new_exchange"]

#: The version of ApiVersions that every broker supports.
_FIRST: Final = 0


async def new_exchange(sasl: Sasl, host: str, address: str) -> ClientExchange:
    """Returns a new exchange of `sasl` with the broker at `host`.

    A user's own mechanism may raise any exception. A KprotoError is raised unchanged; any other
    exception is raised as AuthenticationError, whose text has `address`.
    """
    try:
        return await sasl.exchange(host)
    except KprotoError:
        raise
    except Exception as error:  # noqa: BLE001 - see above; its text may hold a secret
        raise AuthenticationError(
            f"{address}: the mechanism {sasl.mechanism} raised {type(error).__name__}"
        ) from None


class ConnectionHandshake:
    """Runs one authentication by `exchange` at the broker `address`, frame by frame.

    `begin` returns the first frame to send. `next` returns the frame to send after each response,
    or None if the client is authenticated. Frames have no size prefix.

    `next` raises AuthenticationError if the broker refuses, BrokerConnectionError if a retry may
    succeed, and DecodeError or ProtocolError for an invalid response.
    """

    def __init__(self, exchange: ClientExchange, address: str, client_id: str) -> None:
        self._exchange = exchange
        self._address = address
        self._client_id = client_id
        self._authentication: Authentication | None = None
        self._pending_request: tuple[type[Request[Any]], int] | None = (
            None  # None after a bare token
        )
        self._count = 0

    def begin(self) -> bytes:
        """Returns the ApiVersions request."""
        return self._request(ApiVersionsRequest(), _FIRST)

    def next(self, frame: bytes) -> bytes | None:
        """Returns the frame to send after the response `frame`; None if authentication is over.

        May take milliseconds, to derive SCRAM keys.
        """
        if self._pending_request is None:
            assert self._authentication is not None
            return self._step(self._authentication.next(frame))
        answer = self._answer(*self._pending_request, frame)
        if self._authentication is None:
            ranges = broker_ranges(answer)
            self._authentication = Authentication(self._exchange, ranges, self._address)
            return self._step(self._authentication.begin())
        return self._step(self._authentication.next(answer))

    def disconnect_error(self) -> AuthenticationError | None:
        """Returns the error to raise if the broker closes the connection now, else None.

        Brokers before 1.0 close the connection to refuse a bare token. Returns None if the tokens
        are in SaslAuthenticate, because the SaslAuthenticate response has an error code.
        """
        return None if self._authentication is None else self._authentication.disconnect_error()

    def _step(self, step: Step | None) -> bytes | None:
        if step is None:
            return None
        if step.request is None:
            self._pending_request = None
            return step.token
        return self._request(step.request, step.version)

    def _request(self, request: Request[Any], version: int) -> bytes:
        cls = type(request)
        self._count += 1
        self._pending_request = (cls, version)
        header = encode_request_header(cls, version, self._count, self._client_id)
        return header + request.encode(version)

    def _answer(self, request: type[Request[Any]], version: int, frame: bytes) -> Any:
        assert request.API_KEY is not None
        cls = response_class(request.API_KEY)
        assert cls is not None
        number, at = parse_response_header(cls, version, frame)
        if number != self._count:
            raise ProtocolError(
                f"{self._address}: {cls.__name__} has the correlation id {number}, but "
                f"{self._count} was expected"
            )
        return cls.decode_from(frame, at, version)[0]
