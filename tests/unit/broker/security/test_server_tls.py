"""Tests a listener's TLS settings: valid certificates and keys, and errors of invalid settings."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from kproto.broker import ServerTls
from kproto.broker.security.server_tls import handshake_fault, server_context
from kproto.wire.errors import ConfigurationError
from tests.support.secured_broker import authority_pem, pem_of

BOTH = pem_of("localhost")
KEY, CERTIFICATE = BOTH[: BOTH.index("-----BEGIN CERT")], BOTH[BOTH.index("-----BEGIN CERT") :]
OTHER_KEY = pem_of("other")[: pem_of("other").index("-----BEGIN CERT")]
SECRET = "the secret of the key"


def encrypted() -> str:
    key = serialization.load_pem_private_key(KEY.encode(), None)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(SECRET.encode()),
    ).decode()


ENCRYPTED_KEY = encrypted()


@pytest.mark.parametrize(
    "parts",
    [
        {"certificate": BOTH},
        {"certificate": BOTH.encode()},
        {"certificate": CERTIFICATE, "key": KEY},
        {"certificate": CERTIFICATE, "key": ENCRYPTED_KEY, "key_password": SECRET},
        {"certificate": BOTH, "client_ca": authority_pem(), "client_auth": "requested"},
    ],
)
def test_valid_tls_parts_make_a_context(parts: dict[str, Any]) -> None:
    context = server_context(ServerTls(**parts))
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
    asked = ssl.CERT_OPTIONAL if "client_ca" in parts else ssl.CERT_NONE
    assert context.verify_mode == asked


@pytest.mark.parametrize("as_path", [Path, str])
def test_a_part_may_be_a_file(tmp_path: Path, as_path: Any) -> None:
    (tmp_path / "both.pem").write_text(BOTH)
    (tmp_path / "ca.pem").write_text(authority_pem())
    tls = ServerTls(
        certificate=as_path(tmp_path / "both.pem"),
        client_ca=as_path(tmp_path / "ca.pem"),
        client_auth="required",
    )
    assert server_context(tls).verify_mode == ssl.CERT_REQUIRED


@pytest.mark.parametrize(
    ("parts", "fault"),
    [
        ({"certificate": CERTIFICATE}, "certificate .* holds no private key; set key if"),
        ({"certificate": CERTIFICATE, "key": CERTIFICATE}, "key .* holds no private key"),
        ({"certificate": CERTIFICATE, "key": OTHER_KEY}, "belongs to another certificate"),
        ({"certificate": CERTIFICATE, "key": ENCRYPTED_KEY}, "is encrypted: set key_password"),
        (
            {"certificate": CERTIFICATE, "key": ENCRYPTED_KEY, "key_password": "guessed"},
            "cannot be opened with key_password",
        ),
        (
            {"certificate": CERTIFICATE, "key": ENCRYPTED_KEY, "key_password": "x" * 5000},
            "cannot be opened with key_password",
        ),
        ({"certificate": KEY}, "certificate .* holds no certificate"),
        ({"certificate": "/nowhere.pem"}, "certificate .'/nowhere.pem'. cannot be read: No such"),
        (
            {"certificate": BOTH, "client_ca": "-----BEGIN x", "client_auth": "required"},
            "client_ca .* holds no certificate",
        ),
        (
            {
                "certificate": BOTH,
                "client_ca": authority_pem().replace("MII", "XXX"),
                "client_auth": "required",
            },
            "client_ca .* holds a certificate that is broken",
        ),
        ({"certificate": BOTH, "client_auth": "required"}, "without client_ca"),
        ({"certificate": BOTH, "client_ca": authority_pem()}, "client_auth is 'none'"),
        ({"certificate": BOTH, "client_auth": "maybe"}, "take one of none, requested, required"),
    ],
)
def test_error_names_the_invalid_part(parts: dict[str, Any], fault: str) -> None:
    with pytest.raises(ConfigurationError, match=fault) as caught:
        server_context(ServerTls(**parts))
    assert "PRIVATE" not in str(caught.value)
    assert "guessed" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_repr_shows_no_key() -> None:
    text = repr(ServerTls(certificate=CERTIFICATE, key=ENCRYPTED_KEY, key_password=SECRET))
    assert "BEGIN" not in text
    assert SECRET not in text


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ConnectionResetError(), "the client ended the connection"),
        (ConnectionAbortedError("slow"), "it took too long (tls_handshake_timeout_ms)"),
        (ssl.SSLError(1, "no reason"), "the client ended it"),
        (ValueError("secret"), "ValueError"),
    ],
)
def test_handshake_failure_is_one_log_line(error: BaseException, told: str) -> None:
    assert handshake_fault(error) == told
