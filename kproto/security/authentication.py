"""Decides the next request of a client's SASL authentication (KIP-43, KIP-152), without I/O.

Uses SaslHandshake and SaslAuthenticate. For brokers 0.10 and 0.11 it uses SaslHandshake v0 and
then bare tokens: frames that hold a SASL token alone, without a request header. The
`ClientExchange` of the mechanism creates the tokens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias, TypeVar

from ..messages.base import Request, Response
from ..messages.sasl_authenticate_request import SaslAuthenticateRequest
from ..messages.sasl_authenticate_response import SaslAuthenticateResponse
from ..messages.sasl_handshake_request import SaslHandshakeRequest
from ..messages.sasl_handshake_response import SaslHandshakeResponse
from ..protocol.error_codes import ERRORS, code_of
from ..protocol.negotiation import ApiRange, negotiate
from ..protocol.sasl import ClientExchange
from ..protocol.sasl.text import printable
from ..wire.errors import (
    AuthenticationError,
    BrokerConnectionError,
    KprotoError,
    UnsupportedVersionError,
)

__all__ = ["Answer", "Authentication", "Step", "reauthenticate_after_ms"]

R = TypeVar("R", bound=Response)
T = TypeVar("T")

_NOT_ENABLED: Final = code_of("UNSUPPORTED_SASL_MECHANISM")
_ILLEGAL_STATE: Final = code_of("ILLEGAL_SASL_STATE")
_REFUSED: Final = code_of("SASL_AUTHENTICATION_FAILED")

#: From this version of SaslHandshake on, SaslAuthenticate requests carry the tokens.
_WITH_REQUESTS: Final = 1

#: The separators between user names and secrets in a token.
_PIECES: Final = re.compile("\0|\x01|auth=Bearer ")

#: The minimum length of a user name or secret that is hidden in errors. Shorter texts also occur in
#: ordinary words.
_LEAST_HIDDEN: Final = 4

#: Fraction of a session's lifetime after which the client authenticates again, and the maximum of a
#: random addition, so that not all clients authenticate at once (KIP-368).
_LEAST_PART: Final = 0.85
_PART_OF_CHANCE: Final = 0.10


class Step(NamedTuple):
    """Holds the next message: `request` in `version`, or the bare `token` if `request` is None."""

    request: Request[SaslHandshakeResponse] | Request[SaslAuthenticateResponse] | None
    version: int
    token: bytes = b""

    def __repr__(self) -> str:
        """Omits the token, which may contain a password."""
        name = "a bare token" if self.request is None else type(self.request).__name__
        return f"<Step: {name}, version {self.version}>"


#: The answer to a step: the response to its request, or the broker's bare token.
Answer: TypeAlias = SaslHandshakeResponse | SaslAuthenticateResponse | bytes


class Authentication:
    """Runs one authentication by `exchange` at the broker `address`, which supports `ranges`.

    `reauthenticating` marks a reauthentication (KIP-368). `begin` returns the first step. `next`
    returns the step after each answer, or None when the client is authenticated. `begin` raises
    AuthenticationError if the listener has no SASL. `next` raises AuthenticationError if the broker
    refuses, and BrokerConnectionError if a retry may succeed.
    """

    def __init__(
        self,
        exchange: ClientExchange,
        ranges: Mapping[int, ApiRange],
        address: str,
        *,
        reauthenticating: bool = False,
    ) -> None:
        self._reauthenticating = reauthenticating
        self._exchange = exchange
        self._ranges = ranges
        self._address = address
        self._mechanism = exchange.mechanism
        self._version = 0  # of SaslAuthenticate
        self._bare_tokens = False
        self._sent_tokens: list[bytes] = []
        #: Lifetime of the session in ms (KIP-368); 0 if it lasts as long as the connection.
        self.session_lifetime_ms = 0

    def begin(self) -> Step:
        """Returns the step with SaslHandshake, which names the mechanism."""
        version = self._negotiated(SaslHandshakeRequest)
        self._bare_tokens = (
            version < _WITH_REQUESTS or SaslAuthenticateRequest.API_KEY not in self._ranges
        )
        if self._bare_tokens:
            version = 0
        else:
            self._version = self._negotiated(SaslAuthenticateRequest)
        return Step(SaslHandshakeRequest(mechanism=self._mechanism), version)

    def _negotiated(self, request: type[Request[R]]) -> int:
        try:
            return negotiate(request, self._ranges)
        except UnsupportedVersionError as error:
            raise AuthenticationError(
                f"{self._address}: this listener has no SASL ({error}); connect without sasl, or"
                " to another port"
            ) from None

    def derives_keys(self, answer: Answer) -> bool:
        """Returns True if `next(answer)` may derive SCRAM keys.

        Deriving keys takes milliseconds, so the caller should then run `next` in a thread.
        """
        if isinstance(answer, SaslAuthenticateResponse):
            return not answer.error_code and bool(answer.auth_bytes)
        return isinstance(answer, bytes) and bool(answer)

    def next(self, answer: Answer) -> Step | None:
        """Returns the step after `answer`; None if the client is authenticated."""
        if isinstance(answer, SaslHandshakeResponse):
            self._check_handshake(answer)
            return self._send(self._call_mechanism(self._exchange.first))
        if isinstance(answer, bytes):
            token = answer
        else:
            self._check_refusal(answer)
            token = answer.auth_bytes
            self.session_lifetime_ms = max(0, answer.session_lifetime_ms)
        reply = self._call_mechanism(lambda: self._exchange.next(token))
        return None if self._exchange.done else self._send(reply)

    def _send(self, token: bytes) -> Step:
        self._sent_tokens.append(token)
        if self._bare_tokens:
            return Step(None, 0, token)
        return Step(SaslAuthenticateRequest(auth_bytes=token), self._version)

    def _call_mechanism(self, call: Callable[[], T]) -> T:
        """Returns the result of `call`; adds the broker's address to an AuthenticationError.

        A user's own mechanism may raise any exception. If it is no KprotoError, raises
        AuthenticationError instead.
        """
        try:
            return call()
        except KprotoError as error:
            if isinstance(error, AuthenticationError):
                raise AuthenticationError(f"{self._address}: {error}") from None
            raise
        except Exception as error:  # noqa: BLE001 - see above; its text may hold a secret
            raise AuthenticationError(
                f"{self._address}: the mechanism {self._mechanism} raised {type(error).__name__}"
            ) from None

    def _check_handshake(self, answer: SaslHandshakeResponse) -> None:
        code = answer.error_code
        if code == _NOT_ENABLED:
            enabled = ", ".join(printable(name) for name in answer.mechanisms) or "none"
            raise AuthenticationError(
                f"{self._address}: the SASL mechanism {self._mechanism} is not enabled at this"
                f" listener; these are: {enabled}"
            )
        if code == _ILLEGAL_STATE and self._reauthenticating:  # brokers accept one per second
            raise BrokerConnectionError(
                "the broker did not accept a reauthentication so early: the session lifetime is too"
                " short",
                address=self._address,
            )
        if code == _ILLEGAL_STATE:
            raise AuthenticationError(
                f"{self._address}: this listener has no SASL; connect without sasl, or to another"
                " port"
            )
        self._check_code(code, "")

    def _check_refusal(self, answer: SaslAuthenticateResponse) -> None:
        self._check_code(answer.error_code, self._redacted(answer.error_message or ""))

    def _redacted(self, text: str) -> str:
        """Returns the broker's error message `text` without the client's user names and secrets.

        Does not hide user names and secrets of fewer than `_LEAST_HIDDEN` characters.
        """
        pieces = {
            piece
            for token in self._sent_tokens
            for piece in _PIECES.split(token.decode("utf-8", "replace"))
        }
        # The longest first, because a password may begin with the user name.
        for piece in sorted(pieces, key=len, reverse=True):
            if len(piece) >= _LEAST_HIDDEN:
                text = text.replace(piece, "<hidden>")
        return printable(text)

    def _check_code(self, code: int, text: str) -> None:
        if not code:
            return
        detail = f": {text}" if text else ""
        if code == _REFUSED:
            raise AuthenticationError(
                f"{self._address}: the broker refused the {self._mechanism} authentication{detail}"
            )
        known = ERRORS.get(code)
        name = f"{known.name} ({code})" if known else f"error code {code}"
        what = f"the {self._mechanism} authentication was answered with {name}{detail}"
        if known is not None and known.retriable:
            raise BrokerConnectionError(what, address=self._address)
        raise AuthenticationError(f"{self._address}: {what}")

    def disconnect_error(self) -> AuthenticationError | None:
        """Returns the error for a broker that closed the connection after a bare token.

        Brokers before 1.0 refuse a bare token by closing the connection. Returns None if
        SaslAuthenticate carries the tokens, because the SaslAuthenticate response has an error
        code.
        """
        if not self._bare_tokens:
            return None
        return AuthenticationError(
            f"{self._address}: the broker closed the connection on a token of {self._mechanism};"
            " brokers before 1.0 refuse a token in this way: check user name and password"
        )


def reauthenticate_after_ms(lifetime_ms: int, chance: float) -> float:
    """Returns the time of the reauthentication, in ms after the session began (KIP-368).

    `lifetime_ms` is the session's lifetime, `chance` is a random number with 0 <= chance < 1.
    """
    return lifetime_ms * (_LEAST_PART + _PART_OF_CHANCE * chance)
