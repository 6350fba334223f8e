"""Tests SASL on a connection without I/O: the order of requests and tokens.

The order depends on the broker's versions of the SASL requests.
"""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.messages import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kproto.protocol.negotiation import ApiRange
from kproto.protocol.sasl import BearerToken, Credentials, OAuthBearerClient, PlainClient
from kproto.security.authentication import Authentication, reauthenticate_after_ms
from kproto.wire.errors import AuthenticationError, BrokerConnectionError, KprotoError

SECRET = "open-sesame"
NEW = {17: ApiRange(0, 1), 36: ApiRange(0, 2)}


def plain(ranges: dict[int, ApiRange] = NEW) -> Authentication:
    return Authentication(PlainClient(Credentials("al", SECRET)), ranges, "b1:9092")


@pytest.mark.parametrize(
    ("ranges", "handshake", "authenticate"),
    [
        (NEW, 1, 2),
        ({17: ApiRange(0, 1), 36: ApiRange(0, 1)}, 1, 1),
        ({17: ApiRange(0, 1), 36: ApiRange(0, 0)}, 1, 0),
        ({17: ApiRange(0, 5), 36: ApiRange(0, 9)}, 1, 2),
        ({17: ApiRange(0, 1)}, 0, None),
        ({17: ApiRange(0, 0)}, 0, None),
        ({17: ApiRange(0, 0), 36: ApiRange(0, 2)}, 0, None),
    ],
)
def test_versions(ranges: dict[int, ApiRange], handshake: int, authenticate: int | None) -> None:
    asking = plain(ranges)
    first = asking.begin()
    assert isinstance(first.request, SaslHandshakeRequest)
    assert (first.request.mechanism, first.version) == ("PLAIN", handshake)
    second = asking.next(SaslHandshakeResponse(mechanisms=["PLAIN"]))
    assert second is not None
    token = f"\0al\0{SECRET}".encode()
    assert SECRET not in repr(second)
    if authenticate is None:
        assert (second.request, second.token) == (None, token)
        assert asking.next(b"") is None
        assert asking.disconnect_error() is not None
    else:
        assert isinstance(second.request, SaslAuthenticateRequest)
        assert (second.request.auth_bytes, second.version) == (token, authenticate)
        answer = SaslAuthenticateResponse(session_lifetime_ms=9)
        assert not asking.derives_keys(answer)
        assert asking.next(answer) is None
        assert asking.session_lifetime_ms == 9
        assert asking.disconnect_error() is None


@pytest.mark.parametrize(
    "ranges", [{}, {17: ApiRange(5, 6)}, {17: ApiRange(0, 1), 36: ApiRange(8, 9)}]
)
def test_a_listener_without_sasl(ranges: dict[int, ApiRange]) -> None:
    with pytest.raises(AuthenticationError, match="b1:9092: this listener has no SASL"):
        plain(ranges).begin()


HANDSHAKES: list[tuple[Any, type[KprotoError], str]] = [
    (SaslHandshakeResponse(error_code=33), AuthenticationError, "these are: none"),
    (
        SaslHandshakeResponse(error_code=33, mechanisms=["A", "B\x07"]),
        AuthenticationError,
        "PLAIN is not enabled at this listener; these are: A, B?",
    ),
    (SaslHandshakeResponse(error_code=34), AuthenticationError, "has no SASL"),
    (SaslHandshakeResponse(error_code=999), AuthenticationError, "with error code 999"),
    (SaslHandshakeResponse(error_code=7), BrokerConnectionError, "REQUEST_TIMED_OUT (7)"),
]


@pytest.mark.parametrize(("answer", "error", "told"), HANDSHAKES)
def test_handshakes_that_are_refused(answer: Any, error: type[KprotoError], told: str) -> None:
    asking = plain()
    asking.begin()
    with pytest.raises(error) as raised:
        asking.next(answer)
    assert told in str(raised.value)
    assert str(raised.value).startswith("b1:9092: ")


ANSWERS: list[tuple[int, str | None, type[KprotoError], str]] = [
    (58, "no such user", AuthenticationError, "refused the PLAIN authentication: no such user"),
    (58, None, AuthenticationError, "refused the PLAIN authentication"),
    (58, f"not {SECRET}!", AuthenticationError, ": not <hidden>!"),
    (58, "x" * 400, AuthenticationError, "x" * 300 + "…"),
    (34, "", AuthenticationError, "answered with ILLEGAL_SASL_STATE (34)"),
    (15, "later", BrokerConnectionError, "COORDINATOR_NOT_AVAILABLE (15): later"),
]


@pytest.mark.parametrize(("code", "text", "error", "told"), ANSWERS)
def test_answers_that_refuse(
    code: int, text: str | None, error: type[KprotoError], told: str
) -> None:
    asking = plain()
    asking.begin()
    asking.next(SaslHandshakeResponse())
    with pytest.raises(error) as raised:
        asking.next(SaslAuthenticateResponse(error_code=code, error_message=text))
    assert told in str(raised.value)
    assert SECRET not in str(raised.value)


def test_a_password_that_begins_with_the_name_is_hidden_whole() -> None:
    asking = Authentication(PlainClient(Credentials("alice", "alice-tail")), NEW, "b1:9092")
    asking.begin()
    asking.next(SaslHandshakeResponse())
    with pytest.raises(AuthenticationError) as raised:
        asking.next(SaslAuthenticateResponse(error_code=58, error_message="not alice-tail"))
    assert "tail" not in str(raised.value)


def test_a_token_that_is_refused_is_acknowledged_first() -> None:
    token = BearerToken("tok.en")
    asking = Authentication(OAuthBearerClient(token), NEW, "b1:9092")
    asking.begin()
    asking.next(SaslHandshakeResponse())
    step = asking.next(SaslAuthenticateResponse(auth_bytes=b'{"status":"invalid_token"}'))
    assert step is not None
    assert isinstance(step.request, SaslAuthenticateRequest)
    assert step.request.auth_bytes == b"\x01"
    with pytest.raises(AuthenticationError, match="invalid_token"):
        asking.next(
            SaslAuthenticateResponse(error_code=58, error_message='{"status":"invalid_token"}')
        )


@given(st.binary(max_size=60), st.sampled_from(["PLAIN", "OAUTHBEARER", "SCRAM"]))
def test_any_broker_answer_is_accepted_or_an_authentication_error(
    said: bytes, mechanism: str
) -> None:
    from kproto.protocol.sasl import ScramSha256Client

    exchanges: dict[str, Any] = {
        "PLAIN": lambda: PlainClient(Credentials("al", SECRET)),
        "OAUTHBEARER": lambda: OAuthBearerClient(BearerToken("t")),
        "SCRAM": lambda: ScramSha256Client(Credentials("al", SECRET)),
    }
    asking = Authentication(exchanges[mechanism](), NEW, "b1:9092")
    asking.begin()
    asking.next(SaslHandshakeResponse())
    with contextlib.suppress(AuthenticationError):
        step = asking.next(SaslAuthenticateResponse(auth_bytes=said))
        assert step is None or step.request is not None


def test_a_session_that_is_too_short_to_be_renewed_ends_its_connection_alone() -> None:
    """Kafka refuses to renew a SASL session within one second; only this connection is closed.

    A new connection starts with a new session.
    """
    told = {}
    for again in (False, True):
        asking = Authentication(
            PlainClient(Credentials("al", SECRET)), NEW, "b1:9092", reauthenticating=again
        )
        asking.begin()
        with pytest.raises(KprotoError) as caught:
            asking.next(SaslHandshakeResponse(error_code=34))
        told[again] = caught.value
    assert isinstance(told[False], AuthenticationError)
    assert "has no SASL" in str(told[False])
    assert isinstance(told[True], BrokerConnectionError)
    assert "too short" in str(told[True])


@given(st.integers(1, 2**40), st.floats(0, 1, exclude_max=True))
def test_when_to_authenticate_again(lifetime_ms: int, chance: float) -> None:
    after = reauthenticate_after_ms(lifetime_ms, chance)
    assert 0.85 * lifetime_ms <= after <= 0.9501 * lifetime_ms
