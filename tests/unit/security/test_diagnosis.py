"""Tests the causes that the errors of failed connections name.

A connection fails by a TLS error, by a TLS answer to a plaintext client, or because the broker
closes it.
"""

from __future__ import annotations

import re
import ssl

import pytest

from kproto.security.diagnosis import (
    Stage,
    closed_hint,
    handshake_fault,
    tls_fault,
    unexpected_tls,
)
from kproto.wire.errors import AuthenticationError, BrokerConnectionError


def alert(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, f"[SSL: {reason}] (_ssl.c:1)")
    error.reason = reason
    return error


ALERTS = [
    ("TLSV13_ALERT_CERTIFICATE_REQUIRED", False, "none is set: tls=Tls.certificate="),
    ("SSLV3_ALERT_BAD_CERTIFICATE", False, "requires a client's certificate, and none is set"),
    ("SSLV3_ALERT_BAD_CERTIFICATE", True, "refuses the client's certificate"),
    ("SSLV3_ALERT_HANDSHAKE_FAILURE", None, "or refuses the one of the ssl.SSLContext"),
    ("TLSV1_ALERT_UNKNOWN_CA", True, "does not trust the CA of the client's certificate"),
    ("SSLV3_ALERT_CERTIFICATE_EXPIRED", True, "the client's certificate has expired"),
    ("TLSV1_UNRECOGNIZED_NAME", None, "does not recognize the requested server name"),
    ("WRONG_VERSION_NUMBER", None, "does not speak TLS; connect with tls=False"),
    ("RECORD_LAYER_FAILURE", None, "does not speak TLS"),
]


@pytest.mark.parametrize(("reason", "shows", "told"), ALERTS)
def test_alerts(reason: str, shows: bool | None, told: str) -> None:
    for found in (
        tls_fault(alert(reason), "b1:9093", "b1", shows_certificate=shows),
        handshake_fault(alert(reason), "b1:9093", "b1", shows_certificate=shows),
    ):
        assert isinstance(found, AuthenticationError)
        assert str(found).startswith("b1:9093: ")
        assert re.search(told, str(found))


def test_unknown_tls_error_is_quoted() -> None:
    error = alert("SOMETHING_NEW")
    assert tls_fault(error, "b1:9093", "b1", shows_certificate=None) is None
    found = handshake_fault(error, "b1:9093", "b1", shows_certificate=None)
    assert isinstance(found, AuthenticationError)
    assert "the TLS handshake failed (SOMETHING_NEW)" in str(found)


@pytest.mark.parametrize("code", [9, 10, 18, 19, 20, 21, 23, 62, 64, 999])
def test_certificates(code: int) -> None:
    error = ssl.SSLCertVerificationError(1, "failed")
    error.verify_code, error.verify_message = code, "odd"
    found = tls_fault(error, "b1:9093", "b1", shows_certificate=None)
    assert isinstance(found, AuthenticationError)
    assert "the broker's certificate" in str(found)
    assert ("odd" in str(found)) == (code == 999)
    assert ("than 'b1'" in str(found)) == (code in (62, 64))


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError(),
        ssl.SSLEOFError(8, "EOF"),
        ssl.SSLZeroReturnError(6, "closed"),
        ConnectionAbortedError("x"),
    ],
)
def test_a_handshake_that_is_cut_off_may_be_tried_again(error: OSError) -> None:
    found = handshake_fault(error, "b1:9093", "b1", shows_certificate=None)
    assert isinstance(found, BrokerConnectionError)
    assert "()" not in str(found)
    assert "is this a listener with TLS?" in str(found)
    assert "max.connections.per.ip" in str(found)


@pytest.mark.parametrize(
    ("first", "is_tls"),
    [
        (bytes.fromhex("15030300020250"), True),
        (bytes.fromhex("1603010200"), True),
        (b"HTTP/1.1", False),
        (b"", False),
        (b"\x00\x00\x00\x15\x03", False),
    ],
)
def test_first_bytes(first: bytes, is_tls: bool) -> None:
    found = unexpected_tls(first, "b1:9092")
    assert (found is not None) == is_tls


def test_closed_by_stage() -> None:
    assert "TLS" in closed_hint(Stage.VERSIONS, tls=False, sasl=False)
    for sasl in (False, True):
        hint = closed_hint(Stage.VERSIONS, tls=False, sasl=sasl)
        assert "limit of connections (max.connections.per.ip, max.connections)?" in hint
    assert "client's certificate" in closed_hint(Stage.VERSIONS, tls=True, sasl=True)
    assert "SASL" in closed_hint(Stage.FIRST_REQUEST, tls=True, sasl=False)
    assert closed_hint(Stage.FIRST_REQUEST, tls=True, sasl=True) == ""
    assert closed_hint(Stage.OPEN, tls=False, sasl=False) == ""
