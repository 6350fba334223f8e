"""Tests valid combinations of listener settings, and the errors of invalid combinations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kproto.broker import Broker, BrokerSettings, Listener
from kproto.wire.errors import BrokerConnectionError, ConfigurationError
from tests.support.secured_broker import PASSWORDS, of_kind, server_tls

KINDS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


@pytest.mark.parametrize("kind", KINDS)
def test_listener_has_security_protocol(kind: str) -> None:
    assert of_kind(kind).security_protocol == kind


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (lambda: Listener("SSL"), "'SSL' has the security protocol PLAINTEXT by its tls"),
        (lambda: Listener("SASL_SSL", tls=server_tls()), "has the security protocol SSL"),
        (
            lambda: Listener(mechanisms=("PLAIN",)),
            "'PLAINTEXT' has the security protocol SASL_PLAINTEXT",
        ),
        (lambda: Listener("x", mechanisms=("GSSAPI",)), "'GSSAPI' is not known: take one of PLAIN"),
        (lambda: Listener("x", mechanisms="PLAIN"), "'P' is not known"),  # type: ignore[arg-type]
        (lambda: Listener(""), "has no name"),
        (lambda: Listener(port=70_000), "port is 70000"),
        (lambda: Listener(advertised_port=0), "advertised_port is 0"),
        (lambda: Listener(host="0.0.0.0"), "name one with advertised_host"),
    ],
)
def test_invalid_listener_raises(make: Callable[[], Any], fault: str) -> None:
    with pytest.raises(ConfigurationError, match=fault):
        make()


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"listeners": (Listener(), Listener())}, "two listeners are called 'PLAINTEXT'"),
        ({"listeners": (Listener(),), "port": 9092}, "port is set, and listeners, too"),
        ({"listeners": (Listener(),), "advertised_host": "x"}, "advertised_host is set, and"),
        ({"users": {"alice": ""}}, "'alice' has no name or no password"),
        ({"users": {"": "secret"}}, "'' has no name or no password"),
        ({"users": {"alice": "se\0cret"}}, "contains a NUL or a lone surrogate"),
        ({"users": {"alice": "\ud800"}}, "contains a NUL or a lone surrogate"),
        ({"delegation_token_secret_key": ""}, "delegation_token_secret_key is empty"),
        ({"sasl_session_lifetime_ms": -1}, "sasl_session_lifetime_ms is -1"),
        ({"tls_handshake_timeout_ms": 0}, "tls_handshake_timeout_ms is 0"),
    ],
)
def test_conflicting_listener_settings_raise(settings: dict[str, Any], fault: str) -> None:
    with pytest.raises(ConfigurationError, match=fault) as caught:
        BrokerSettings(**settings)
    assert "se\0cret" not in str(caught.value)


def test_no_secret_is_in_a_repr() -> None:
    settings = BrokerSettings(
        listeners=(of_kind("SASL_SSL"),), users=PASSWORDS, delegation_token_secret_key="hidden key"
    )
    text = repr(settings)
    assert "secret of" not in text
    assert "hidden" not in text
    assert "BEGIN" not in text
    assert hash(settings) == hash(settings)


def test_default_listener_uses_host_and_port() -> None:
    (listener,) = BrokerSettings(port=9093, advertised_host="kafka").all_listeners
    assert listener == Listener(port=9093, advertised_host="kafka")


async def test_each_listener_has_an_address() -> None:
    kinds = tuple(of_kind(kind) for kind in KINDS)
    async with Broker(BrokerSettings(listeners=kinds)) as broker:
        addresses = [broker.bootstrap_of(kind) for kind in KINDS]
        assert len(set(addresses)) == len(KINDS)
        assert broker.bootstrap == broker.listens_at == addresses[0]
        with pytest.raises(ConfigurationError, match="no listener 'X': take one of PLAINTEXT, SSL"):
            broker.bootstrap_of("X")
    with pytest.raises(ConfigurationError, match="does not listen"):
        broker.bootstrap_of("SSL")


async def test_broker_without_one_address_does_not_start() -> None:
    async with Broker() as other:
        port = int(other.bootstrap.rpartition(":")[2])
        broker = Broker(
            BrokerSettings(listeners=(Listener("first"), Listener("second", port=port)))
        )
        with pytest.raises(BrokerConnectionError, match="cannot listen"):
            await broker.start()
    with pytest.raises(ConfigurationError, match="does not listen"):
        assert broker.bootstrap
    await broker.start()
    assert broker.bootstrap_of("second").endswith(f":{port}")
    await broker.close()
