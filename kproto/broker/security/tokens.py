"""Implements delegation tokens (KIP-48, KIP-373) with owners, renewers and expiration.

A client authenticates with the token id as user name and the token's HMAC as password. The broker
computes the HMAC with its secret key. Times are parameters, in ms since 1970.
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

__all__ = ["DelegationToken", "DelegationTokens", "check_token_request"]

#: Random bytes of a token's id.
_ID_BYTES = 16


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """Holds a delegation token. Times are in ms since 1970."""

    token_id: str
    hmac: bytes = field(repr=False)
    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    issued_ms: int
    #: When the token expires, unless it is renewed.
    expires_ms: int
    #: The latest expiry time that a renewal can set.
    max_ms: int

    @property
    def hmac_text(self) -> str:
        """Returns the HMAC in base64, which is the password of the token."""
        return base64.b64encode(self.hmac).decode("ascii")

    def is_of(self, principal: Principal) -> bool:
        """Returns True if `principal` owns the token or may renew it."""
        return principal == self.owner or principal in self.renewers


class DelegationTokens:
    """Holds the tokens of a cluster. Without a `secret_key`, delegation tokens are disabled.

    `max_lifetime_ms` is the maximum lifetime of a token with renewals, `renew_ms` the maximum time
    until the next renewal. An expired token is kept for `kept_ms`, so that requests for it get
    DELEGATION_TOKEN_EXPIRED.
    """

    def __init__(
        self, secret_key: str | None, *, max_lifetime_ms: int, renew_ms: int, kept_ms: int
    ) -> None:
        self._secret_key = None if secret_key is None else secret_key.encode()
        self._max_lifetime_ms = max_lifetime_ms
        self._renew_ms = renew_ms
        self._kept_ms = kept_ms
        self._tokens: dict[str, DelegationToken] = {}
        self._credentials: dict[tuple[str, int], SaltedCredential] = {}

    @property
    def has_tokens(self) -> bool:
        """Returns True if at least one token exists."""
        return bool(self._tokens)

    def create(
        self,
        owner: Principal,
        requester: Principal,
        renewers: Iterable[Principal],
        max_lifetime_ms: int,
        now_ms: int,
    ) -> DelegationToken:
        """Creates and returns a token.

        If `max_lifetime_ms` is 0 or less, the maximum lifetime of the cluster applies.

        Raises DELEGATION_TOKEN_AUTH_DISABLED if delegation tokens are disabled.
        """
        self._forget(now_ms)
        key = self._key()
        lifetime = self._max_lifetime_ms
        if max_lifetime_ms > 0:
            lifetime = min(lifetime, max_lifetime_ms)
        token_id = secrets.token_urlsafe(_ID_BYTES)
        token = DelegationToken(
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
        """Sets the expiry time of a token to `period_ms` from now, and returns the new expiry time.

        `mac` is the token's HMAC. If `period_ms` is above `renew_ms`, or 0 or less, `renew_ms`
        applies. The expiry time is never after the token's `max_ms`. Raises the errors of `expire`.
        """
        token = self._changeable(mac, principal, now_ms)
        period = min(self._renew_ms, period_ms) if period_ms > 0 else self._renew_ms
        return self._end(token, now_ms + period)

    def expire(self, mac: bytes, principal: Principal, period_ms: int, now_ms: int) -> int:
        """Sets the expiry time of a token to `period_ms` from now, or deletes the token.

        `mac` is the token's HMAC. Returns the new expiry time, which is at most the token's
        `max_ms`. If `period_ms` is negative, deletes the token and returns `period_ms`, as Kafka's
        controller does. Raises DELEGATION_TOKEN_NOT_FOUND, _EXPIRED, _OWNER_MISMATCH and
        _AUTH_DISABLED.
        """
        token = self._changeable(mac, principal, now_ms)
        if period_ms < 0:
            self._drop(token)
            return period_ms
        return self._end(token, now_ms + period_ms)

    def all_tokens(self, now_ms: int) -> Iterator[DelegationToken]:
        """Yields all tokens, including expired tokens that are still kept.

        Raises DELEGATION_TOKEN_AUTH_DISABLED if delegation tokens are disabled.
        """
        self._key()
        self._forget(now_ms)
        yield from self._tokens.values()

    def valid_token(self, token_id: str, now_ms: int) -> DelegationToken | None:
        """Returns a token that is valid for authentication; None if there is no valid token."""
        token = self._tokens.get(token_id)
        return token if token is not None and token.expires_ms > now_ms else None

    def credential(self, number: int, token_id: str, now_ms: int) -> SaltedCredential | None:
        """Returns the credential of a token for SCRAM mechanism `number`.

        Returns None if the token is unknown or expired. The first call for a token and mechanism
        derives keys, which takes some ms.
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

    def _changeable(self, mac: bytes, principal: Principal, now_ms: int) -> DelegationToken:
        """Returns the token with the HMAC `mac` if the principal may renew and expire it.

        Raises the errors of `expire`.
        """
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

    def _end(self, token: DelegationToken, at_ms: int) -> int:
        ends = min(token.max_ms, at_ms)
        self._tokens[token.token_id] = replace(token, expires_ms=ends)
        return ends

    def _forget(self, now_ms: int) -> None:
        """Removes the tokens that expired more than `kept_ms` ago."""
        for token in list(self._tokens.values()):
            if token.expires_ms + self._kept_ms < now_ms:
                self._drop(token)

    def _drop(self, token: DelegationToken) -> None:
        del self._tokens[token.token_id]
        for number in SCRAM_MECHANISMS:
            self._credentials.pop((token.token_id, number), None)


def check_token_request(
    security_protocol: str, principal: Principal, *, token_authenticated: bool
) -> None:
    """Raises DELEGATION_TOKEN_REQUEST_NOT_ALLOWED for a client that may not use this API (KIP-48).

    Such a client authenticated by a delegation token, or did not authenticate.
    """
    if (
        token_authenticated
        or security_protocol == "PLAINTEXT"
        or (security_protocol == "SSL" and principal == ANONYMOUS)
    ):
        raise api_error(
            "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
            f"{principal} connected by {'a token' if token_authenticated else security_protocol}",
        )


def _fault(token: DelegationToken, principal: Principal, now_ms: int) -> BrokerResponseError | None:
    if token.expires_ms < now_ms:
        return api_error("DELEGATION_TOKEN_EXPIRED", "the token has expired")
    if not token.is_of(principal):
        return api_error("DELEGATION_TOKEN_OWNER_MISMATCH", f"the token is not {principal}'s")
    return None
