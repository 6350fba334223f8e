"""Tests the SASL session of a connection: which requests each state allows, and expiration."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kproto.broker.principals import Principal
from kproto.broker.security.sasl_session import (
    ALLOWED_REQUESTS,
    CredentialStore,
    SaslSession,
    SaslState,
)
from kproto.broker.security.tokens import DelegationToken, DelegationTokens
from kproto.broker.security.users import Users
from kproto.protocol.sasl import (
    BearerIdentity,
    BearerToken,
    BearerValidator,
    ClientExchange,
    Credentials,
    client_exchange,
)
from kproto.protocol.sasl.unsecured_jws import unsecured_validator
from tests.support.secured_broker import ALL_MECHANISMS, PASSWORDS, bearer, password

NOW_MS = 1_700_000_000_000
PRODUCE, METADATA, HANDSHAKE, VERSIONS, AUTHENTICATE = 0, 3, 17, 18, 36
ALICE = Principal("User", "alice")
USERS = Users(PASSWORDS)
PASSWORD_MECHANISMS = ALL_MECHANISMS[:3]


class Side:
    """The broker's side of a SASL session, with a manual clock."""

    def __init__(
        self,
        *,
        lifetime_ms: int = 0,
        mechanisms: tuple[str, ...] = ALL_MECHANISMS,
        validate: BearerValidator | None = None,
        tokens: DelegationTokens | None = None,
    ) -> None:
        self.passed = 0.0
        tokens = tokens or DelegationTokens(None, max_lifetime_ms=1, renew_ms=1, kept_ms=1)
        self.known = CredentialStore(USERS, tokens, validate or unsecured_validator(self.now_ms))
        self.it = SaslSession(self.known, mechanisms, lifetime_ms)

    def now(self) -> float:
        return 1000 + self.passed

    def now_ms(self) -> int:
        return NOW_MS + round(self.passed * 1000)

    def admits(self, api_key: int) -> bool:
        return self.it.check_request(api_key, self.now()) is None

    def select_mechanism(self, mechanism: str, version: int = 1) -> bool:
        assert self.admits(HANDSHAKE)
        return self.it.select_mechanism(mechanism, version, self.now_ms())

    def authenticate(self, exchange: ClientExchange) -> int | str:
        """Returns the session lifetime in ms, or the error message for the client."""
        token = exchange.first()
        while True:
            assert self.admits(AUTHENTICATE)
            answer = self.it.evaluate_token(token, self.now, self.now_ms)
            if answer.error_message is not None:
                assert self.it.phase is SaslState.ENDED
                return answer.error_message
            if self.it.phase is SaslState.OPEN:
                exchange.next(answer.token)
                assert exchange.done
                return answer.lifetime_ms
            token = exchange.next(answer.token)

    def sign_in(self, exchange: ClientExchange) -> int | str:
        assert self.select_mechanism(exchange.mechanism)
        return self.authenticate(exchange)


def exchange_of(mechanism: str, name: str = "alice") -> ClientExchange:
    return bearer(NOW_MS, name) if mechanism == "OAUTHBEARER" else password(mechanism, name)


def open_side(mechanism: str = "PLAIN", lifetime_ms: int = 0) -> Side:
    side = Side(lifetime_ms=lifetime_ms)
    assert isinstance(side.sign_in(exchange_of(mechanism)), int)
    return side


# Requests allowed in each state


def first(side: Side) -> None:
    pass


def after_versions(side: Side) -> None:
    side.it.on_api_versions_response()


def awaiting_tokens(side: Side) -> None:
    side.select_mechanism("PLAIN", 1)


def awaiting_bare_tokens(side: Side) -> None:
    side.select_mechanism("PLAIN", 0)


def refused(side: Side) -> None:
    side.select_mechanism("GSSAPI")


@pytest.mark.parametrize(
    ("reach", "phase"),
    [
        (first, SaslState.FIRST),
        (after_versions, SaslState.HANDSHAKE),
        (awaiting_tokens, SaslState.TOKENS),
        (awaiting_bare_tokens, SaslState.TOKENS_WITHOUT_HEADER),
        (refused, SaslState.ENDED),
    ],
)
@pytest.mark.parametrize("api_key", [PRODUCE, METADATA, HANDSHAKE, VERSIONS, AUTHENTICATE, 999])
def test_each_state_allows_the_requests_of_the_table(
    reach: Callable[[Side], None], phase: SaslState, api_key: int
) -> None:
    side = Side()
    reach(side)
    assert side.it.phase is phase
    assert side.admits(api_key) == (api_key in (ALLOWED_REQUESTS[phase] or ()))


def test_states_before_open_allow_kip_43_requests_only() -> None:
    for phase in SaslState:
        admitted = ALLOWED_REQUESTS[phase]
        assert (admitted is None) == (phase is SaslState.OPEN)
        assert (admitted or set()) <= {HANDSHAKE, VERSIONS, AUTHENTICATE}


def test_api_versions_is_allowed_again_only_after_an_error() -> None:
    side = Side()
    assert side.admits(VERSIONS)
    assert side.admits(VERSIONS)
    side.it.on_api_versions_response()
    assert not side.admits(VERSIONS)


def test_authenticated_client_may_send_any_request() -> None:
    side = open_side()
    assert all(side.admits(key) for key in (PRODUCE, METADATA, VERSIONS, HANDSHAKE, AUTHENTICATE))
    assert side.it.phase is SaslState.OPEN, "the handler answers a handshake that is not expected"


# Mechanisms and principals


@pytest.mark.parametrize("mechanism", ALL_MECHANISMS)
def test_each_mechanism_yields_the_principal(mechanism: str) -> None:
    side = Side()
    side.sign_in(exchange_of(mechanism))
    assert side.it.identity is not None
    assert side.it.identity.principal == ALICE


@pytest.mark.parametrize("mechanism", ALL_MECHANISMS)
def test_listener_accepts_its_mechanisms_only(mechanism: str) -> None:
    others = tuple(each for each in ALL_MECHANISMS if each != mechanism)
    side = Side(mechanisms=others)
    assert not side.select_mechanism(mechanism)
    assert side.it.phase is SaslState.ENDED


@pytest.mark.parametrize("name", ["alice", "nobody"])
@pytest.mark.parametrize(
    ("mechanism", "message"),
    [
        ("PLAIN", "Authentication failed: Invalid username or password"),
        *(
            (
                mechanism,
                (
                    "Authentication failed during authentication due to invalid credentials with"
                    f" SASL mechanism {mechanism}"
                ),
            )
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
        ),
    ],
)
def test_wrong_password_and_unknown_user_get_kafkas_message(
    name: str, mechanism: str, message: str
) -> None:
    side = Side()
    assert side.sign_in(password(mechanism, name, "guessed")) == message
    assert side.it.identity is None


def test_rejected_bearer_token_gets_error_token_first() -> None:
    side = Side()
    side.passed = 3600
    assert side.select_mechanism("OAUTHBEARER")
    answer = side.it.evaluate_token(bearer(NOW_MS).first(), side.now, side.now_ms)
    assert (answer.token, answer.error_message) == (b'{"status":"invalid_token"}', None)
    assert side.admits(AUTHENTICATE)
    answer = side.it.evaluate_token(b"\x01", side.now, side.now_ms)
    assert answer.error_message == '{"status":"invalid_token"}'
    assert side.it.phase is SaslState.ENDED


@pytest.mark.parametrize(
    ("token", "message"),
    [
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"alice\0secret", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0a\0b\0c\0d", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"\0alice\0\xff", "Authentication failed: Invalid username or password"),
        (b"bob\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (
            b"bob\0alice\0" + PASSWORDS["alice"].encode(),
            (
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            ),
        ),
    ],
)
def test_refused_plain_token_gets_kafkas_message(token: bytes, message: str) -> None:
    side = Side()
    side.select_mechanism("PLAIN")
    assert side.it.evaluate_token(token, side.now, side.now_ms).error_message == message


@pytest.mark.parametrize("mechanism", ALL_MECHANISMS)
@pytest.mark.parametrize("token", [b"", b"\xff", b"\0", b"n,,", b"x" * 1000])
def test_broken_token_is_rejected_without_showing_it(mechanism: str, token: bytes) -> None:
    side = Side()
    side.select_mechanism(mechanism)
    answer = side.it.evaluate_token(token, side.now, side.now_ms)
    assert answer.error_message is not None
    assert answer.fault is not None
    assert "xxx" not in answer.error_message + answer.fault
    assert side.it.phase is SaslState.ENDED


def misbehaving(token: BearerToken) -> BearerIdentity:
    raise ValueError(f"could not read {token.value}")


def returning_text(token: BearerToken) -> BearerIdentity:
    return token.value  # type: ignore[return-value]


def returning(principal: object, expires_at_ms: object = None) -> BearerValidator:
    def validate(token: BearerToken) -> BearerIdentity:
        return BearerIdentity(principal, expires_at_ms)  # type: ignore[arg-type]

    return validate


@pytest.mark.parametrize(
    "validate",
    [
        misbehaving,
        returning_text,
        pytest.param(returning("alice\ud800"), id="lone surrogate"),
        pytest.param(returning(""), id="an empty name"),
        pytest.param(returning(b"alice"), id="bytes"),
        pytest.param(returning("alice", 1e15), id="a float"),
        pytest.param(returning("alice", "9"), id="a time as text"),
    ],
)
def test_failing_validator_rejects_without_its_message(
    validate: BearerValidator, caplog: pytest.LogCaptureFixture
) -> None:
    side = Side(validate=validate)
    exchange = bearer(NOW_MS)
    assert side.sign_in(exchange) == '{"status":"invalid_token"}'
    secret = "eyJ"  # every unsecured token begins with this header
    assert secret not in caplog.text
    assert "the function that validates bearer tokens" in caplog.text


# Sessions


@pytest.mark.parametrize("mechanism", ALL_MECHANISMS)
def test_session_has_no_limit_by_default(mechanism: str) -> None:
    side = Side()
    lifetime = side.sign_in(exchange_of(mechanism))
    assert lifetime == (60_000 if mechanism == "OAUTHBEARER" else 0), (
        "only a token limits the session"
    )


@pytest.mark.parametrize("mechanism", ALL_MECHANISMS)
def test_session_lifetime_is_returned_and_enforced(mechanism: str) -> None:
    side = Side(lifetime_ms=5000)
    assert side.sign_in(exchange_of(mechanism)) == 5000
    side.passed = 5.0
    assert side.admits(METADATA)
    side.passed = 5.001
    assert not side.admits(METADATA)
    assert not side.admits(HANDSHAKE), "the session has expired"


def test_earlier_of_token_and_setting_limits_session() -> None:
    assert Side(lifetime_ms=90_000).sign_in(bearer(NOW_MS, lifetime_ms=60_000)) == 60_000
    assert Side(lifetime_ms=30_000).sign_in(bearer(NOW_MS, lifetime_ms=60_000)) == 30_000


def test_session_lifetime_is_capped() -> None:
    side = Side(validate=lambda token: BearerIdentity("alice", 10**40))
    assert side.sign_in(bearer(NOW_MS)) == 2**63 - 1
    assert side.admits(METADATA)


@pytest.mark.parametrize("mechanism", ALL_MECHANISMS)
def test_reauthenticated_session_continues(mechanism: str) -> None:
    side = open_side(mechanism, 5000)
    side.passed = 4.0
    assert side.sign_in(exchange_of(mechanism)) == 5000
    side.passed = 8.9
    assert side.admits(METADATA)


def test_expired_session_can_be_reauthenticated() -> None:
    side = open_side(lifetime_ms=5000)
    side.passed = 60.0
    assert side.sign_in(password("PLAIN")) == 5000
    assert side.admits(METADATA)


def test_other_requests_during_reauthentication_close() -> None:
    side = open_side(lifetime_ms=5000)
    side.select_mechanism("PLAIN")
    assert not side.admits(METADATA)
    assert not side.admits(PRODUCE)


def test_reauthentication_by_other_mechanism_closes() -> None:
    side = open_side(lifetime_ms=5000)
    assert side.select_mechanism("SCRAM-SHA-256"), "Kafka answers the handshake"
    assert side.it.phase is SaslState.OTHER_MECHANISM
    reason = side.it.check_request(AUTHENTICATE, side.now())
    assert reason == "re-authentication must use the same mechanism, PLAIN"


@pytest.mark.parametrize("mechanism", ALL_MECHANISMS)
def test_reauthentication_by_other_principal_fails(mechanism: str) -> None:
    side = open_side(mechanism, 5000)
    assert side.sign_in(exchange_of(mechanism, "bob")) == (
        "Cannot change principals during re-authentication from User.alice: User.bob"
    )


def test_failed_reauthentication_closes() -> None:
    side = open_side("SCRAM-SHA-256", 5000)
    assert side.sign_in(password("SCRAM-SHA-256", secret="guessed")) == (
        "Authentication failed during re-authentication due to invalid credentials with SASL"
        " mechanism SCRAM-SHA-256"
    )


def test_reauthentication_is_limited_to_once_a_second() -> None:
    side = open_side(lifetime_ms=5000)
    side.sign_in(password("PLAIN"))
    side.passed = 0.9
    assert side.admits(HANDSHAKE)
    assert side.it.phase is SaslState.OPEN, "the handler refuses the request"
    side.passed = 1.0
    assert side.sign_in(password("PLAIN")) == 5000


# Delegation tokens


def tokens_with_one() -> tuple[DelegationTokens, DelegationToken]:
    tokens = DelegationTokens("key", max_lifetime_ms=60_000, renew_ms=10_000, kept_ms=1000)
    return tokens, tokens.create(ALICE, Principal("User", "bob"), (), 0, NOW_MS)


def token_authenticated(
    mechanism: str, token: DelegationToken, mac: str | None = None
) -> ClientExchange:
    secret = token.hmac_text if mac is None else mac
    credentials = Credentials(token.token_id, secret, delegation_token=True, prepare_strings=False)
    return client_exchange(mechanism, credentials)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_delegation_token_authenticates_until_it_expires(mechanism: str) -> None:
    tokens, token = tokens_with_one()
    side = Side(tokens=tokens)
    assert side.sign_in(token_authenticated(mechanism, token)) == 10_000
    assert side.it.identity is not None
    assert (side.it.identity.principal, side.it.identity.token_authenticated) == (ALICE, True)
    side.passed = 10.001
    assert not side.admits(METADATA)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_wrong_hmac_or_expired_token_is_rejected(mechanism: str) -> None:
    tokens, token = tokens_with_one()
    assert isinstance(
        Side(tokens=tokens).sign_in(token_authenticated(mechanism, token, "guessed")), str
    )
    late = Side(tokens=tokens)
    late.passed = 10.001
    assert isinstance(late.sign_in(token_authenticated(mechanism, token)), str)


def test_token_ids_and_users_are_separate() -> None:
    tokens, token = tokens_with_one()
    as_user = client_exchange("SCRAM-SHA-256", Credentials(token.token_id, token.hmac_text))
    assert isinstance(Side(tokens=tokens).sign_in(as_user), str)
    as_token = client_exchange(
        "SCRAM-SHA-256", Credentials("alice", PASSWORDS["alice"], delegation_token=True)
    )
    assert isinstance(Side(tokens=tokens).sign_in(as_token), str)
