"""Tests which principals may renew and expire a delegation token, and until when (KIP-48)."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from kproto.broker.principals import ANONYMOUS, Principal
from kproto.broker.security.tokens import DelegationTokens, check_token_request
from kproto.wire.errors import BrokerResponseError

NOW = 1_700_000_000_000
ALICE, BOB, EVE = (Principal("User", name) for name in ("alice", "bob", "eve"))


def tokens(*, max_lifetime_ms: int = 100_000, renew_ms: int = 10_000) -> DelegationTokens:
    return DelegationTokens(
        "the key", max_lifetime_ms=max_lifetime_ms, renew_ms=renew_ms, kept_ms=5000
    )


def refused(name: str) -> AbstractContextManager[object]:
    return pytest.raises(BrokerResponseError, match=name)


def test_token_hmac_is_kafkas() -> None:
    token = tokens().create(ALICE, BOB, [EVE], -1, NOW)
    assert token.hmac == hmac.digest(b"the key", token.token_id.encode(), hashlib.sha512)
    assert (token.owner, token.requester, token.renewers) == (ALICE, BOB, (EVE,))
    assert (token.issued_ms, token.expires_ms, token.max_ms) == (NOW, NOW + 10_000, NOW + 100_000)
    assert token.hmac_text not in repr(token)


@pytest.mark.parametrize(
    ("asked", "ends", "most"),
    [(0, 10_000, 100_000), (50_000, 10_000, 50_000), (3000, 3000, 3000), (10**9, 10_000, 100_000)],
)
def test_lifetime_is_limited(asked: int, ends: int, most: int) -> None:
    token = tokens().create(ALICE, ALICE, [], asked, NOW)
    assert (token.expires_ms - NOW, token.max_ms - NOW) == (ends, most)


def test_tokens_are_unique() -> None:
    kept = tokens()
    made = {kept.create(ALICE, ALICE, [], 0, NOW).token_id for _ in range(50)}
    assert len(made) == 50


@pytest.mark.parametrize(("asked", "later"), [(-1, 10_000), (2000, 2000), (10**9, 10_000)])
@pytest.mark.parametrize("who", [ALICE, BOB])
def test_owner_and_renewers_renew_token(asked: int, later: int, who: Principal) -> None:
    kept = tokens()
    token = kept.create(ALICE, ALICE, [BOB], 0, NOW)
    assert kept.renew(token.hmac, who, asked, NOW + 9000) == NOW + 9000 + later
    assert kept.valid_token(token.token_id, NOW + 10_999) is not None


def test_token_is_not_renewed_beyond_max_lifetime() -> None:
    kept = tokens(max_lifetime_ms=15_000)
    token = kept.create(ALICE, ALICE, [], 0, NOW)
    assert kept.renew(token.hmac, ALICE, 0, NOW + 9000) == NOW + 15_000


@pytest.mark.parametrize("change", [DelegationTokens.renew, DelegationTokens.expire])
def test_invalid_changes_are_rejected(change: Callable[..., int]) -> None:
    kept = tokens()
    token = kept.create(ALICE, BOB, [], 0, NOW)
    for who in (BOB, EVE):
        with refused("DELEGATION_TOKEN_OWNER_MISMATCH"):
            change(kept, token.hmac, who, 0, NOW)
    with refused("DELEGATION_TOKEN_NOT_FOUND"):
        change(kept, b"guessed", ALICE, 0, NOW)
    with refused("DELEGATION_TOKEN_EXPIRED"):
        change(kept, token.hmac, ALICE, 0, NOW + 10_001)
    with refused("DELEGATION_TOKEN_NOT_FOUND"):
        change(kept, token.hmac, ALICE, 0, NOW + 15_001)


def test_token_expires_at_once_or_earlier() -> None:
    kept = tokens()
    first, second = (kept.create(ALICE, ALICE, [], 0, NOW) for _ in range(2))
    assert kept.expire(first.hmac, ALICE, -1, NOW) == -1
    assert kept.expire(second.hmac, ALICE, 3000, NOW) == NOW + 3000
    assert [token.token_id for token in kept.all_tokens(NOW)] == [second.token_id]
    assert kept.valid_token(second.token_id, NOW + 2999) is not None
    assert kept.valid_token(second.token_id, NOW + 3000) is None


def test_no_tokens_without_secret_key() -> None:
    kept = DelegationTokens(None, max_lifetime_ms=1, renew_ms=1, kept_ms=1)
    with refused("DELEGATION_TOKEN_AUTH_DISABLED"):
        kept.create(ALICE, ALICE, [], 0, NOW)
    with refused("DELEGATION_TOKEN_AUTH_DISABLED"):
        kept.renew(b"", ALICE, 0, NOW)
    with refused("DELEGATION_TOKEN_AUTH_DISABLED"):
        kept.expire(b"", ALICE, 0, NOW)
    with refused("DELEGATION_TOKEN_AUTH_DISABLED"):
        list(kept.all_tokens(NOW))


@pytest.mark.parametrize(
    ("protocol", "principal", "token_authenticated", "may"),
    [
        ("PLAINTEXT", ANONYMOUS, False, False),
        ("SSL", ANONYMOUS, False, False),
        ("SSL", Principal("User", "CN=alice"), False, True),
        ("SASL_PLAINTEXT", ALICE, False, True),
        ("SASL_SSL", ALICE, False, True),
        ("SASL_SSL", ALICE, True, False),
    ],
)
def test_token_requests_need_own_authentication(
    protocol: str, principal: Principal, token_authenticated: bool, may: bool
) -> None:
    if may:
        check_token_request(protocol, principal, token_authenticated=token_authenticated)
        return
    with refused("DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"):
        check_token_request(protocol, principal, token_authenticated=token_authenticated)
