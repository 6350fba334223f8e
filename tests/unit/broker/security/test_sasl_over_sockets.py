"""Tests SASL over sockets: mechanisms, requests before authentication, and refusals."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

import pytest

from kproto.broker import BrokerSettings, Close
from kproto.broker.quotas import ClientQuotaManager
from kproto.messages.api_versions_request import ApiVersionsRequest
from kproto.messages.base import Request
from kproto.messages.metadata_request import MetadataRequest
from kproto.messages.produce_request import ProduceRequest
from kproto.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kproto.messages.sasl_handshake_request import SaslHandshakeRequest
from kproto.protocol.framing import frame
from kproto.protocol.sasl import ClientExchange
from kproto.testing.clock import ManualClock
from tests.support.embedded import ThreadedBroker, threaded_broker
from tests.support.raw_connection import ClosedByBrokerError, RawConnection
from tests.support.secured_broker import (
    ALL_MECHANISMS,
    PASSWORDS,
    bearer,
    client_tls,
    of_kind,
    password,
    sign_in,
    sign_in_bare,
)

KINDS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def settings(**more: object) -> BrokerSettings:
    listeners = tuple(of_kind(kind) for kind in KINDS)
    return BrokerSettings(listeners=listeners, users=PASSWORDS, **more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def broker() -> Iterator[ThreadedBroker]:
    with threaded_broker(settings()) as running:
        yield running


def connect(broker: ThreadedBroker, kind: str = "SASL_PLAINTEXT") -> RawConnection:
    address = broker.call(lambda it: it.bootstrap_of(kind))
    return RawConnection(address, tls=client_tls() if "SSL" in kind else None)


def exchange_of(mechanism: str, name: str = "alice") -> ClientExchange:
    if mechanism == "OAUTHBEARER":
        return bearer(time.time_ns() // 1_000_000, name)
    return password(mechanism, name)


def is_closed(connection: RawConnection) -> bool:
    try:
        connection.receive_frame()
    except ClosedByBrokerError:
        return True
    return False


def serves(connection: RawConnection) -> bool:
    return connection.exchange(MetadataRequest(), 9).controller_id == 1


@pytest.mark.parametrize("kind", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanism", ALL_MECHANISMS)
@pytest.mark.parametrize("version", [0, 1, 2])
def test_each_mechanism_authenticates(
    broker: ThreadedBroker, kind: str, mechanism: str, version: int
) -> None:
    with connect(broker, kind) as connection:
        assert sign_in(connection, exchange_of(mechanism), version).error_code == 0
        assert serves(connection)


@pytest.mark.parametrize("mechanism", ALL_MECHANISMS)
def test_each_mechanism_authenticates_without_headers(
    broker: ThreadedBroker, mechanism: str
) -> None:
    with connect(broker) as connection:
        sign_in_bare(connection, exchange_of(mechanism))
        assert serves(connection)


def test_a_wrong_password_without_a_header_closes_the_connection(broker: ThreadedBroker) -> None:
    with connect(broker) as connection, pytest.raises(ClosedByBrokerError):
        sign_in_bare(connection, password("PLAIN", secret="guessed"))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_wrong_password_gets_an_error_before_close(
    broker: ThreadedBroker, mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG), connect(broker) as connection:
        answer = sign_in(connection, password(mechanism, secret="guessed wrong"))
        assert answer.error_code == 58
        assert answer.error_message is not None
        assert answer.error_message.startswith("Authentication failed")
        assert is_closed(connection)
    assert "authentication failed" in caplog.text
    assert "guessed" not in caplog.text
    assert PASSWORDS["alice"] not in caplog.text


@pytest.mark.parametrize("version", [0, 1])
def test_unsupported_mechanism_gets_the_enabled_ones(broker: ThreadedBroker, version: int) -> None:
    with connect(broker) as connection:
        answer = connection.exchange(SaslHandshakeRequest(mechanism="GSSAPI"), version)
        assert (answer.error_code, tuple(answer.mechanisms)) == (33, ALL_MECHANISMS)
        assert is_closed(connection)


@pytest.mark.parametrize(
    "request_",
    [MetadataRequest(), ProduceRequest(acks=-1), SaslAuthenticateRequest()],
    ids=lambda request: type(request).__name__,
)
def test_request_before_authentication_closes_the_connection(
    broker: ThreadedBroker,
    request_: Request[object],  # type: ignore[type-var]
) -> None:
    with connect(broker) as connection:
        connection.send(request_, 1 if not isinstance(request_, ProduceRequest) else 9)
        assert is_closed(connection)


def test_api_versions_is_allowed_once_before_authentication(broker: ThreadedBroker) -> None:
    versions = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
    with connect(broker) as connection:
        assert connection.exchange(ApiVersionsRequest(), 3).error_code == 42, "no software name"
        assert connection.exchange(versions, 3).error_code == 0
        assert sign_in(connection, exchange_of("PLAIN")).error_code == 0
        assert connection.exchange(versions, 3).error_code == 0
        assert serves(connection)
    with connect(broker) as connection:
        assert connection.exchange(versions, 3).error_code == 0
        connection.send(versions, 3)
        assert is_closed(connection)


def test_other_requests_in_place_of_a_token_are_rejected(broker: ThreadedBroker) -> None:
    for wrong in (SaslHandshakeRequest(mechanism="PLAIN"), ApiVersionsRequest()):
        with connect(broker) as connection:
            connection.exchange(SaslHandshakeRequest(mechanism="PLAIN"), 1)
            answer: object = connection.exchange(wrong, 1)  # type: ignore[misc]
            assert answer.error_code == 34  # type: ignore[attr-defined]
            assert is_closed(connection)


@pytest.mark.parametrize("kind", ["PLAINTEXT", "SSL"])
def test_handshake_without_sasl_is_illegal_state(broker: ThreadedBroker, kind: str) -> None:
    with connect(broker, kind) as connection:
        shaken = connection.exchange(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        assert (shaken.error_code, list(shaken.mechanisms)) == (34, [])
        answer = connection.exchange(SaslAuthenticateRequest(auth_bytes=b"\0a\0b"), 2)
        assert (answer.error_code, answer.error_message) == (
            34,
            "SaslAuthenticate request received after successful authentication",
        )
        assert serves(connection)


def test_unexpected_handshake_is_illegal_state(broker: ThreadedBroker) -> None:
    with connect(broker) as connection:
        sign_in(connection, exchange_of("PLAIN"))
        assert connection.exchange(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 34
        assert serves(connection)


def test_unauthenticated_requests_have_a_size_limit(broker: ThreadedBroker) -> None:
    with connect(broker) as connection:
        connection.send_bytes((600_000).to_bytes(4, "big"))
        assert is_closed(connection)
    with connect(broker) as connection:
        sign_in(connection, exchange_of("PLAIN"))
        connection.send_bytes(frame(b"\0\x03\0\x09\0\0\0\7\xff\xff", bytes(600_000)))
        assert not is_closed(connection)


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\x11", b"\0\x24\0\2", b"\xff\xff\xff\xff"])
def test_half_a_request_closes_the_connection(broker: ThreadedBroker, data: bytes) -> None:
    with connect(broker) as connection:
        connection.send_bytes(frame(data))
        assert is_closed(connection)


@pytest.mark.parametrize("kind", KINDS)
def test_metadata_has_endpoints_of_the_listener(broker: ThreadedBroker, kind: str) -> None:
    with connect(broker, kind) as connection:
        if "SASL" in kind:
            sign_in(connection, exchange_of("SCRAM-SHA-256"))
        (node,) = connection.exchange(MetadataRequest(), 9).brokers
    assert f"{node.host}:{node.port}" == broker.call(lambda it: it.bootstrap_of(kind))


def test_log_names_the_principal(broker: ThreadedBroker, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "kproto.broker"), connect(broker) as connection:
        sign_in(connection, exchange_of("PLAIN"))
        serves(connection)
    assert "MetadataRequest v9" in caplog.text
    assert "from raw as User:alice" in caplog.text
    assert PASSWORDS["alice"] not in caplog.text


def test_sasl_response_can_be_lost_by_a_fault() -> None:
    with threaded_broker(settings()) as broker:
        broker.call(
            lambda it: it.control(
                lambda _: Close(after_handling=True), request=SaslAuthenticateRequest, times=1
            )
        )
        with connect(broker) as connection, pytest.raises(ClosedByBrokerError):
            sign_in(connection, exchange_of("PLAIN"))
        with connect(broker) as connection:
            assert sign_in(connection, exchange_of("PLAIN")).error_code == 0


# Sessions


def test_session_expires_and_is_reauthenticated() -> None:
    clock = ManualClock()
    with threaded_broker(settings(sasl_session_lifetime_ms=10_000), clock=clock) as broker:
        with connect(broker) as connection:
            assert sign_in(connection, exchange_of("PLAIN")).session_lifetime_ms == 10_000
            broker.advance(clock, 9000)
            assert serves(connection)
            assert sign_in(connection, exchange_of("PLAIN")).session_lifetime_ms == 10_000
            broker.advance(clock, 9000)
            assert serves(connection)
            broker.advance(clock, 1001)
            connection.send(MetadataRequest(), 9)
            assert is_closed(connection)
        with connect(broker) as connection:
            sign_in(connection, exchange_of("PLAIN"))
            broker.advance(clock, 60_000)
            assert sign_in(connection, exchange_of("PLAIN")).error_code == 0, "late, but in time"
            assert serves(connection)


def test_reauthentication_needs_same_mechanism_and_user() -> None:
    clock = ManualClock()
    with threaded_broker(settings(sasl_session_lifetime_ms=10_000), clock=clock) as broker:
        with connect(broker) as connection:
            sign_in(connection, exchange_of("PLAIN"))
            answer = sign_in(connection, exchange_of("PLAIN", "bob"))
            assert answer.error_code == 58
            assert answer.error_message == (
                "Cannot change principals during re-authentication from User.alice: User.bob"
            )
            assert is_closed(connection)
        with connect(broker) as connection:
            sign_in(connection, exchange_of("PLAIN"))
            with pytest.raises(ClosedByBrokerError):
                sign_in(connection, exchange_of("SCRAM-SHA-256"))
        with connect(broker) as connection:
            sign_in(connection, exchange_of("PLAIN"))
            connection.send(SaslHandshakeRequest(mechanism="GSSAPI"), 1)
            assert is_closed(connection)


def test_session_expires_with_its_token() -> None:
    clock = ManualClock()
    with (
        threaded_broker(settings(), clock=clock) as broker,
        connect(broker) as connection,
    ):
        answer = sign_in(connection, bearer(clock.now_ms(), lifetime_ms=30_000))
        assert answer.session_lifetime_ms == 30_000
        broker.advance(clock, 30_001)
        connection.send(MetadataRequest(), 9)
        assert is_closed(connection)


def test_the_time_of_a_request_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[float] = []

    def worked(
        _self: ClientQuotaManager, _user: str, _client: str, seconds: float, _now: int
    ) -> int:
        counted.append(seconds)
        return 0

    monkeypatch.setattr(ClientQuotaManager, "record_request_time", worked)
    with threaded_broker(settings(sasl_session_lifetime_ms=60_000)) as broker:
        entity = (("user", "nobody"),)
        broker.call(
            lambda it: it._cluster.quota_manager.table.set(entity, "request_percentage", 1.0)
        )
        with connect(broker) as connection:
            sign_in(connection, exchange_of("PLAIN"))
            assert serves(connection)
            assert counted.pop() > 0
            counted.clear()
            sign_in(connection, exchange_of("PLAIN"))
            assert counted == [0.0, 0.0]
