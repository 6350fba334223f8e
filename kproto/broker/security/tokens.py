"""Delegation tokens (KIP-48, KIP-373) with their owners, renewers and expiration.

Knows no message and no clock: times are parameters, in ms since the epoch. A token's HMAC is its
password, computed with the broker's secret key.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from ...protocol.sasl import SaltedCredential
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..principals import ANONYMOUS, Principal
from .users import SCRAM_MECHANISMS

__all__ = ["DelegationTokens", "Token", "check_token_request"]

#: Random bytes of a token's id.
_ID_BYTES = 16


@dataclass(frozen=True, slots=True)
class Token:
    """A delegation token. Times are in ms since the epoch."""

    token_id: str
    hmac: bytes = field(repr=False)
    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    issued_ms: int
    #: When it expires, unless it is renewed.
    expires_ms: int
    #: The latest time to which it can be renewed.
    max_ms: int

    @property
    def hmac_text(self) -> str:
        """Returns the HMAC in base64: the password, with the token id as the user name."""
        return base64.b64encode(self.hmac).decode("ascii")

    def is_of(self, principal: Principal) -> bool:
        """Returns whether `principal` owns the token or may renew it."""
        return principal == self.owner or principal in self.renewers


class DelegationTokens:
    """The tokens of a cluster; without a `secret_key` there are none.

    `max_lifetime_ms` and `renew_ms` limit what requests ask for. An expired token is remembered for
    `kept_ms`, so that its error is DELEGATION_TOKEN_EXPIRED.
    """

    def __init__(
        self, secret_key: str | None, *, max_lifetime_ms: int, renew_ms: int, kept_ms: int
    ) -> None:
        self._secret_key = None if secret_key is None else secret_key.encode()
        self._max_lifetime_ms = max_lifetime_ms
        self._renew_ms = renew_ms
        self._kept_ms = kept_ms
        self._tokens: dict[str, Token] = {}
        self._credentials: dict[tuple[str, int], SaltedCredential] = {}

    @property
    def has_tokens(self) -> bool:
        """Returns whether any token exists."""
        return bool(self._tokens)

    def create(
        self,
        owner: Principal,
        requester: Principal,
        renewers: Iterable[Principal],
        max_lifetime_ms: int,
        now_ms: int,
    ) -> Token:
        """Returns a new token; a lifetime of 0 or less stands for the maximum.

        Raises BrokerResponseError: DELEGATION_TOKEN_AUTH_DISABLED.
        """
        self._forget(now_ms)
        key = self._key()
        lifetime = self._max_lifetime_ms
        if max_lifetime_ms > 0:
            lifetime = min(lifetime, max_lifetime_ms)
        token_id = secrets.token_urlsafe(_ID_BYTES)
        token = Token(
            token_id=token_id,
            hmac=hmac.digest(key, token_id.encode(), hashlib.sha512),
            owner=owner,
            requester=requester,
            renewers=tuple(renewers),
            issued_ms=now_ms,
            expires_ms=now_ms + min(lifetime, self._renew_ms),
            max_ms=now_ms + lifetime,
        )
        self._tokens[token_id] = token
        return token

    def renew(self, mac: bytes, principal: Principal, period_ms: int, now_ms: int) -> int:
        """Renews a token by `period_ms`, by the maximum if that is 0 or less.

        Returns the new expiry time. Raises BrokerResponseError, as `expire` does.
        """
        token = self._changeable(mac, principal, now_ms)
        period = min(self._renew_ms, period_ms) if period_ms > 0 else self._renew_ms
        return self._end(token, now_ms + period)

    def expire(self, mac: bytes, principal: Principal, period_ms: int, now_ms: int) -> int:
        """Lets a token expire `period_ms` from now; at once if that is negative.

        Returns the expiry time, or the negative period, as Kafka's controller does. Raises
        BrokerResponseError: DELEGATION_TOKEN_NOT_FOUND, _EXPIRED, _OWNER_MISMATCH, _AUTH_DISABLED.
        """
        token = self._changeable(mac, principal, now_ms)
        if period_ms < 0:
            self._drop(token)
            return period_ms
        return self._end(token, now_ms + period_ms)

    def all_tokens(self, now_ms: int) -> Iterator[Token]:
        """Yields every known token. Raises BrokerResponseError: DELEGATION_TOKEN_AUTH_DISABLED."""
        self._key()
        self._forget(now_ms)
        yield from self._tokens.values()

    def valid_token(self, token_id: str, now_ms: int) -> Token | None:
        """Returns a token that is valid for authentication.

        None if it is unknown or has expired.
        """
        token = self._tokens.get(token_id)
        return token if token is not None and token.expires_ms > now_ms else None

    def credential(self, number: int, token_id: str, now_ms: int) -> SaltedCredential | None:
        """Returns the SCRAM credential of a token for a mechanism.

        Its HMAC in base64 is the password. It is derived at the first use, which takes some ms.
        """
        token = self.valid_token(token_id, now_ms)
        if token is None:
            return None
        derived = self._credentials.get((token_id, number))
        if derived is None:
            derived = SaltedCredential.derive(
                token.hmac_text,
                hash_name=SCRAM_MECHANISMS[number].hash_name,
                prepare_strings=False,
            )
            self._credentials[token_id, number] = derived
        return derived

    def _key(self) -> bytes:
        if self._secret_key is None:
            raise api_error("DELEGATION_TOKEN_AUTH_DISABLED", "the broker has no secret key")
        return self._secret_key

    def _changeable(self, mac: bytes, principal: Principal, now_ms: int) -> Token:
        """Returns the token with this HMAC, if the principal may change it."""
        self._key()
        self._forget(now_ms)
        for token in self._tokens.values():
            if hmac.compare_digest(token.hmac, mac):
                break
        else:
            raise api_error("DELEGATION_TOKEN_NOT_FOUND", "there is no such token")
        fault = _fault(token, principal, now_ms)
        if fault is not None:
            raise fault
        return token

    def _end(self, token: Token, at_ms: int) -> int:
        ends = min(token.max_ms, at_ms)
        self._tokens[token.token_id] = replace(token, expires_ms=ends)
        return ends

    def _forget(self, now_ms: int) -> None:
        """Removes tokens that expired long enough ago."""
        for token in list(self._tokens.values()):
            if token.expires_ms + self._kept_ms < now_ms:
                self._drop(token)

    def _drop(self, token: Token) -> None:
        del self._tokens[token.token_id]
        for number in SCRAM_MECHANISMS:
            self._credentials.pop((token.token_id, number), None)


def check_token_request(
    security_protocol: str, principal: Principal, *, token_authenticated: bool
) -> None:
    """Rejects requests about tokens by clients without their own authentication (KIP-48).

    Raises BrokerResponseError: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED for clients that authenticated
    by a token, or not at all.
    """
    if (
        token_authenticated
        or security_protocol == "PLAINTEXT"
        or (security_protocol == "SSL" and principal == ANONYMOUS)
    ):
        raise api_error(
            "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
            f"{principal} came by {'a token' if token_authenticated else security_protocol}",
        )


def _fault(token: Token, principal: Principal, now_ms: int) -> BrokerResponseError | None:
    if token.expires_ms < now_ms:
        return api_error("DELEGATION_TOKEN_EXPIRED", "the token has ended")
    if not token.is_of(principal):
        return api_error("DELEGATION_TOKEN_OWNER_MISMATCH", f"the token is not {principal}'s")
    return None
