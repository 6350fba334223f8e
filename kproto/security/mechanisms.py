"""Defines the SASL credentials of a client: a small class per mechanism, and a hook for others."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias, runtime_checkable

from ..protocol.sasl import (
    BearerToken,
    ClientExchange,
    Credentials,
    OAuthBearerClient,
    PlainClient,
    SaltedPasswords,
    ScramSha256Client,
    ScramSha512Client,
)
from ..wire.errors import (
    AuthenticationError,
    BrokerConnectionError,
    ConfigurationError,
    KprotoError,
)

__all__ = [
    "DelegationToken",
    "OAuthBearer",
    "Plain",
    "Sasl",
    "ScramSha256",
    "ScramSha512",
    "TokenFunction",
    "check_sasl",
]


@runtime_checkable
class Sasl(Protocol):
    """Describes a mechanism with its credentials; any such object may be a client's `sasl`."""

    @property
    def mechanism(self) -> str:
        """Returns the name for SaslHandshake."""
        ...

    @property
    def readable(self) -> bool:
        """Returns whether its tokens reveal the credentials; such a mechanism needs TLS."""
        ...

    async def exchange(self, host: str) -> ClientExchange:
        """Returns a new exchange with the broker at `host`. Raises AuthenticationError."""
        ...


def check_sasl(sasl: object) -> None:
    """Raises ConfigurationError for any other object than a SASL setting; quotes nothing of it."""
    if sasl is None:
        return
    if isinstance(sasl, type) or not isinstance(sasl, Sasl):
        kind = f"the class {sasl.__name__}" if isinstance(sasl, type) else type(sasl).__name__
        raise ConfigurationError(
            f"sasl is of {kind}; it must have `mechanism`, `readable` and `exchange`, as Plain,"
            " ScramSha256, ScramSha512, DelegationToken and OAuthBearer do"
        )


_SCRAM: Final[Mapping[str, Callable[..., ClientExchange]]] = {
    "SCRAM-SHA-256": ScramSha256Client,
    "SCRAM-SHA-512": ScramSha512Client,
}


class _Scram:
    """Authenticates by SCRAM with name and password, which is salted once for all connections."""

    mechanism = ""
    readable = False
    _credentials: Credentials
    _salting: SaltedPasswords

    def _set_credentials(self, credentials: Credentials) -> None:
        object.__setattr__(self, "_credentials", credentials)
        object.__setattr__(self, "_salting", SaltedPasswords())

    async def exchange(self, host: str) -> ClientExchange:
        """Returns a new exchange, for any broker."""
        return _SCRAM[self.mechanism](self._credentials, salting=self._salting)


@dataclass(frozen=True)
class Plain:
    """Authenticates by PLAIN (RFC 4616): name and password in plaintext. Raises
    ConfigurationError.
    """

    username: str
    password: str = field(repr=False)

    mechanism = "PLAIN"
    readable = True

    def __post_init__(self) -> None:
        Credentials(self.username, self.password)

    async def exchange(self, host: str) -> ClientExchange:
        """Returns a new exchange, for any broker."""
        return PlainClient(Credentials(self.username, self.password))


@dataclass(frozen=True)
class ScramSha256(_Scram):
    """Authenticates by SCRAM-SHA-256 (RFC 7677), a proof of the password. Raises
    ConfigurationError.

    Name and password are used unchanged, as Kafka's own classes do; `prepare_strings` applies
    SASLprep (RFC 4013) first.
    """

    username: str
    password: str = field(repr=False)
    prepare_strings: bool = False

    mechanism = "SCRAM-SHA-256"

    def __post_init__(self) -> None:
        self._set_credentials(
            Credentials(self.username, self.password, prepare_strings=self.prepare_strings)
        )


@dataclass(frozen=True)
class ScramSha512(ScramSha256):
    """Authenticates by SCRAM-SHA-512: as SCRAM-SHA-256, with a longer hash."""

    mechanism = "SCRAM-SHA-512"


@dataclass(frozen=True)
class DelegationToken(_Scram):
    """Authenticates by a delegation token (KIP-48): its id, and its HMAC in base64, over SCRAM."""

    token_id: str
    hmac: str = field(repr=False)
    mechanism: str = "SCRAM-SHA-256"  # the user chooses it here

    def __post_init__(self) -> None:
        if self.mechanism not in _SCRAM:
            raise ConfigurationError(
                f"a delegation token needs {' or '.join(_SCRAM)}, not {self.mechanism!r}"
            )
        self._set_credentials(
            Credentials(self.token_id, self.hmac, delegation_token=True, prepare_strings=False)
        )


#: Returns a token, or its text; plain or async. A plain function runs in the event loop, so a slow
#: one should be async and use `asyncio.to_thread`. It is called for each connection and before each
#: session ends, so it may cache a token as long as the token is valid.
TokenFunction: TypeAlias = Callable[[], "str | BearerToken | Awaitable[str | BearerToken]"]


@dataclass(frozen=True)
class OAuthBearer:
    """Authenticates by OAUTHBEARER (RFC 7628, KIP-255) with tokens of your function.

    `extensions` are added to every token that is text (KIP-342).
    """

    token: TokenFunction = field(repr=False)
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)

    mechanism = "OAUTHBEARER"
    readable = True

    async def exchange(self, host: str) -> ClientExchange:
        """Returns a new exchange, with a new token.

        Raises AuthenticationError, and BrokerConnectionError if the function raises TimeoutError or
        ConnectionError, because the issuer of tokens is then unavailable.
        """
        try:
            given = self.token()
            if inspect.isawaitable(given):
                given = await given
        except KprotoError:
            raise
        except (ConnectionError, TimeoutError) as error:
            raise BrokerConnectionError(
                f"OAUTHBEARER: the token function raised {type(error).__name__}"
            ) from None
        except Exception as error:  # noqa: BLE001 - a function of the user's may raise anything
            # Its text may contain a secret, so the error has only its type.
            raise AuthenticationError(
                f"OAUTHBEARER: the token function raised {type(error).__name__}"
            ) from None
        if isinstance(given, str):
            given = BearerToken(given, self.extensions)
        if not isinstance(given, BearerToken):
            raise ConfigurationError(
                f"the token function returned a {type(given).__name__}:"
                " return a str or a BearerToken"
            )
        return OAuthBearerClient(given)
