"""Defines the SASL credentials of a client: a class for each mechanism."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from ..protocol.sasl import (
    BearerToken,
    ClientExchange,
    Credentials,
    OAuthBearerClient,
    PasswordSalter,
    PlainClient,
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
    "ScramSha256",
    "ScramSha512",
    "TokenFunction",
]


_SCRAM: Final[Mapping[str, Callable[..., ClientExchange]]] = {
    "SCRAM-SHA-256": ScramSha256Client,
    "SCRAM-SHA-512": ScramSha512Client,
}


class _Scram:
    """Authenticates by SCRAM.

    The salted password is cached, because the computation takes milliseconds.
    """

    mechanism = ""
    readable = False
    _credentials: Credentials
    _salting: PasswordSalter

    def _set_credentials(self, credentials: Credentials) -> None:
        object.__setattr__(self, "_credentials", credentials)
        object.__setattr__(self, "_salting", PasswordSalter())

    async def exchange(self, host: str) -> ClientExchange:
        """Returns a new exchange; `host` is not used."""
        return _SCRAM[self.mechanism](self._credentials, salting=self._salting)


@dataclass(frozen=True)
class Plain:
    """Authenticates by PLAIN (RFC 4616), which sends name and password in plaintext.

    Raises ConfigurationError for a name or password that PLAIN cannot send.
    """

    username: str
    password: str = field(repr=False)

    mechanism = "PLAIN"
    readable = True

    def __post_init__(self) -> None:
        Credentials(self.username, self.password)

    async def exchange(self, host: str) -> ClientExchange:
        """Returns a new exchange; `host` is not used."""
        return PlainClient(Credentials(self.username, self.password))


@dataclass(frozen=True)
class ScramSha256(_Scram):
    """Authenticates by SCRAM-SHA-256 (RFC 7677), which proves the password without sending it.

    By default, name and password are used unchanged, as in Kafka's own client. With
    `prepare_strings`, SASLprep (RFC 4013) is applied to them. Raises ConfigurationError for an
    invalid name or password.
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
    """Authenticates by SCRAM-SHA-512. The arguments are those of `ScramSha256`."""

    mechanism = "SCRAM-SHA-512"


@dataclass(frozen=True)
class DelegationToken(_Scram):
    """Authenticates by a delegation token over SCRAM (KIP-48): token id, and HMAC in base64.

    Raises ConfigurationError if `mechanism` is neither SCRAM-SHA-256 nor SCRAM-SHA-512, and for an
    invalid token id or HMAC.
    """

    token_id: str
    hmac: str = field(repr=False)
    mechanism: str = "SCRAM-SHA-256"  # a field, because tokens work with either mechanism

    def __post_init__(self) -> None:
        if self.mechanism not in _SCRAM:
            raise ConfigurationError(
                f"a delegation token needs {' or '.join(_SCRAM)}, not {self.mechanism!r}"
            )
        self._set_credentials(
            Credentials(self.token_id, self.hmac, delegation_token=True, prepare_strings=False)
        )


#: A function, plain or async, that returns a token as str or BearerToken. A plain function blocks
#: the event loop, so a slow one should be async and use `asyncio.to_thread`. It is called for each
#: connection and for each reauthentication, and may cache the token while the token is valid.
TokenFunction: TypeAlias = Callable[[], "str | BearerToken | Awaitable[str | BearerToken]"]


@dataclass(frozen=True)
class OAuthBearer:
    """Authenticates by OAUTHBEARER (RFC 7628, KIP-255) with tokens that your function returns.

    `extensions` (KIP-342) are sent with each token that is a str; a BearerToken has its own
    extensions.
    """

    token: TokenFunction = field(repr=False)
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)

    mechanism = "OAUTHBEARER"
    readable = True

    async def exchange(self, host: str) -> ClientExchange:
        """Returns a new exchange, with a new token; `host` is not used.

        Calls the user's token function. Raises BrokerConnectionError if the function raises
        ConnectionError or TimeoutError, because the issuer is unavailable. Raises a KprotoError of
        the function unchanged, and AuthenticationError for other exceptions. Raises
        ConfigurationError if the result is neither str nor BearerToken, or cannot be sent as a
        token.
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
            # The exception's text may contain a secret, so the error has only the type.
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
