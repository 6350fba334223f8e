"""Who a client says that it is, by SASL: one small class a mechanism, and the hook for others."""

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
    """A mechanism with what it needs to know; anything of this form may be a client's `sasl`."""

    @property
    def mechanism(self) -> str:
        """Returns the name for SaslHandshake."""
        ...

    @property
    def readable(self) -> bool:
        """Returns whether who sees its tokens can use them: then it belongs behind TLS."""
        ...

    async def exchange(self, host: str) -> ClientExchange:
        """Returns a new exchange with the broker at `host`. Raises AuthenticationError."""
        ...


def check_sasl(given: object) -> None:
    """Raises ConfigurationError for what is no setting of SASL; its text quotes nothing of it."""
    if given is None:
        return
    if isinstance(given, type) or not isinstance(given, Sasl):
        kind = f"the class {given.__name__}" if isinstance(given, type) else type(given).__name__
        raise ConfigurationError(
            f"sasl is of {kind}; it must have `mechanism`, `readable` and `exchange`, as Plain,"
            " ScramSha256, ScramSha512, DelegationToken and OAuthBearer do"
        )


_SCRAM: Final[Mapping[str, Callable[..., ClientExchange]]] = {
    "SCRAM-SHA-256": ScramSha256Client,
    "SCRAM-SHA-512": ScramSha512Client,
}


class _Scram:
    """SCRAM by a name and a password, which is salted once for all connections."""

    mechanism = ""
    readable = False
    _credentials: Credentials
    _salting: SaltedPasswords

    def _know(self, credentials: Credentials) -> None:
        object.__setattr__(self, "_credentials", credentials)
        object.__setattr__(self, "_salting", SaltedPasswords())

    async def exchange(self, host: str) -> ClientExchange:
        """Returns a new exchange, with any broker."""
        return _SCRAM[self.mechanism](self._credentials, salting=self._salting)


@dataclass(frozen=True)
class Plain:
    """PLAIN (RFC 4616): name and password, as they are. Raises ConfigurationError."""

    username: str
    password: str = field(repr=False)

    mechanism = "PLAIN"
    readable = True

    def __post_init__(self) -> None:
        Credentials(self.username, self.password)

    async def exchange(self, host: str) -> ClientExchange:
        """Returns a new exchange, with any broker."""
        return PlainClient(Credentials(self.username, self.password))


@dataclass(frozen=True)
class ScramSha256(_Scram):
    """SCRAM-SHA-256 (RFC 7677): a proof that the password is known. Raises ConfigurationError.

    Name and password are taken as they are, as Kafka's own classes do; with `prepare_strings`
    they go through SASLprep (RFC 4013) first.
    """

    username: str
    password: str = field(repr=False)
    prepare_strings: bool = False

    mechanism = "SCRAM-SHA-256"

    def __post_init__(self) -> None:
        self._know(Credentials(self.username, self.password, prepare_strings=self.prepare_strings))


@dataclass(frozen=True)
class ScramSha512(ScramSha256):
    """SCRAM-SHA-512: as SCRAM-SHA-256, with the longer hash."""

    mechanism = "SCRAM-SHA-512"


@dataclass(frozen=True)
class DelegationToken(_Scram):
    """A delegation token (KIP-48): its id, and its HMAC in base64, over SCRAM."""

    token_id: str
    hmac: str = field(repr=False)
    mechanism: str = "SCRAM-SHA-256"  # here it is the user's to choose

    def __post_init__(self) -> None:
        if self.mechanism not in _SCRAM:
            raise ConfigurationError(
                f"a delegation token goes over {' or '.join(_SCRAM)}, not {self.mechanism!r}"
            )
        self._know(
            Credentials(self.token_id, self.hmac, delegation_token=True, prepare_strings=False)
        )


#: Gives a token, or its text; plain or async. A plain one runs in the event loop, so that one which
#: takes time should be async, with `asyncio.to_thread` inside. It is asked for each connection and
#: each time that a session is about to end, so it may keep a token as long as that is good.
TokenFunction: TypeAlias = Callable[[], "str | BearerToken | Awaitable[str | BearerToken]"]


@dataclass(frozen=True)
class OAuthBearer:
    """OAUTHBEARER (RFC 7628, KIP-255): a token that a function of yours gets.

    `extensions` go beside every token that is given as text (KIP-342).
    """

    token: TokenFunction = field(repr=False)
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)

    mechanism = "OAUTHBEARER"
    readable = True

    async def exchange(self, host: str) -> ClientExchange:
        """Returns a new exchange, with a token asked for now.

        Raises AuthenticationError, and BrokerConnectionError where the function raised
        TimeoutError or ConnectionError: who issues tokens is away.
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
