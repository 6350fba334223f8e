"""Tests that the embedded broker answers security requests as a real secured broker does."""

from __future__ import annotations

import base64
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from functools import partial
from typing import Any

import pytest

from kproto.broker import BrokerSettings, Listener
from kproto.messages import (
    AlterUserScramCredentialsRequest,
    ApiVersionsRequest,
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    DescribeUserScramCredentialsRequest,
    ExpireDelegationTokenRequest,
    MetadataRequest,
    RenewDelegationTokenRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from kproto.messages.alter_user_scram_credentials_request import (
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kproto.messages.base import Request
from kproto.messages.create_delegation_token_request import CreatableRenewers
from kproto.messages.describe_user_scram_credentials_request import UserName
from kproto.protocol.sasl import ClientExchange, Credentials, client_exchange
from kproto.wire.errors import AuthenticationError
from tests.support.embedded import ThreadedBroker, threaded_broker
from tests.support.raw_connection import ClosedByBrokerError, RawConnection
from tests.support.secured_broker import (
    ALL_MECHANISMS,
    bearer,
    client_tls,
    of_kind,
    server_tls,
    sign_in,
    sign_in_bare,
)
from tests.support.settling import settle
from tools.kafka.secured import SESSION_MS, SecuredKafka

pytestmark = pytest.mark.kafka

#: The maximum lifetime of a delegation token in ms, long enough for the requests that use it.
LIFETIME_MS = 6000


@dataclass
class Side:
    """A secured broker: its listeners, its trusted certificate and the passwords of its users."""

    bootstrap: Mapping[str, str]
    tls: ssl.SSLContext
    passwords: Mapping[str, str]
    #: Waits until the brokers have applied the changes of Kafka's controller.
    settle: Callable[[], None] = lambda: None

    def connect(self, listener: str) -> RawConnection:
        tls = None if "PLAINTEXT" in listener else self.tls
        return RawConnection(self.bootstrap[listener], tls=tls)

    def exchange(
        self, mechanism: str, name: str = "alice", secret: str | None = None
    ) -> ClientExchange:
        if mechanism == "OAUTHBEARER":
            ended = 0 if secret is None else 7_200_000
            return bearer(time.time_ns() // 1_000_000 - ended, name)
        password = self.passwords[name] if secret is None else secret
        return client_exchange(mechanism, Credentials(name, password, prepare_strings=False))

    def signed_in(
        self, listener: str, mechanism: str = "PLAIN", name: str = "alice"
    ) -> RawConnection:
        connection = self.connect(listener)
        assert sign_in(connection, self.exchange(mechanism, name)).error_code == 0
        return connection


@pytest.fixture(scope="module")
def real(secured: SecuredKafka) -> Iterator[Side]:
    tls = ssl.create_default_context(cadata=secured.authority.pem)
    with RawConnection(secured.bootstrap["PLAINTEXT"]) as admin:
        yield Side(secured.bootstrap, tls, secured.passwords, partial(settle, admin))


@pytest.fixture(scope="module")
def ours(real: Side) -> Iterator[Side]:
    """Yields the embedded broker with the real broker's users, passwords and super users."""
    common: dict[str, Any] = {
        "authorizer": True,  # without an authorizer every user sees every token
        "super_users": ("User:admin", "User:ANONYMOUS"),
        "users": dict(real.passwords),
        "delegation_token_secret_key": "the key",
    }
    kinds = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
    short = Listener("SHORT", tls=server_tls(), mechanisms=ALL_MECHANISMS)
    with (
        threaded_broker(
            BrokerSettings(listeners=tuple(of_kind(kind) for kind in kinds), **common)
        ) as broker,
        threaded_broker(
            BrokerSettings(listeners=(short,), sasl_session_lifetime_ms=SESSION_MS, **common)
        ) as with_sessions,
    ):
        found = {kind: _address(broker, kind) for kind in kinds}
        found["SHORT"] = _address(with_sessions, "SHORT")
        yield Side(found, client_tls(), real.passwords)


def _address(broker: ThreadedBroker, listener: str) -> str:
    return broker.call(lambda it: it.bootstrap_of(listener))


def response_of(
    connection: RawConnection, request: Request[Any], version: int
) -> tuple[object, ...]:
    """Returns error code and message of the response, or `closed`."""
    try:
        answer = connection.exchange(request, version)
    except ClosedByBrokerError:
        return ("closed",)
    return (getattr(answer, "error_code", 0), getattr(answer, "error_message", None))


def state_of(connection: RawConnection) -> str:
    """Returns whether the connection is still usable: `open` or `closed`."""
    try:
        connection.exchange(MetadataRequest(), 9)
    except (ClosedByBrokerError, OSError):
        return "closed"
    return "open"


def authentication(side: Side) -> list[object]:
    results: list[object] = []
    for mechanism in ALL_MECHANISMS:
        for version in range(3):
            with side.connect("SASL_PLAINTEXT") as connection:
                answer = sign_in(connection, side.exchange(mechanism), version)
                ends = answer.session_lifetime_ms > 0
                results.append((mechanism, version, answer.error_code, ends, state_of(connection)))
        with side.connect("SASL_PLAINTEXT") as connection:
            sign_in_bare(connection, side.exchange(mechanism))
            results.append((mechanism, "bare", state_of(connection)))
    return results


def wrong_secrets(side: Side) -> list[object]:
    results: list[object] = []
    for mechanism in ALL_MECHANISMS:
        for name in ("alice", "nobody"):
            with side.connect("SASL_SSL") as connection:
                answer = sign_in(connection, side.exchange(mechanism, name, "guessed"))
                results.append((mechanism, name, answer.error_code, answer.error_message))
                results.append(state_of(connection))
        with side.connect("SASL_PLAINTEXT") as connection:
            try:
                sign_in_bare(connection, side.exchange(mechanism, "alice", "guessed"))
            except (ClosedByBrokerError, AuthenticationError) as error:
                results.append(str(error))
    return results


def broken_tokens(side: Side) -> list[object]:
    results: list[object] = []
    for mechanism in ALL_MECHANISMS:
        for token in (b"", b"\xff\xff", b"\0\0", b"\0alice\0", b"n,,", b"n,,n=,r=", b"n,,n=a,r=b"):
            with side.connect("SASL_PLAINTEXT") as connection:
                connection.exchange(SaslHandshakeRequest(mechanism=mechanism), 1)
                request = SaslAuthenticateRequest(auth_bytes=token)
                results.append(
                    (mechanism, token, response_of(connection, request, 2), state_of(connection))
                )
    return results


def requests_out_of_order(side: Side) -> list[object]:
    versions = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
    handshake = SaslHandshakeRequest(mechanism="PLAIN")
    token = SaslAuthenticateRequest(auth_bytes=b"\0a\0b")
    cases: list[list[tuple[Request[Any], int]]] = [
        [(MetadataRequest(), 9)],
        [(token, 2)],
        [(versions, 3), (versions, 3)],
        [(ApiVersionsRequest(), 3), (versions, 3), (handshake, 1)],
        [(versions, 3), (MetadataRequest(), 9)],
        [(SaslHandshakeRequest(mechanism="GSSAPI"), 0)],
        [(SaslHandshakeRequest(mechanism="GSSAPI"), 1)],
        [(SaslHandshakeRequest(mechanism=""), 1)],
        [(handshake, 1), (handshake, 1)],
        [(handshake, 1), (versions, 3)],
    ]
    results: list[object] = []
    for listener in ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"):
        for case in cases:
            with side.connect(listener) as connection:
                for request, version in case:
                    results.append(
                        (
                            listener,
                            type(request).__name__,
                            response_of(connection, request, version),
                        )
                    )
                    if results[-1][2] == ("closed",):  # type: ignore[index]
                        break
                else:
                    # Kafka answers any request with an error response if it expects a token.
                    if listener.startswith("SASL") and case[-1] != (handshake, 1):
                        results.append(state_of(connection))
    for listener in ("SASL_PLAINTEXT", "SASL_SSL"):
        with side.signed_in(listener) as connection:
            results += [
                response_of(connection, handshake, 1),
                response_of(connection, token, 2),
                state_of(connection),
            ]
    with side.connect("SASL_SSL") as connection:
        answer = connection.exchange(SaslHandshakeRequest(mechanism="x"), 1)
        results.append(sorted(answer.mechanisms))
    return results


def sessions(side: Side) -> list[object]:
    results: list[object] = []
    for mechanism in ALL_MECHANISMS:
        with side.connect("SHORT") as connection:
            lifetimes = [
                sign_in(connection, side.exchange(mechanism)).session_lifetime_ms for _ in range(2)
            ]
            handshake = SaslHandshakeRequest(mechanism=mechanism)
            results.append((mechanism, lifetimes, response_of(connection, handshake, 1)))
            results.append(state_of(connection))
            time.sleep(1.1)
            answer = sign_in(connection, side.exchange(mechanism, "bob"))
            results += [(answer.error_code, answer.error_message), state_of(connection)]
        with side.signed_in("SHORT", mechanism) as connection:
            answer = sign_in(connection, side.exchange(mechanism, secret="guessed"))
            results += [(answer.error_code, answer.error_message), state_of(connection)]
    with side.signed_in("SHORT") as connection:
        results.append(response_of(connection, SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1))
        results.append(
            response_of(connection, SaslAuthenticateRequest(auth_bytes=b"n,,n=alice,r=x"), 2)
        )
    with side.signed_in("SHORT") as connection:
        results.append(response_of(connection, SaslHandshakeRequest(mechanism="GSSAPI"), 1))
        results.append(state_of(connection))
    with side.signed_in("SHORT") as late, side.signed_in("SHORT") as renewed:
        time.sleep(SESSION_MS / 1000 + 0.3)
        results.append(state_of(late))
        results.append(sign_in(renewed, side.exchange("PLAIN")).session_lifetime_ms)
        results.append(state_of(renewed))
    return results


def scram_users(side: Side) -> list[object]:
    def deletion(name: str, mechanism: int = 1) -> ScramCredentialDeletion:
        return ScramCredentialDeletion(name=name, mechanism=mechanism)

    def upsertion(
        name: str, mechanism: int = 1, iterations: int = 4096
    ) -> ScramCredentialUpsertion:
        return ScramCredentialUpsertion(
            name=name,
            mechanism=mechanism,
            iterations=iterations,
            salt=b"salt",
            salted_password=bytes(32 * mechanism or 32),
        )

    cases: list[tuple[list[ScramCredentialDeletion], list[ScramCredentialUpsertion]]] = [
        ([], []),
        ([deletion("eve")], []),
        ([deletion("")], [upsertion("")]),
        ([deletion("eve", 0)], [upsertion("ann", 3)]),
        ([], [upsertion("eve"), upsertion("ann", 2, 4095), upsertion("joe", 1, 16_385)]),
        ([], [upsertion("ann"), upsertion("ann", 2)]),
        ([deletion("eve")], [upsertion("eve")]),
        ([deletion("eve"), deletion("eve", 2)], []),
        ([deletion("eve", 2)], [upsertion("eve", 2, 8192)]),
        ([], [upsertion("eve", 2, 8192)]),
        ([deletion("eve"), deletion("ann")], []),
    ]
    results: list[object] = []
    with side.connect("PLAINTEXT") as connection:
        for deletions, upsertions in cases:
            request = AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)
            answer = connection.exchange(request, 0)
            results.append(
                sorted((it.user, it.error_code, it.error_message) for it in answer.results)
            )
            side.settle()
            names = [UserName(name=name) for name in ("eve", "ann", "eve2", "joe", "joe")]
            found = connection.exchange(DescribeUserScramCredentialsRequest(users=names), 0)
            results.append(
                sorted(
                    (
                        it.user,
                        it.error_code,
                        it.error_message,
                        sorted((info.mechanism, info.iterations) for info in it.credential_infos),
                    )
                    for it in found.results
                )
            )
        request = AlterUserScramCredentialsRequest(deletions=[deletion("eve", 2)])
        connection.exchange(request, 0)
    return results


def delegation_tokens(side: Side) -> list[object]:
    results: list[object] = []

    def ask(connection: RawConnection, request: Request[Any], version: int) -> Any:
        side.settle()
        answer = connection.exchange(request, version)
        results.append((type(request).__name__, version, answer.error_code))
        return answer

    def others(kind: str = "User") -> list[CreatableRenewers]:
        return [CreatableRenewers(principal_type=kind, principal_name="bob")]

    for listener in ("PLAINTEXT", "SSL"):
        with side.connect(listener) as connection:
            ask(connection, CreateDelegationTokenRequest(), 2)
            ask(connection, RenewDelegationTokenRequest(), 2)
            ask(connection, ExpireDelegationTokenRequest(), 2)
            ask(connection, DescribeDelegationTokenRequest(owners=None), 2)
    with side.signed_in("SASL_SSL") as alice, side.signed_in("SASL_SSL", name="bob") as bob:
        ask(alice, CreateDelegationTokenRequest(renewers=others("Group")), 3)
        ask(alice, RenewDelegationTokenRequest(hmac=b"guessed"), 2)
        ask(alice, ExpireDelegationTokenRequest(hmac=b"guessed"), 2)
        made = ask(
            alice, CreateDelegationTokenRequest(renewers=others(), max_lifetime_ms=LIFETIME_MS), 3
        )
        results.append(
            (
                made.principal_type,
                made.principal_name,
                made.token_requester_principal_name,
                made.expiry_timestamp_ms - made.issue_timestamp_ms,
                made.max_timestamp_ms - made.issue_timestamp_ms,
                len(made.hmac),
            )
        )
        mine = ask(alice, CreateDelegationTokenRequest(), 1)
        results.append((mine.expiry_timestamp_ms - mine.issue_timestamp_ms) // 1000)
        ask(bob, RenewDelegationTokenRequest(hmac=mine.hmac), 1)
        ask(bob, ExpireDelegationTokenRequest(hmac=mine.hmac), 1)
        renewed = ask(bob, RenewDelegationTokenRequest(hmac=made.hmac, renew_period_ms=10**6), 2)
        results.append(renewed.expiry_timestamp_ms - made.max_timestamp_ms)
        for connection in (alice, bob):
            found = ask(connection, DescribeDelegationTokenRequest(owners=None), 3)
            results.append(
                sorted(
                    (it.principal_name, [each.principal_name for each in it.renewers])
                    for it in found.tokens
                )
            )
        found = ask(alice, DescribeDelegationTokenRequest(owners=[]), 3)
        results.append(len(found.tokens))
        by_token = _token_exchange(made)
        with side.connect("SASL_SSL") as third:
            answer = sign_in(third, by_token)
            results.append((answer.error_code, 0 < answer.session_lifetime_ms <= LIFETIME_MS))
            ask(third, CreateDelegationTokenRequest(), 2)
            ask(third, DescribeDelegationTokenRequest(owners=None), 2)
            time.sleep(max(0.0, made.max_timestamp_ms / 1000 - time.time()) + 0.2)
            results.append(state_of(third))
        ask(alice, RenewDelegationTokenRequest(hmac=made.hmac), 2)
        ask(alice, ExpireDelegationTokenRequest(hmac=made.hmac), 2)
        ended = ask(
            alice, ExpireDelegationTokenRequest(hmac=mine.hmac, expiry_time_period_ms=-1), 2
        )
        results.append(ended.expiry_timestamp_ms < mine.expiry_timestamp_ms)
        ask(alice, RenewDelegationTokenRequest(hmac=mine.hmac), 2)
        with side.connect("SASL_SSL") as third:
            answer = sign_in(third, _token_exchange(mine))
            results.append((answer.error_code, answer.error_message))
    return results


def _token_exchange(made: Any) -> ClientExchange:
    secret = base64.b64encode(made.hmac).decode()
    credentials = Credentials(made.token_id, secret, delegation_token=True, prepare_strings=False)
    return client_exchange("SCRAM-SHA-256", credentials)


@pytest.mark.parametrize(
    "conversation",
    [
        authentication,
        requests_out_of_order,
        *(
            pytest.param(each, marks=pytest.mark.exhaustive)
            for each in (
                wrong_secrets,
                scram_users,
                broken_tokens,
                sessions,
                delegation_tokens,
            )
        ),
    ],
)
def test_embedded_broker_answers_as_the_real_one(
    real: Side, ours: Side, conversation: Callable[[Side], list[object]]
) -> None:
    wanted, found = (list(map(repr, conversation(side))) for side in (real, ours))
    assert not list(unified_diff(wanted, found, "real", "ours", n=1, lineterm=""))
