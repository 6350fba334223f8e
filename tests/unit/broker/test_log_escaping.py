"""Tests that each event is one log line, whatever characters client ids and users have."""

from __future__ import annotations

import logging

import pytest

from kproto.broker import BrokerSettings, Listener
from kproto.broker.log_escaping import log_safe
from kproto.messages.api_versions_request import ApiVersionsRequest
from kproto.messages.metadata_request import MetadataRequest
from kproto.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kproto.messages.sasl_handshake_request import SaslHandshakeRequest
from tests.support.embedded import threaded_broker
from tests.support.raw_connection import RawConnection

FORGED = "me\n2026-01-01 kproto.broker \x1b[31mFORGED\r\u2028\x85"


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("alice", "alice"),
        ("Zoë ☃ 名", "Zoë ☃ 名"),
        (None, "None"),
        ("CN=a\\,b", "CN=a\\,b"),
        ("a\nb\r\x1b[0m\0", "a\\nb\\r\\x1b[0m\\x00"),
        ("a\u2028b\x85c\u202e", "a\\u2028b\\x85c\\u202e"),
    ],
)
def test_unprintable_characters_are_escaped(said: object, written: str) -> None:
    assert log_safe(said) == written


def test_client_cannot_forge_log_lines(caplog: pytest.LogCaptureFixture) -> None:
    name = "bob\nFORGED as User:admin"
    settings = BrokerSettings(
        listeners=(Listener("SASL_PLAINTEXT", mechanisms=("PLAIN",)),),
        users={name: "secret"},
        authorizer=True,
    )
    caplog.set_level(logging.INFO, logger="kproto.broker")
    with threaded_broker(settings) as broker:
        with RawConnection(broker.bootstrap, client_id=FORGED) as before:
            before.exchange(ApiVersionsRequest(), 3)
            before.send(MetadataRequest(), 12)
        with RawConnection(broker.bootstrap) as connection:
            connection.exchange(SaslHandshakeRequest(mechanism="PLAIN"), 1)
            token = b"\0" + name.encode() + b"\0secret"
            connection.exchange(SaslAuthenticateRequest(auth_bytes=token), 2)
            connection.exchange(MetadataRequest(), 12)
        broker.until(lambda it: it.connections == 0)
    lines = [record.getMessage() for record in caplog.records]
    assert any("FORGED" in line for line in lines)
    assert any("FORGED as User:admin" in line for line in lines)
    assert [line for line in lines if not line.isprintable()] == []
