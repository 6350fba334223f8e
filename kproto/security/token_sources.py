"""Gets bearer tokens without an issuer: from a file, from unsigned claims, or a fixed one.

Each source is a callable without arguments that returns a token; `OAuthBearer` calls it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from ..wire.errors import AuthenticationError, ConfigurationError

__all__ = ["MAX_TOKEN_BYTES", "TokenFile", "UnsecuredToken", "fixed_token"]

#: Largest token file that is read, in bytes: the default of the broker's
#: sasl.server.max.receive.size, above which it refuses a SASL token.
MAX_TOKEN_BYTES: Final = 524_288

_CLAIM: Final = "unsecuredLoginStringClaim_"
_NUMBER_CLAIM: Final = "unsecuredLoginNumberClaim_"
_LIFETIME: Final = "unsecuredLoginLifetimeSeconds"
_PRINCIPAL: Final = "unsecuredLoginPrincipalClaimName"

#: Default lifetime of an unsigned token, in s: that of unsecuredLoginLifetimeSeconds in Kafka.
_LIFETIME_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class TokenFile:
    """Reads a token from the file at `path`, each time that it is called."""

    path: Path

    @classmethod
    def of_url(cls, name: str, url: str) -> TokenFile:
        """Returns the source for a `file:` URL, the value of the property `name`.

        Raises ConfigurationError if the URL has a host other than localhost, or no path.
        """
        try:
            parts = urlsplit(url)
        except ValueError:
            parts = urlsplit("file:")
        from urllib.request import url2pathname  # here, because it loads an HTTP client

        path = url2pathname(parts.path)
        if parts.netloc not in ("", "localhost") or not path or "\0" in path:
            raise ConfigurationError(f"{name} must be https://… or file:///path/of/the/token")
        return cls(Path(path))

    async def __call__(self) -> str:
        """Returns the token; reads the file in a thread. Raises the errors of `read`."""
        return await asyncio.to_thread(self.read)

    def read(self) -> str:
        """Returns the token without surrounding white space. Blocks if the file is a pipe.

        Raises AuthenticationError if the file is unreadable, too large, or not ASCII.
        """
        try:
            with self.path.open("rb") as file:
                text = file.read(MAX_TOKEN_BYTES + 1).decode("ascii")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it holds no ASCII text"
            raise AuthenticationError(
                f"OAUTHBEARER: cannot read the token of {self.path}: {reason}"
            ) from None
        if len(text) > MAX_TOKEN_BYTES:
            raise AuthenticationError(
                f"OAUTHBEARER: {self.path} is larger than {MAX_TOKEN_BYTES} bytes: is it a token?"
            )
        return text.strip()


@dataclass(frozen=True, slots=True)
class UnsecuredToken:
    """Makes unsigned tokens for tests. A broker that accepts them believes any claimed user
    (KIP-255).
    """

    claims: Mapping[str, Any] = field(repr=False)
    lifetime_s: float = _LIFETIME_S
    now_s: Callable[[], float] = field(default=time.time, repr=False)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> UnsecuredToken | None:
        """Returns the source for OAuthBearerLoginModule's options.

        Returns None if the options set no claim for the principal (by default `sub`).

        Raises ConfigurationError if a number claim or the lifetime is not a number.
        """
        claims: dict[str, Any] = {
            key.removeprefix(_CLAIM): value
            for key, value in options.items()
            if key.startswith(_CLAIM)
        }
        for key, value in options.items():
            if key.startswith(_NUMBER_CLAIM):
                claims[key.removeprefix(_NUMBER_CLAIM)] = _number(key, value)
        if not claims.get(options.get(_PRINCIPAL, "sub")):
            return None
        lifetime_s = _number(_LIFETIME, options.get(_LIFETIME, str(_LIFETIME_S)))
        return cls(claims, lifetime_s)

    def __call__(self) -> str:
        """Returns a token that is valid from now until `lifetime_s` later."""
        now_s = self.now_s()
        claims = {"iat": now_s, "exp": now_s + self.lifetime_s, **self.claims}
        return f"{_part({'alg': 'none'})}.{_part(claims)}."


def fixed_token(token: str) -> Callable[[], str]:
    """Returns a source that always returns `token`."""
    return lambda: token


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigurationError(
            f"the option {name} of sasl.jaas.config must be a number"
        ) from None


def _part(value: Mapping[str, Any]) -> str:
    text = json.dumps(value, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()
