"""Who a client says that it is, by SASL: one small class a mechanism, and the hook for others."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, TypeAlias

from ..protocol.sasl import (
    BearerToken,
    ClientExchange,
    Credentials,
    OAuthBearerClient,
    client_exchange,
)
from ..wire.errors import AuthenticationError, ConfigurationError

__all__ = [
    "DelegationToken",
    "OAuthBearer",
    "Plain",
    "Sasl",
    "ScramSha256",
    "ScramSha512",
    "TokenFunction",
]


class Sasl(Protocol):
    """A mechanism with what it needs to know; anything of this form may be a client's `sasl`."""

    @property
    def mechanism(self) -> str:
        """The name for SaslHandshake."""
        ...

    @property
    def readable(self) -> bool:
        """Whether who sees its tokens can use them: then it belongs behind TLS."""
        ...

    async def exchange(self, host: str) -> ClientExchange:
        """A new exchange with the broker at `host`. Raises AuthenticationError."""
        ...


class _Password:
    """A mechanism of a name and a password."""

    mechanism: ClassVar[str]
    readable: ClassVar[bool] = False
    _credentials: Credentials

    async def exchange(self, host: str) -> ClientExchange:
        """A new exchange, with any broker."""
        return client_exchange(self.mechanism, self._credentials)


@dataclass(frozen=True)
class Plain(_Password):
    """PLAIN (RFC 4616): name and password, as they are. Raises ConfigurationError."""

    username: str
    password: str = field(repr=False)

    mechanism: ClassVar[str] = "PLAIN"
    readable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "_credentials", Credentials(self.username, self.password))


@dataclass(frozen=True)
class ScramSha256(_Password):
    """SCRAM-SHA-256 (RFC 7677): a proof that the password is known. Raises ConfigurationError.

    Name and password are taken as they are, as Kafka's own classes do; with `prepare_strings`
    they go through SASLprep (RFC 4013) first.
    """

    username: str
    password: str = field(repr=False)
    prepare_strings: bool = False

    mechanism: ClassVar[str] = "SCRAM-SHA-256"

    def __post_init__(self) -> None:
        credentials = Credentials(
            self.username, self.password, prepare_strings=self.prepare_strings
        )
        object.__setattr__(self, "_credentials", credentials)


@dataclass(frozen=True)
class ScramSha512(ScramSha256):
    """SCRAM-SHA-512: as SCRAM-SHA-256, with the longer hash."""

    mechanism: ClassVar[str] = "SCRAM-SHA-512"


@dataclass(frozen=True)
class DelegationToken(_Password):
    """A delegation token (KIP-48): its id, and its HMAC in base64, over SCRAM."""

    token_id: str
    hmac: str = field(repr=False)
    mechanism: str = "SCRAM-SHA-256"  # type: ignore[misc]  # here it is the user's to choose

    def __post_init__(self) -> None:
        credentials = Credentials(
            self.token_id, self.hmac, delegation_token=True, prepare_strings=False
        )
        object.__setattr__(self, "_credentials", credentials)


#: Gives a token, or its text; plain or async. It is asked for each connection and each time that
#: a session is about to end, so it may keep a token as long as that is good.
TokenFunction: TypeAlias = Callable[[], "str | BearerToken | Awaitable[str | BearerToken]"]


@dataclass(frozen=True)
class OAuthBearer:
    """OAUTHBEARER (RFC 7628, KIP-255): a token that a function of yours gets.

    `extensions` go beside every token that is given as text (KIP-342).
    """

    token: TokenFunction = field(repr=False)
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)

    mechanism: ClassVar[str] = "OAUTHBEARER"
    readable: ClassVar[bool] = True

    async def exchange(self, host: str) -> ClientExchange:
        """A new exchange, with a token asked for now. Raises AuthenticationError."""
        try:
            given = self.token()
            if inspect.isawaitable(given):
                given = await given
        except (AuthenticationError, ConfigurationError):
            raise
        except Exception as error:  # noqa: BLE001 - a function of the user's may raise anything
            # What it says may hold the secret that it was about, so only its kind is told.
            raise AuthenticationError(
                f"OAUTHBEARER: the token function raised {type(error).__name__}"
            ) from None
        if isinstance(given, str):
            given = BearerToken(given, self.extensions)
        if not isinstance(given, BearerToken):
            raise ConfigurationError(
                f"the token function gave a {type(given).__name__}: give a str or a BearerToken"
            )
        return OAuthBearerClient(given)
