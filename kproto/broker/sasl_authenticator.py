"""Authenticates one connection of a listener with SASL, before its requests reach the handlers.

Handles SaslHandshake, SaslAuthenticate and tokens without a header, as Kafka's
SaslServerAuthenticator does. `SaslSession` decides whether the client is authenticated. If the
evaluation of a token may be slow, the evaluation runs in a thread, so that other connections are
not delayed. `session` reads and sends the bytes.
"""

from __future__ import annotations

import asyncio
import contextvars
import struct
from concurrent.futures import Executor
from functools import partial
from typing import Final

from ..clock import Clock
from ..messages.api_versions_request import ApiVersionsRequest
from ..messages.api_versions_response import ApiVersionsResponse
from ..messages.base import Response
from ..messages.sasl_authenticate_request import SaslAuthenticateRequest
from ..messages.sasl_authenticate_response import SaslAuthenticateResponse
from ..messages.sasl_handshake_request import SaslHandshakeRequest
from ..messages.sasl_handshake_response import SaslHandshakeResponse
from ..protocol.connection import ReceivedRequest
from ..protocol.error_codes import code_of
from ..protocol.headers import request_class
from ..protocol.received import name_of
from .registry import CloseConnection
from .security.sasl_session import Identity, SaslResult, SaslSession, SaslState

__all__ = ["SaslAuthenticator"]

_API_KEY: Final = struct.Struct(">h")


class SaslAuthenticator:
    """Authenticates one connection.

    `closing` is the reason to close the connection after the response; None to keep it open.
    `validators` is the executor that runs the user's function to validate bearer tokens; None is
    the event loop's default executor. If the function blocks in the default executor, it delays
    clients of other mechanisms.
    """

    def __init__(
        self, authentication: SaslSession, clock: Clock, validators: Executor | None = None
    ) -> None:
        self._authentication = authentication
        self._clock = clock
        self._validators = validators
        self.closing: str | None = None

    @property
    def identity(self) -> Identity | None:
        """Returns the identity of the client; None before the client is authenticated."""
        return self._authentication.identity

    @property
    def expects_token_without_header(self) -> bool:
        """Returns True if the next frame is a token without a request header.

        The client sends such tokens after SaslHandshake v0.
        """
        return self._authentication.phase is SaslState.TOKENS_WITHOUT_HEADER

    def check(self, data: bytes) -> None:
        """Raises CloseConnection if the state of the connection does not allow the request.

        `data` is the frame; only its API key is decoded.
        """
        if len(data) < _API_KEY.size:
            return  # the decoder raises an error later
        (api_key,) = _API_KEY.unpack_from(data)
        reason = self._authentication.check_request(api_key, self._clock.monotonic())
        if reason is not None:
            raise CloseConnection(f"{name_of(request_class(api_key), api_key)}: {reason}")

    async def answer(self, request: ReceivedRequest) -> Response | None:
        """Returns the response to a SASL request.

        Returns an error response if the client sends another request instead of the next token.
        Returns None if a handler must respond to the request. Raises CloseConnection if a
        re-authentication requests a mechanism that the listener does not have.
        """
        message = request.message
        phase = self._authentication.phase
        if phase is SaslState.OPEN:
            return None
        if phase is SaslState.TOKENS and not isinstance(message, SaslAuthenticateRequest):
            return self._refuse_instead_of_token(message)
        if isinstance(message, SaslHandshakeRequest):
            return self._handle_handshake(message, request.version)
        if isinstance(message, SaslAuthenticateRequest):
            answer = await self._evaluate_token(message.auth_bytes)
            if answer.error_message is not None:
                return SaslAuthenticateResponse(
                    error_code=code_of("SASL_AUTHENTICATION_FAILED"),
                    error_message=answer.error_message,
                )
            return SaslAuthenticateResponse(
                error_message=None,
                auth_bytes=answer.token,
                session_lifetime_ms=answer.lifetime_ms,
            )
        return None

    def on_response(self, request: ReceivedRequest, response: Response | None) -> None:
        """Updates the state after a handler's response.

        After a successful ApiVersions, another ApiVersions is not allowed before SaslHandshake.
        """
        if request.api_key == ApiVersionsRequest.API_KEY and (
            isinstance(response, ApiVersionsResponse) and not response.error_code
        ):
            self._authentication.on_api_versions_response()

    async def take_token_without_header(self, token: bytes) -> bytes:
        """Evaluates a token that the client sent without a request header.

        Returns the token to send to the client. Raises CloseConnection if authentication fails.
        """
        answer = await self._evaluate_token(token)
        if self.closing is not None:
            raise CloseConnection(self.closing)
        return answer.token

    def _refuse_instead_of_token(self, message: object) -> Response:
        self._authentication.reject_unexpected_request()
        self.closing = "the client sent another request instead of a SASL token"
        code = code_of("ILLEGAL_SASL_STATE")
        if isinstance(message, SaslHandshakeRequest):
            return SaslHandshakeResponse(error_code=code)
        return ApiVersionsResponse(error_code=code)

    def _handle_handshake(
        self, message: SaslHandshakeRequest, version: int
    ) -> SaslHandshakeResponse:
        mechanisms = self._authentication.mechanisms
        if self._authentication.select_mechanism(message.mechanism, version, self._clock.now_ms()):
            return SaslHandshakeResponse(mechanisms=mechanisms)
        self.closing = f"the client requested a mechanism other than {', '.join(mechanisms)}"
        if self.identity is not None:
            raise CloseConnection(
                self.closing
            )  # as Kafka: the response is sent only during the first authentication
        return SaslHandshakeResponse(
            error_code=code_of("UNSUPPORTED_SASL_MECHANISM"), mechanisms=mechanisms
        )

    async def _evaluate_token(self, token: bytes | memoryview) -> SaslResult:
        authentication, clock = self._authentication, self._clock
        if authentication.uses_validator:
            evaluate = partial(
                authentication.evaluate_token, bytes(token), clock.monotonic, clock.now_ms
            )
            answer = await asyncio.get_running_loop().run_in_executor(
                self._validators, partial(contextvars.copy_context().run, evaluate)
            )
        elif authentication.is_slow:
            answer = await asyncio.to_thread(
                authentication.evaluate_token, bytes(token), clock.monotonic, clock.now_ms
            )
        else:
            answer = authentication.evaluate_token(bytes(token), clock.monotonic, clock.now_ms)
        if answer.fault is not None:
            self.closing = f"authentication failed: {answer.fault}"
        return answer
