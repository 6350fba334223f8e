"""Implements OAUTHBEARER (RFC 7628, KIP-255) for both sides: a token and extensions in one message.

The server passes the token to a validator, which the caller supplies. Does no I/O, and reads no
clock.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeAlias

from ...wire.errors import AuthenticationError, ConfigurationError
from .text import decode_text, printable

__all__ = [
    "BearerIdentity",
    "BearerToken",
    "BearerValidator",
    "OAuthBearerClient",
    "OAuthBearerServer",
]

_SEPARATOR: Final = "\x01"

#: The client's acknowledgement of a refusal, before the server ends the exchange (RFC 7628, 3.2.3).
_ACKNOWLEDGED: Final = b"\x01"

#: The key that carries the token; no extension may have it.
_AUTH: Final = "auth"

# RFC 6750, 2.1: b64token.
_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
# RFC 7628, 3.1: key and value of a pair.
_KEY: Final = re.compile(r"[A-Za-z]+")
_VALUE: Final = re.compile(r"[\x21-\x7e \t\r\n]+")
_GS2_HEADER: Final = re.compile(r"n,(?:a=((?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+))?,")
_CREDENTIAL: Final = re.compile(rf"bearer +({_TOKEN.pattern})", re.IGNORECASE)

#: Maximum number of characters of a server's refusal that an error quotes.
_SHOWN: Final = 200


@dataclass(frozen=True, slots=True)
class BearerToken:
    """Holds an access token as a client sends it, and its SASL extensions (KIP-342).

    Raises `ConfigurationError` for a token or an extension that an OAUTHBEARER message cannot have.
    """

    value: str = field(repr=False)
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.value, str) or not _TOKEN.fullmatch(self.value):
            raise ConfigurationError(
                "the OAUTHBEARER token holds characters that no bearer token has, or is empty"
                " (RFC 6750, 2.1): pass only the token, without 'Bearer'"
            )
        for key, value in self.extensions.items():
            if not _KEY.fullmatch(key) or key == _AUTH:
                raise ConfigurationError(
                    f"the OAUTHBEARER extension {key!r} cannot be sent: its name is made of the"
                    " letters A to Z, and is not 'auth'"
                )
            if not _VALUE.fullmatch(value):
                raise ConfigurationError(
                    f"the OAUTHBEARER extension {key!r} has a value that cannot be sent: it is"
                    " made of printable ASCII, and not empty"
                )


@dataclass(frozen=True, slots=True)
class BearerIdentity:
    """Holds the principal of a token, and the token's expiry in ms since 1970 (None: no expiry)."""

    principal: str
    expires_at_ms: int | None = None


#: Returns the identity of a token. Raises `AuthenticationError` for an invalid token.
BearerValidator: TypeAlias = Callable[[BearerToken], BearerIdentity]


class OAuthBearerClient:
    """Implements a client of OAUTHBEARER: it sends the token in clear text, so it needs TLS."""

    mechanism = "OAUTHBEARER"

    def __init__(self, token: BearerToken) -> None:
        self._token = token
        self._started = False
        self._done = False
        self._refusal: str | None = None

    @property
    def done(self) -> bool:
        """Returns True if the server has accepted the token."""
        return self._done

    def first(self) -> bytes:
        """Returns the client's first message: GS2 header, token and extensions (RFC 7628, 3.1)."""
        if self._started:
            raise AuthenticationError("OAUTHBEARER: this exchange has already begun")
        self._started = True
        pairs = [(_AUTH, f"Bearer {self._token.value}"), *self._token.extensions.items()]
        text = "".join(f"{key}={value}{_SEPARATOR}" for key, value in pairs)
        return f"n,,{_SEPARATOR}{text}{_SEPARATOR}".encode("ascii")

    def next(self, challenge: bytes) -> bytes:
        """Processes the server's answer; an empty answer means that the server accepts the token.

        For a refusal it returns the acknowledgement to send. The next call, with the server's next
        answer, raises the refusal as `AuthenticationError`.
        """
        if not self._started or self._done:
            raise AuthenticationError("OAUTHBEARER: unexpected message of the server")
        if self._refusal is not None:
            raise AuthenticationError(f"OAUTHBEARER: the server refused the token{self._refusal}")
        if not challenge:
            self._done = True
            return b""
        self._refusal = _reason(challenge)
        return _ACKNOWLEDGED


class OAuthBearerServer:
    """Implements a server of OAUTHBEARER, which checks tokens with `validate`."""

    mechanism = "OAUTHBEARER"

    def __init__(self, validate: BearerValidator) -> None:
        self._validate = validate
        self._started = False
        self._identity: BearerIdentity | None = None
        self._refusal: str | None = None

    @property
    def done(self) -> bool:
        """Returns True if the client has sent a valid token."""
        return self._identity is not None

    @property
    def username(self) -> str | None:
        """Returns the principal of the token; None unless `done`."""
        return None if self._identity is None else self._identity.principal

    @property
    def expires_at_ms(self) -> int | None:
        """Returns the expiry of the token in ms since 1970.

        Returns None before `done` is True, or if the token does not expire.
        """
        return None if self._identity is None else self._identity.expires_at_ms

    def next(self, response: bytes) -> bytes:
        """Checks the client's token; returns an empty answer if it is valid.

        For an invalid token it returns the refusal as JSON. The next call, with the client's
        acknowledgement, raises the refusal as `AuthenticationError`. A malformed message, and an
        authorization id other than the principal, raise `AuthenticationError` at once.
        """
        if self._refusal is not None:
            raise AuthenticationError(self._refusal)
        if self._started:
            raise AuthenticationError("OAUTHBEARER: unexpected message of the client")
        self._started = True
        authorization_id, token = _parse(response)
        try:
            identity = self._validate(token)
        except AuthenticationError:
            self._refusal = json.dumps({"status": "invalid_token"}, separators=(",", ":"))
            return self._refusal.encode()
        if authorization_id not in ("", identity.principal):
            raise AuthenticationError("OAUTHBEARER: a user may act only for itself")
        self._identity = identity
        return b""


def _parse(message: bytes) -> tuple[str, BearerToken]:
    """Returns the authorization id, which may be empty, and the token of a client's message."""
    text = decode_text(message, "the client's OAUTHBEARER message")
    header = _GS2_HEADER.match(text)
    if header is None:
        raise AuthenticationError("the client's OAUTHBEARER message does not begin with 'n,,'")
    rest = text[header.end() :]
    if not rest.startswith(_SEPARATOR) or not rest.endswith(_SEPARATOR * 2):
        raise AuthenticationError(
            "the client's OAUTHBEARER message is not made of pairs with a byte 1 between them"
        )
    pairs: dict[str, str] = {}
    for pair in rest[1:-2].split(_SEPARATOR):
        key, equals, value = pair.partition("=")
        if not equals or not _KEY.fullmatch(key) or not _VALUE.fullmatch(value) or key in pairs:
            raise AuthenticationError(
                "a pair of the client's OAUTHBEARER message is malformed, or its key occurs twice"
            )
        pairs[key] = value
    credential = _CREDENTIAL.fullmatch(pairs.pop(_AUTH, "").strip(" \t"))
    if credential is None:
        raise AuthenticationError("the client's OAUTHBEARER message has no 'auth=Bearer TOKEN'")
    authorization_id = (header[1] or "").replace("=2C", ",").replace("=3D", "=")
    return authorization_id, BearerToken(credential[1], MappingProxyType(pairs))


def _reason(challenge: bytes) -> str:
    """Returns the reason in a server's refusal (RFC 7628, 3.2.2), as the end of an error text."""
    text = decode_text(challenge, "the server's OAUTHBEARER message")
    try:
        challenge_error = json.loads(text)
    except (ValueError, RecursionError):
        challenge_error = text
    if isinstance(challenge_error, dict):
        challenge_error = ", ".join(
            f"{key} {challenge_error[key]}"
            for key in ("status", "scope", "openid-configuration")
            if challenge_error.get(key)
        )
    shown = printable(str(challenge_error)[:_SHOWN])
    return f": {shown}" if shown else ""
