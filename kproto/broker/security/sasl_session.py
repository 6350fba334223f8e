"""Tracks the SASL state of one connection, without I/O (KIP-43, KIP-152, KIP-255, KIP-368).

    FIRST ──ApiVersions──▶ HANDSHAKE ──SaslHandshake v1──▶ TOKENS ──SaslAuthenticate──▶ OPEN
      └──────SaslHandshake v0────────────────▶ TOKENS_WITHOUT_HEADER ──a frame──────────┘
    OPEN ──SaslHandshake, if the session has an end──▶ TOKENS, TOKENS_WITHOUT_HEADER
                                                       or OTHER_MECHANISM

FIRST and HANDSHAKE allow both versions of SaslHandshake. `ALLOWED_REQUESTS` has the requests that
each state allows; any other request closes the connection, as in Kafka. In TOKENS, ApiVersions and
SaslHandshake get an error response before the connection is closed. ENDED is the state after a
refusal. Times are parameters.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import Final, NamedTuple

from ...messages.api_versions_request import ApiVersionsRequest
from ...messages.sasl_authenticate_request import SaslAuthenticateRequest
from ...messages.sasl_handshake_request import SaslHandshakeRequest
from ...protocol.sasl import (
    BearerIdentity,
    BearerToken,
    BearerValidator,
    OAuthBearerServer,
    PlainServer,
    ScramSha256Server,
    ScramSha512Server,
    ServerExchange,
)
from ...protocol.sasl.plain import OTHER_AUTHORIZATION_ID
from ...protocol.sasl.scram import ScramServer
from ...wire.errors import AuthenticationError
from ..log_escaping import is_encodable
from ..principals import USER, Principal
from .tokens import DelegationTokens
from .users import Users

__all__ = ["MECHANISMS", "CredentialStore", "Identity", "SaslResult", "SaslSession", "SaslState"]

logger = logging.getLogger("kproto.broker")

#: The minimum seconds between two re-authentications of a connection (KIP-368).
REAUTHENTICATION_INTERVAL_S: Final = 1.0

#: The longest session lifetime of SaslAuthenticate, in ms.
_LONGEST_MS: Final = 2**63 - 1

_API_VERSIONS: Final = ApiVersionsRequest.API_KEY
_HANDSHAKE: Final = SaslHandshakeRequest.API_KEY
_AUTHENTICATE: Final = SaslAuthenticateRequest.API_KEY


class SaslState(Enum):
    """Names the states of a connection with SASL; the module's docstring has the transitions."""

    FIRST = auto()
    HANDSHAKE = auto()
    TOKENS = auto()
    TOKENS_WITHOUT_HEADER = auto()
    #: A re-authentication names another mechanism than the first authentication: the next request
    #: closes the connection.
    OTHER_MECHANISM = auto()
    OPEN = auto()
    ENDED = auto()


#: The API keys of the requests that each state allows; None for all. A token without a header has
#: no API key.
ALLOWED_REQUESTS: Final[Mapping[SaslState, frozenset[int] | None]] = {
    SaslState.FIRST: frozenset({_API_VERSIONS, _HANDSHAKE}),
    SaslState.HANDSHAKE: frozenset({_HANDSHAKE}),
    SaslState.TOKENS: frozenset({_AUTHENTICATE, _HANDSHAKE, _API_VERSIONS}),
    SaslState.TOKENS_WITHOUT_HEADER: frozenset(),
    SaslState.OTHER_MECHANISM: frozenset(),
    SaslState.OPEN: None,
    SaslState.ENDED: frozenset(),
}


@dataclass(frozen=True, slots=True)
class CredentialStore:
    """Holds the credentials for all mechanisms.

    `validate` validates bearer tokens; `validate_is_slow` is True if it may block.
    """

    users: Users
    tokens: DelegationTokens
    validate: BearerValidator
    validate_is_slow: bool = False


class Identity(NamedTuple):
    """Holds the principal of an authenticated client.

    `ends_at_ms` is the time at which the client's credentials expire, in ms since 1970; None if
    they never expire. `token_authenticated` is True if the client authenticated by a delegation
    token.
    """

    principal: Principal
    ends_at_ms: int | None = None
    token_authenticated: bool = False


class SaslResult(NamedTuple):
    """Holds the response to a client's token; `token` is the token to send to the client.

    If the client's token is refused, `error_message` is the text for the client and `fault` the
    text for the log; otherwise both are None. `lifetime_ms` is the session lifetime after
    authentication, 0 for no limit.
    """

    token: bytes
    lifetime_ms: int = 0
    error_message: str | None = None
    fault: str | None = None


class _Mechanism(NamedTuple):
    """Describes a mechanism.

    `exchange` creates an exchange from the credentials and the time in ms. `is_slow` returns True
    if the evaluation of a token may take milliseconds.
    """

    exchange: Callable[[CredentialStore, int], ServerExchange]
    is_slow: Callable[[CredentialStore], bool]


def _plain(known: CredentialStore, now_ms: int) -> ServerExchange:
    return PlainServer(known.users.for_plain, prepare_strings=False)


def _scram(
    server: type[ScramSha256Server | ScramSha512Server],
    number: int,
    known: CredentialStore,
    now_ms: int,
) -> ServerExchange:
    return server(
        partial(known.users.for_scram, number),
        token_lookup=lambda token_id: known.tokens.credential(number, token_id, now_ms),
        prepare_strings=False,
    )


def _has_tokens(known: CredentialStore) -> bool:
    return known.tokens.has_tokens


def _bearer(known: CredentialStore, now_ms: int) -> ServerExchange:
    return OAuthBearerServer(partial(_validated, known.validate))


def _validated(validate: BearerValidator, token: BearerToken) -> BearerIdentity:
    """Returns the identity for a bearer token. Raises AuthenticationError for a refused token.

    `validate` may be a user's function, and raise any exception. The exception's text is not
    logged, because it may contain the token.
    """
    try:
        identity: object = validate(token)
    except AuthenticationError:
        raise
    except Exception as error:  # noqa: BLE001 - a function of the user's
        fault = f"raised {type(error).__name__}"
    else:
        found = _fault_of(identity)
        if found is None:
            assert isinstance(identity, BearerIdentity)
            return identity
        fault = found
    logger.warning("the function that validates bearer tokens %s: the token is refused", fault)
    raise AuthenticationError("the bearer token could not be validated")


def _fault_of(identity: object) -> str | None:
    """Returns why the result of a validator is invalid; None if it is valid."""
    if not isinstance(identity, BearerIdentity):
        return f"returned a {type(identity).__name__} instead of a BearerIdentity"
    principal: object = identity.principal
    if not isinstance(principal, str) or not principal:
        return "returned a BearerIdentity whose principal is not a text, or empty"
    if not is_encodable(principal):
        return "returned a principal with a lone surrogate, which UTF-8 cannot encode"
    expires: object = identity.expires_at_ms
    if expires is not None and (isinstance(expires, bool) or not isinstance(expires, int)):
        return "returned a BearerIdentity whose expires_at_ms is not a whole number"
    return None


#: The SASL mechanisms. PLAIN derives a key for each authentication, SCRAM for the first use of a
#: delegation token. That takes milliseconds, and must not block the event loop.
MECHANISMS: Final[Mapping[str, _Mechanism]] = {
    "PLAIN": _Mechanism(_plain, lambda _: True),
    "SCRAM-SHA-256": _Mechanism(partial(_scram, ScramSha256Server, 1), _has_tokens),
    "SCRAM-SHA-512": _Mechanism(partial(_scram, ScramSha512Server, 2), _has_tokens),
    "OAUTHBEARER": _Mechanism(_bearer, lambda known: known.validate_is_slow),
}


class SaslSession:
    """Tracks the authentication of one connection.

    `lifetime_ms` is the maximum lifetime of its sessions (connections.max.reauth.ms), 0 for no
    limit. In all methods, `now` is in seconds of the monotonic clock, and `now_ms` in ms since
    1970.
    """

    def __init__(self, known: CredentialStore, mechanisms: Sequence[str], lifetime_ms: int) -> None:
        self.mechanisms = tuple(mechanisms)
        self.phase = SaslState.FIRST
        self.identity: Identity | None = None
        self._known = known
        self._lifetime_ms = lifetime_ms
        self._mechanism = ""
        self._exchange: ServerExchange | None = None
        self._ends_at: float | None = None
        self._reauthenticated_at: float | None = None

    def check_request(self, api_key: int, now: float) -> str | None:
        """Returns why a request must close the connection; None if the request is allowed.

        In the state OPEN the client is authenticated. The session may have a lifetime (KIP-368):
        - With a lifetime, a SaslHandshake starts a re-authentication, at most once a second.
        - After the end of the lifetime, any other request must close the connection. A
          SaslHandshake must close the connection, too, if the previous re-authentication began
          less than a second ago.
        - All other requests are allowed. A SaslHandshake that starts no re-authentication gets
          ILLEGAL_SASL_STATE from its handler.

        In any other state, only the requests in ALLOWED_REQUESTS are allowed.
        """
        if self.phase is SaslState.OPEN and self._ends_at is not None:
            if api_key == _HANDSHAKE and self._may_reauthenticate(now):
                self._reauthenticated_at = now
                self.phase = SaslState.HANDSHAKE
            elif now > self._ends_at:
                self.phase = SaslState.ENDED
                return "the session expired without re-authentication"
        admitted = ALLOWED_REQUESTS[self.phase]
        if admitted is None or api_key in admitted:
            return None
        if self.phase is SaslState.OTHER_MECHANISM:
            return f"re-authentication must use the same mechanism, {self._mechanism}"
        if self.identity is not None:
            return "the client sent a request during re-authentication"
        return "the client sent a request before it was authenticated"

    def _may_reauthenticate(self, now: float) -> bool:
        last = self._reauthenticated_at
        return last is None or now - last >= REAUTHENTICATION_INTERVAL_S

    def on_api_versions_response(self) -> None:
        """Updates the state after a successful ApiVersions.

        The client may not send ApiVersions again before SaslHandshake.
        """
        if self.phase is SaslState.FIRST:
            self.phase = SaslState.HANDSHAKE

    def select_mechanism(self, mechanism: str, version: int, now_ms: int) -> bool:
        """Selects the mechanism that a SaslHandshake names; `version` is its version.

        Returns False if the listener does not have the mechanism; then the caller must close the
        connection. There is one exception: if a re-authentication names another mechanism of the
        listener than the first authentication, this method returns True without selecting the
        mechanism, and the next request closes the connection.
        """
        if mechanism not in self.mechanisms:
            self.phase = SaslState.ENDED
            return False
        if self.identity is not None and mechanism != self._mechanism:
            self.phase = SaslState.OTHER_MECHANISM
            return True
        self._mechanism = mechanism
        self._exchange = MECHANISMS[mechanism].exchange(self._known, now_ms)
        self.phase = SaslState.TOKENS_WITHOUT_HEADER if version == 0 else SaslState.TOKENS
        return True

    def reject_unexpected_request(self) -> None:
        """Ends the authentication, because the client sent another request instead of a token."""
        self.phase = SaslState.ENDED

    @property
    def is_slow(self) -> bool:
        """Returns True if `evaluate_token` may take milliseconds, so that it needs a thread."""
        return MECHANISMS[self._mechanism].is_slow(self._known)

    @property
    def uses_validator(self) -> bool:
        """Returns True if `evaluate_token` calls a user's validator, which may block."""
        return self._mechanism == "OAUTHBEARER" and self.is_slow

    def evaluate_token(
        self, token: bytes, now: Callable[[], float], now_ms: Callable[[], int]
    ) -> SaslResult:
        """Evaluates a token of the client, and returns the response.

        Calls `now` and `now_ms` after the evaluation of the token, because the evaluation may be
        slow.
        """
        assert self._exchange is not None
        try:
            answer = self._exchange.next(token)
            if not self._exchange.done:
                return SaslResult(answer)
            identity = self._identity(self._exchange, now_ms())
        except AuthenticationError as error:
            return self._refuse(self._client_message(error, token), str(error))
        before = self.identity
        if before is not None and identity.principal != before.principal:
            message = (
                "Cannot change principals during re-authentication from"
                f" {'.'.join(before.principal)}: {'.'.join(identity.principal)}"
            )
            return self._refuse(message, message)
        self.identity = identity
        self.phase = SaslState.OPEN
        self._exchange = None
        return SaslResult(answer, self._start_session(identity, now(), now_ms()))

    def _start_session(self, identity: Identity, now: float, now_ms: int) -> int:
        """Starts a session; returns its lifetime in ms.

        The lifetime is the maximum lifetime of sessions, or the remaining lifetime of the
        credentials if that is shorter. Returns 0 if neither of the two is limited, or if the
        credentials have expired.
        """
        limits = [self._lifetime_ms] if self._lifetime_ms > 0 else []
        if identity.ends_at_ms is not None:
            limits.append(max(0, identity.ends_at_ms - now_ms))
        lifetime = min([*limits, _LONGEST_MS])
        self._ends_at = now + lifetime / 1000 if limits else None
        return lifetime if limits else 0

    def _identity(self, exchange: ServerExchange, now_ms: int) -> Identity:
        name = exchange.username
        assert name is not None
        if isinstance(exchange, OAuthBearerServer):
            return Identity(Principal(USER, name), exchange.expires_at_ms)
        if isinstance(exchange, ScramServer) and exchange.token_auth:
            token = self._known.tokens.valid_token(name, now_ms)
            if token is None:
                raise AuthenticationError("the delegation token has expired")
            return Identity(token.owner, token.expires_ms, token_authenticated=True)
        return Identity(Principal(USER, name))

    def _client_message(self, error: AuthenticationError, token: bytes) -> str:
        """Returns the error message for the client, which does not reveal whether the user exists.

        The message is Kafka's. Only a client with the right password learns that its authorization
        id is wrong.
        """
        if self._mechanism == "PLAIN":
            if str(error) == OTHER_AUTHORIZATION_ID:
                return (
                    "Authentication failed: Client requested an authorization id that is different "
                    "from username"
                )
            return _plain_message(token)
        if isinstance(self._exchange, OAuthBearerServer) and str(error).startswith("{"):
            return str(error)  # the JSON that the server also sends as a token (RFC 7628)
        what = "authentication" if self.identity is None else "re-authentication"
        return (
            f"Authentication failed during {what} due to invalid credentials with SASL mechanism"
            f" {self._mechanism}"
        )

    def _refuse(self, message: str, fault: str) -> SaslResult:
        self.phase = SaslState.ENDED
        self._exchange = None
        return SaslResult(b"", error_message=message, fault=fault)


def _plain_message(token: bytes) -> str:
    """Returns the message of Kafka's PLAIN server for a malformed token or a wrong password."""
    parts = token.split(b"\0", 3)
    if len(parts) != 3:
        return f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}"
    for what, part in (("username", parts[1]), ("password", parts[2])):
        if not part:
            return f"Authentication failed: {what} not specified"
    return "Authentication failed: Invalid username or password"
