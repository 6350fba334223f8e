"""Tests delegation tokens over sockets, in each version: create, use, renew, describe, expire."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from kproto.broker import BrokerSettings
from kproto.messages.base import Request
from kproto.messages.create_delegation_token_request import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from kproto.messages.create_delegation_token_response import CreateDelegationTokenResponse
from kproto.messages.describe_delegation_token_request import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from kproto.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from kproto.messages.metadata_request import MetadataRequest
from kproto.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from kproto.protocol.error_codes import error_code
from kproto.protocol.sasl import ClientExchange, Credentials, client_exchange
from kproto.testing.clock import ManualClock
from tests.support.embedded import ThreadedBroker, threaded_broker
from tests.support.raw_connection import ClosedByBrokerError, RawConnection
from tests.support.secured_broker import PASSWORDS, client_tls, of_kind, password, sign_in

KEY = "the key of the broker"
KINDS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT")
EACH: list[Request[Any]] = [
    CreateDelegationTokenRequest(),
    RenewDelegationTokenRequest(),
    ExpireDelegationTokenRequest(),
    DescribeDelegationTokenRequest(owners=None),
]
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def broker(clock: ManualClock) -> Iterator[ThreadedBroker]:
    settings = BrokerSettings(
        listeners=tuple(of_kind(kind) for kind in KINDS),
        users=PASSWORDS,
        delegation_token_secret_key=KEY,
        idle_timeout_ms=30 * DAY_MS,
        # Without an authorizer every client sees every token.
        authorizer=True,
        acls=("allow User:alice create-tokens user *", "allow User:* all topic *"),
    )
    with threaded_broker(settings, clock=clock) as running:
        yield running


def connect(broker: ThreadedBroker, kind: str = "SASL_PLAINTEXT") -> RawConnection:
    where = broker.call(lambda it: it.bootstrap_of(kind))
    return RawConnection(where, tls=client_tls() if kind == "SSL" else None)


def as_user(broker: ThreadedBroker, name: str) -> RawConnection:
    connection = connect(broker)
    assert sign_in(connection, password("SCRAM-SHA-512", name)).error_code == 0
    return connection


def token_authenticated(
    made: CreateDelegationTokenResponse, mechanism: str = "SCRAM-SHA-256"
) -> ClientExchange:
    secret = base64.b64encode(made.hmac).decode()
    return client_exchange(
        mechanism, Credentials(made.token_id, secret, delegation_token=True, prepare_strings=False)
    )


def user(name: str) -> CreatableRenewers:
    return CreatableRenewers(principal_type="User", principal_name=name)


def name_of(code: int) -> str:
    return error_code(code).name


@pytest.mark.parametrize("version", CreateDelegationTokenRequest.VALID_VERSIONS)
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_created_token_authenticates_its_owner(
    broker: ThreadedBroker, clock: ManualClock, version: int, mechanism: str
) -> None:
    with as_user(broker, "alice") as connection:
        made = connection.exchange(CreateDelegationTokenRequest(), version)
    assert (made.error_code, made.principal_type, made.principal_name) == (0, "User", "alice")
    if version >= 3:
        assert made.token_requester_principal_name == "alice"
    now = clock.now_ms()
    assert (made.issue_timestamp_ms, made.expiry_timestamp_ms) == (now, now + DAY_MS)
    assert made.max_timestamp_ms == now + 7 * DAY_MS
    with connect(broker) as connection:
        assert (
            sign_in(connection, token_authenticated(made, mechanism)).session_lifetime_ms == DAY_MS
        )
        assert connection.exchange(MetadataRequest(), 9).controller_id == 1
        again = connection.exchange(CreateDelegationTokenRequest(), version)
        assert name_of(again.error_code) == "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"
        broker.advance(clock, DAY_MS + 1)
        connection.send(MetadataRequest(), 9)
        with pytest.raises(ClosedByBrokerError):
            connection.receive()
    with connect(broker) as connection:
        assert sign_in(connection, token_authenticated(made, mechanism)).error_code == 58


def test_a_token_for_another_owner_needs_the_right(broker: ThreadedBroker) -> None:
    with as_user(broker, "alice") as connection:
        made = connection.exchange(
            CreateDelegationTokenRequest(owner_principal_type="User", owner_principal_name="carol"),
            3,
        )
        assert (made.principal_name, made.token_requester_principal_name) == ("carol", "alice")
        nobody = connection.exchange(DescribeDelegationTokenRequest(owners=None), 3)
        assert list(nobody.tokens) == [], "alice does not own the token"


@pytest.mark.parametrize("version", RenewDelegationTokenRequest.VALID_VERSIONS)
def test_owner_and_renewer_renew_and_expire_token(
    broker: ThreadedBroker, clock: ManualClock, version: int
) -> None:
    with as_user(broker, "alice") as alice, as_user(broker, "bob") as bob:
        made = alice.exchange(CreateDelegationTokenRequest(renewers=[user("bob")]), 2)
        mine = alice.exchange(CreateDelegationTokenRequest(), 2)
        broker.advance(clock, HOUR_MS)
        renew = RenewDelegationTokenRequest(hmac=made.hmac, renew_period_ms=-1)
        renewed = bob.exchange(renew, version)
        assert (renewed.error_code, renewed.expiry_timestamp_ms) == (0, clock.now_ms() + DAY_MS)
        changes: list[Request[Any]] = [
            RenewDelegationTokenRequest(hmac=mine.hmac),
            ExpireDelegationTokenRequest(hmac=mine.hmac),
        ]
        for request in changes:
            answer = bob.exchange(request, version)
            assert name_of(answer.error_code) == "DELEGATION_TOKEN_OWNER_MISMATCH"
            assert answer.expiry_timestamp_ms == -1
        expire = ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=5000)
        assert bob.exchange(expire, version).expiry_timestamp_ms == clock.now_ms() + 5000
        expire = ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=-1)
        assert alice.exchange(expire, version).error_code == 0
        assert name_of(alice.exchange(expire, version).error_code) == "DELEGATION_TOKEN_NOT_FOUND"


@pytest.mark.parametrize("version", DescribeDelegationTokenRequest.VALID_VERSIONS)
def test_client_sees_tokens_that_it_owns_or_may_renew(broker: ThreadedBroker, version: int) -> None:
    def seen(connection: RawConnection, *owners: str) -> list[tuple[str, list[str]]]:
        wanted = [
            DescribeDelegationTokenOwner(principal_type="User", principal_name=name)
            for name in owners
        ]
        request = DescribeDelegationTokenRequest(owners=wanted or None)
        answer = connection.exchange(request, version)
        assert answer.error_code == 0
        return [
            (token.principal_name, [each.principal_name for each in token.renewers])
            for token in answer.tokens
        ]

    with as_user(broker, "alice") as alice, as_user(broker, "bob") as bob:
        alice.exchange(CreateDelegationTokenRequest(renewers=[user("bob")]), 2)
        bob.exchange(CreateDelegationTokenRequest(), 2)
        assert seen(alice) == [("alice", ["bob"])]
        assert seen(bob) == [("alice", ["bob"]), ("bob", [])]
        assert seen(bob, "alice") == [("alice", ["bob"])]
        assert seen(bob, "carol") == []
        none = alice.exchange(DescribeDelegationTokenRequest(owners=[]), version)
        assert list(none.tokens) == []


@pytest.mark.parametrize("kind", ["PLAINTEXT", "SSL"])
def test_unauthenticated_client_gets_no_token(broker: ThreadedBroker, kind: str) -> None:
    with connect(broker, kind) as connection:
        for request in EACH:
            answer = connection.exchange(request, 1)
            assert name_of(answer.error_code) == "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"


@pytest.mark.parametrize(
    "request_",
    [
        CreateDelegationTokenRequest(
            renewers=[CreatableRenewers(principal_type="ClassicGroup", principal_name="x")]
        ),
        CreateDelegationTokenRequest(owner_principal_type="ClassicGroup", owner_principal_name="x"),
    ],
)
def test_principals_are_users(
    broker: ThreadedBroker, request_: CreateDelegationTokenRequest
) -> None:
    with as_user(broker, "alice") as connection:
        answer = connection.exchange(request_, 3)
        assert name_of(answer.error_code) == "INVALID_PRINCIPAL_TYPE"


def test_tokens_are_disabled_without_secret_key() -> None:
    settings = BrokerSettings(listeners=(of_kind("SASL_PLAINTEXT"),), users=PASSWORDS)
    with threaded_broker(settings) as broker, as_user(broker, "alice") as connection:
        for request in EACH:
            answer = connection.exchange(request, 1)
            assert name_of(answer.error_code) == "DELEGATION_TOKEN_AUTH_DISABLED"
