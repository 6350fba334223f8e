"""SASL for both sides of a connection: PLAIN (RFC 4616), and the table of mechanisms.

An exchange object turns the peer's tokens into ours; what carries them (SaslAuthenticate, or bare
frames behind SaslHandshake v0) is for others to know. A client's shell is the same for all:

    exchange = client_exchange("SCRAM-SHA-256", Credentials("alice", "secret"))
    token = exchange.first()
    while not exchange.done:
        token = exchange.next(await send(token))

No socket, no clock. Randomness is drawn where none is handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from ..wire.errors import AuthenticationError, ConfigurationError
from .credentials import MIN_ITERATIONS, CredentialLookup, Credentials, SaltedCredential
from .sasl_text import MAX_TOKEN_BYTES, decode_text, encode_text, saslprep
from .scram import (
    INVALID_CREDENTIALS,
    MAX_ITERATIONS,
    ScramSha256Client,
    ScramSha256Server,
    ScramSha512Client,
    ScramSha512Server,
)

__all__ = [
    "MAX_ITERATIONS",
    "MAX_TOKEN_BYTES",
    "MECHANISMS",
    "MIN_ITERATIONS",
    "ClientExchange",
    "CredentialLookup",
    "Credentials",
    "Mechanism",
    "PlainClient",
    "PlainServer",
    "SaltedCredential",
    "ScramSha256Client",
    "ScramSha256Server",
    "ScramSha512Client",
    "ScramSha512Server",
    "ServerExchange",
    "client_exchange",
    "server_exchange",
]


class ClientExchange(Protocol):
    """A client's side of one authentication. Raises `AuthenticationError`, then stays failed."""

    @property
    def mechanism(self) -> str:
        """The name for SaslHandshake."""
        ...

    @property
    def done(self) -> bool:
        """Whether the server has answered all that it must."""
        ...

    def first(self) -> bytes:
        """The token that opens the exchange; to be called once."""
        ...

    def next(self, challenge: bytes) -> bytes:
        """The answer to the server's token; once `done`, it is empty and need not be sent."""
        ...


class ServerExchange(Protocol):
    """A server's side of one authentication. Raises `AuthenticationError`, then stays failed."""

    @property
    def mechanism(self) -> str:
        """The name from SaslHandshake."""
        ...

    @property
    def done(self) -> bool:
        """Whether the client has proved who it is."""
        ...

    @property
    def username(self) -> str | None:
        """Who the client is; None until it is proved."""
        ...

    def next(self, response: bytes) -> bytes:
        """The answer to the client's token, to be sent also when `done`."""
        ...


class PlainClient:
    """A client of PLAIN: name and password in one token, readable by all who see it: use TLS.

    Raises `ConfigurationError` for a delegation token, which Kafka takes over SCRAM alone.
    """

    mechanism = "PLAIN"

    def __init__(self, credentials: Credentials) -> None:
        if credentials.delegation_token:
            raise ConfigurationError(
                "PLAIN cannot carry a delegation token: use SCRAM-SHA-256 or SCRAM-SHA-512"
            )
        self._credentials = credentials
        self._begun = False
        self._done = False

    @property
    def done(self) -> bool:
        """Whether the server has accepted the token."""
        return self._done

    def first(self) -> bytes:
        """`NUL name NUL password` (RFC 4616, 2). String preparation is for the server to do."""
        if self._begun:
            raise AuthenticationError("PLAIN: this exchange has already begun")
        self._begun = True
        name = encode_text(self._credentials.username, "user name")
        password = encode_text(self._credentials.password, "password")
        return b"\0" + name + b"\0" + password

    def next(self, challenge: bytes) -> bytes:
        """Take the server's answer, whose content means nothing here; Kafka's is empty."""
        if not self._begun or self._done:
            raise AuthenticationError("PLAIN: no message of the server is due here")
        self._done = True
        return b""


class PlainServer:
    """A server of PLAIN, which checks the password against a salted credential of any hash.

    With `prepare_strings` name and password go through SASLprep first, as RFC 4616 wants it.
    """

    mechanism = "PLAIN"

    def __init__(self, lookup: CredentialLookup, *, prepare_strings: bool = True) -> None:
        self._lookup = lookup
        self._prepare_strings = prepare_strings
        self._begun = False
        self._username: str | None = None

    @property
    def done(self) -> bool:
        """Whether the password was right."""
        return self._username is not None

    @property
    def username(self) -> str | None:
        """The user; None until the password was right."""
        return self._username

    def next(self, response: bytes) -> bytes:
        """Check the client's one token; the answer to a right one is empty."""
        if self._begun:
            raise AuthenticationError("PLAIN: no message of the client is due here")
        self._begun = True
        authorization_id, name, password = _parse_plain(response)
        if self._prepare_strings:
            name = saslprep(name, "user name")
            if authorization_id:
                authorization_id = saslprep(authorization_id, "authorization id")
        if authorization_id not in ("", name):
            raise AuthenticationError("PLAIN: a user may act for itself alone")
        credential = self._lookup(name)
        if credential is None or not credential.matches(
            password, prepare_strings=self._prepare_strings
        ):
            raise AuthenticationError(f"PLAIN: {INVALID_CREDENTIALS}")
        self._username = name
        return b""


class Mechanism(NamedTuple):
    """How to make the two sides of a mechanism."""

    client: Callable[[Credentials], ClientExchange]
    server: Callable[[CredentialLookup], ServerExchange]


#: Every mechanism known here, by the name that SaslHandshake gives it.
MECHANISMS: Final[Mapping[str, Mechanism]] = MappingProxyType(
    {
        "PLAIN": Mechanism(PlainClient, PlainServer),
        "SCRAM-SHA-256": Mechanism(ScramSha256Client, ScramSha256Server),
        "SCRAM-SHA-512": Mechanism(ScramSha512Client, ScramSha512Server),
    }
)


def client_exchange(mechanism: str, credentials: Credentials) -> ClientExchange:
    """The client's side of a mechanism, with its default settings.

    Raises `ConfigurationError` for an unknown mechanism.
    """
    return _find(mechanism).client(credentials)


def server_exchange(mechanism: str, lookup: CredentialLookup) -> ServerExchange:
    """The server's side of a mechanism, with its default settings.

    Raises `ConfigurationError` for an unknown mechanism; a broker answers a client that asks for
    one with error code 33 and the names in `MECHANISMS`.
    """
    return _find(mechanism).server(lookup)


def _find(mechanism: str) -> Mechanism:
    found = MECHANISMS.get(mechanism)
    if found is None:
        raise ConfigurationError(
            f"SASL mechanism {mechanism!r} is not known: take one of {', '.join(MECHANISMS)}"
        )
    return found


def _parse_plain(token: bytes) -> tuple[str, str, str]:
    """Authorization id (may be empty), user name and password (RFC 4616, 2)."""
    parts = decode_text(token, "the client's PLAIN message").split("\0")
    if len(parts) != 3:
        raise AuthenticationError(
            "the client's PLAIN message is not three texts with a NUL between them"
        )
    authorization_id, name, password = parts
    if not name or not password:
        raise AuthenticationError("the client's PLAIN message has an empty user name or password")
    return authorization_id, name, password
