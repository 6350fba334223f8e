"""Tests tokens without a signature (KIP-255): accepted claims, and errors without token data."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.protocol.sasl import BearerToken
from kproto.protocol.sasl.unsecured_jws import unsecured_token, unsecured_validator
from kproto.wire.errors import AuthenticationError

NOW = 1_700_000_000_000

validate = unsecured_validator(lambda: NOW)


def part(content: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


def token(claims: object, header: object = None, signature: str = "") -> str:
    return f"{part(header or {'alg': 'none'})}.{part(claims)}.{signature}"


@given(name=st.text(min_size=1).filter(str.strip), lifetime_ms=st.integers(1, 10**10))
def test_made_token_is_accepted(name: str, lifetime_ms: int) -> None:
    made = unsecured_token(name, now_ms=NOW, lifetime_ms=lifetime_ms)
    identity = validate(BearerToken(made))
    assert identity.principal == name
    assert identity.expires_at_ms == NOW + lifetime_ms


def test_a_token_from_a_kafka_client_is_taken() -> None:
    """Kafka's login handler makes such a token for `unsecuredLoginStringClaim_sub="alice"`."""
    header = "eyJhbGciOiJub25lIn0"
    claims = part({"iat": NOW / 1000, "exp": NOW / 1000 + 3600, "sub": "alice"})
    assert validate(BearerToken(f"{header}.{claims}.")).principal == "alice"


def test_padding_may_stand_there() -> None:
    claims = base64.urlsafe_b64encode(
        json.dumps({"sub": "a?>", "exp": NOW / 1000 + 1}).encode()
    ).decode()
    header = base64.urlsafe_b64encode(b'{"alg":"none"}').decode()
    whole = f"{header.rstrip('=')}.{claims.rstrip('=')}."
    assert validate(BearerToken(whole)).principal == "a?>"


def test_another_claim_may_name_the_principal() -> None:
    made = unsecured_token("x", now_ms=NOW, claims={"email": "alice@example.org"})
    by_mail = unsecured_validator(lambda: NOW, principal_claim="email")
    assert by_mail(BearerToken(made)).principal == "alice@example.org"


S = NOW / 1000


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("abc", "not made of header, claims and signature"),
        (token({"sub": "a", "exp": S + 1}, signature="c2ln"), "is signed"),
        (token({"sub": "a", "exp": S + 1}, {"alg": "RS256"}), "is signed"),
        (token({"sub": "a", "exp": S + 1}, {"typ": "JWT"}), "is signed"),
        ("x.y.", "header is no JSON object in base64"),
        (f"{part({'alg': 'none'})}.{part([1])}.", "claims is no JSON object in base64"),
        (f"{part({'alg': 'none'})}..", "claims is no JSON object in base64"),
        (token({"exp": S + 1}), "lacks its claim 'sub'"),
        (token({"sub": 7, "exp": S + 1}), "lacks its claim 'sub'"),
        (token({"sub": " ", "exp": S + 1}), "lacks its claim 'sub'"),
        (token({"sub": "a"}), "lacks its claim 'exp'"),
        (token({"sub": "a", "exp": "soon"}), "claim 'exp' that is no time"),
        (token({"sub": "a", "exp": True}), "claim 'exp' that is no time"),
        (token({"sub": "a", "exp": float("inf")}), "claim 'exp' that is no time"),
        (token({"sub": "a", "exp": float("nan")}), "claim 'exp' that is no time"),
        (token({"sub": "a", "exp": S}), "has expired"),
        (token({"sub": "a", "exp": S + 9, "iat": S + 1}), "issued in the future"),
        (token({"sub": "a", "exp": S + 9, "iat": [1]}), "claim 'iat' that is no time"),
    ],
)
def test_invalid_token_is_refused(text: str, fault: str) -> None:
    with pytest.raises(AuthenticationError, match=fault) as caught:
        validate(BearerToken(text))
    assert text not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_clock_may_be_a_bit_off() -> None:
    late = unsecured_validator(lambda: NOW, clock_skew_ms=2000)
    assert late(BearerToken(token({"sub": "a", "exp": S - 1}))).principal == "a"
    assert late(BearerToken(token({"sub": "a", "exp": S + 9, "iat": S + 1}))).principal == "a"
    with pytest.raises(AuthenticationError, match="before it was issued"):
        late(BearerToken(token({"sub": "a", "exp": S + 1, "iat": S + 1.5})))


@given(st.from_regex(r"[A-Za-z0-9\-._~+/]+=*", fullmatch=True))
def test_anything_else_is_that_error(text: str) -> None:
    with pytest.raises(AuthenticationError):
        validate(BearerToken(text))


def test_deep_json_is_that_error() -> None:
    deep: Any = "[" * 100_000
    claims = base64.urlsafe_b64encode(deep.encode()).rstrip(b"=").decode()
    with pytest.raises(AuthenticationError, match="no JSON object"):
        validate(BearerToken(f"{part({'alg': 'none'})}.{claims}."))
