"""Makes and checks tokens without a signature (KIP-255): JSON Web Signatures of `alg` none.

These tokens are for tests: any client can make one. Kafka's broker accepts them for OAUTHBEARER
until a validator is configured. The caller passes in the time.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from ...wire.errors import AuthenticationError
from .oauthbearer import BearerIdentity, BearerToken, BearerValidator

__all__ = ["unsecured_token", "unsecured_validator"]

#: Lifetime of a token by default: an hour, as in Kafka.
LIFETIME_MS: Final = 3_600_000

#: Converts the characters of base64url to those of standard base64 (RFC 4648, 5).
_FROM_URL: Final = str.maketrans("-_", "+/")


def unsecured_token(
    principal: str,
    *,
    now_ms: int,
    lifetime_ms: int = LIFETIME_MS,
    claims: Mapping[str, Any] | None = None,
) -> str:
    """Returns a token for `principal`, issued at `now_ms` (ms since 1970), with extra `claims`.

    The token expires after `lifetime_ms`.
    """
    body = {"sub": principal, "iat": now_ms / 1000, "exp": (now_ms + lifetime_ms) / 1000}
    return f"{_encode({'alg': 'none'})}.{_encode({**body, **(claims or {})})}."


def unsecured_validator(
    now_ms: Callable[[], int], *, principal_claim: str = "sub", clock_skew_ms: int = 0
) -> BearerValidator:
    """Returns a validator that accepts unsecured tokens whose `exp` is in the future.

    `iat` is optional; it must be in the past and before `exp`. `clock_skew_ms` is the tolerance of
    the comparisons with the current time. `now_ms` returns the current time in ms since 1970.
    `principal_claim` is the claim that has the principal. For other tokens the validator raises
    `AuthenticationError`, whose text shows nothing of the token.
    """

    def validate(token: BearerToken) -> BearerIdentity:
        claims = _claims(token.value)
        principal = claims.get(principal_claim)
        if not isinstance(principal, str) or not principal.strip():
            raise AuthenticationError(f"the unsecured token lacks its claim {principal_claim!r}")
        ends_ms = _timestamp(claims, "exp")
        if ends_ms is None:
            raise AuthenticationError("the unsecured token lacks its claim 'exp'")
        begins_ms = _timestamp(claims, "iat")
        now = now_ms()
        if ends_ms + clock_skew_ms <= now:
            raise AuthenticationError("the unsecured token has expired ('exp')")
        if begins_ms is not None and begins_ms - clock_skew_ms > now:
            raise AuthenticationError("the unsecured token was issued in the future ('iat')")
        if begins_ms is not None and begins_ms >= ends_ms:
            raise AuthenticationError(
                "the unsecured token expires ('exp') before it was issued ('iat')"
            )
        return BearerIdentity(principal, ends_ms)

    return validate


def _claims(text: str) -> dict[str, Any]:
    parts = text.split(".")
    if len(parts) != 3:
        raise AuthenticationError(
            "the unsecured token is not made of header, claims and signature with dots between"
        )
    header, claims = _decode(parts[0], "header"), _decode(parts[1], "claims")
    if header.get("alg") != "none" or parts[2]:
        raise AuthenticationError("the unsecured token is signed: its 'alg' must be 'none'")
    return claims


def _timestamp(claims: Mapping[str, Any], name: str) -> int | None:
    """Returns a claim in seconds as ms; None if it is missing."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return round(value * 1000)
        except (OverflowError, ValueError):  # it is not finite
            pass
    raise AuthenticationError(f"the unsecured token has a claim {name!r} that is no time")


def _encode(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode("ascii")


def _decode(part: str, what: str) -> dict[str, Any]:
    """Returns the JSON object in a part of a token: URL-safe base64, usually without padding."""
    bare = part.rstrip("=")
    content: Any = None
    try:
        padded = (bare + "=" * (-len(bare) % 4)).translate(_FROM_URL)
        content = json.loads(binascii.a2b_base64(padded, strict_mode=True))
    except (ValueError, RecursionError):  # UnicodeDecodeError among them
        pass
    if not isinstance(content, dict):
        raise AuthenticationError(f"the unsecured token's {what} is no JSON object in base64")
    return content
