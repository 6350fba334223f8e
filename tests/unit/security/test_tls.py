"""Tests the settings of `Tls`, and the error of each invalid setting, with the real OpenSSL."""

from __future__ import annotations

import copy
import os
import pickle
import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from kproto.client import ClientSettings
from kproto.security import pem, tls
from kproto.security.tls import Tls, TlsContexts, client_context
from kproto.wire.errors import ConfigurationError

CA = trustme.CA()
MINE, OTHER = CA.issue_cert("me"), CA.issue_cert("other")
CERTIFICATE = MINE.cert_chain_pems[0].bytes().decode()
KEY = MINE.private_key_pem.bytes().decode()
CA_PEM = CA.cert_pem.bytes().decode()
PASSWORD = "key-secret-0815"


def encrypted(form: serialization.PrivateFormat) -> str:
    key = serialization.load_pem_private_key(KEY.encode(), None)
    hidden = serialization.BestAvailableEncryption(PASSWORD.encode())
    return key.private_bytes(serialization.Encoding.PEM, form, hidden).decode()


PKCS8 = encrypted(serialization.PrivateFormat.PKCS8)
OLD_FORM = encrypted(serialization.PrivateFormat.TraditionalOpenSSL)


def test_the_default_verifies() -> None:
    context = client_context(Tls())
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_parts_that_are_switched_off() -> None:
    assert client_context(Tls(verify=False)).verify_mode is ssl.CERT_NONE
    context = client_context(Tls(check_hostname=False))
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert not context.check_hostname


def test_a_ca_of_ones_own_alone_is_trusted() -> None:
    trusted = client_context(Tls(ca="# Zürich\n" + CA_PEM)).get_ca_certs(binary_form=True)
    assert trusted == [ssl.PEM_cert_to_DER_cert(CA_PEM)]


@pytest.mark.parametrize(
    "parts",
    [
        {"certificate": CERTIFICATE, "key": KEY},
        {"certificate": CERTIFICATE + KEY},
        {"certificate": KEY + CERTIFICATE},
        {"certificate": CERTIFICATE.encode(), "key": KEY.encode()},
        {"certificate": CERTIFICATE + CA_PEM, "key": PKCS8, "key_password": PASSWORD},
        {"certificate": CERTIFICATE, "key": OLD_FORM, "key_password": PASSWORD},
        {"certificate": CERTIFICATE, "key": KEY, "key_password": "not needed"},
    ],
    ids=["two", "one", "key first", "bytes", "PKCS8", "old form", "password not needed"],
)
@pytest.mark.parametrize("memory", [True, False])
def test_certificates_that_are_taken(
    parts: dict[str, Any], memory: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not memory:
        monkeypatch.delattr(os, "memfd_create", raising=False)
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    client_context(Tls(ca=CA_PEM, **parts))
    files: dict[str, Any] = {}
    for name, content in parts.items():
        files[name] = content
        if name != "key_password":
            files[name] = tmp_path / name
            files[name].write_bytes(content if isinstance(content, bytes) else content.encode())
    client_context(Tls(ca=CA_PEM, **files))
    named: dict[str, Any] = {name: str(part) for name, part in files.items()}
    client_context(Tls(ca=CA_PEM, **named))
    left = {path.name for path in tmp_path.iterdir()}
    assert left == set(files) - {"key_password"}, "no file of ours is left"


def test_an_inline_key_is_readable_by_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    with tls._as_file(b"secret") as path:
        assert Path(path).stat().st_mode & 0o777 == 0o600
        assert Path(path).read_bytes() == b"secret"
    assert not Path(path).exists()


BROKEN = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
BROKEN_KEY = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({"ca": "/no/such/ca.pem"}, r"^tls: ca \('/no/such/ca.pem'\) cannot be read: No such file"),
        ({"ca": "no\0path"}, "ca .* is no path, and no PEM"),
        ({"ca": b"text"}, r"ca \(inline PEM\) is no PEM"),
        ({"ca": KEY}, r"ca \(inline PEM\) holds no certificate"),
        ({"ca": BROKEN}, "ca .* holds a broken certificate"),
        ({"ca": CA_PEM.replace("END", "und")}, "ca .* holds no certificate"),
        ({"certificate": KEY, "key": KEY}, "certificate .* holds no certificate"),
        ({"certificate": CERTIFICATE}, "certificate .* holds no private key; set key if"),
        ({"certificate": CERTIFICATE, "key": CA_PEM}, "key .* holds no private key"),
        ({"certificate": BROKEN, "key": KEY}, "certificate .* holds a broken certificate"),
        ({"certificate": CERTIFICATE, "key": BROKEN_KEY}, "key .* private key that is broken"),
        ({"certificate": CERTIFICATE, "key": PKCS8}, "key .* is encrypted: set key_password"),
        (
            {"certificate": CERTIFICATE, "key": PKCS8, "key_password": "key-secret-1"},
            "key .* cannot be opened with key_password: the password is wrong",
        ),
        (
            {"certificate": CERTIFICATE, "key": OLD_FORM, "key_password": "key-secret-1" * 200},
            "key .* cannot be opened with key_password: the password is wrong",
        ),
        (
            {"certificate": CERTIFICATE, "key": OTHER.private_key_pem.bytes()},
            "key .* does not fit tls: certificate .*: the key belongs to another",
        ),
        (
            {"certificate": CERTIFICATE, "key": "".join(KEY.splitlines()[1:-1])},
            "key .text without -----BEGIN, taken for a path. cannot be read",
        ),
    ],
)
def test_a_part_that_is_wrong(parts: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told) as raised:
        client_context(Tls(**{"ca": CA_PEM, **parts}))
    seen = f"{raised.value!r} {raised.value} {raised.value.__context__ and 0} {Tls(**parts)!r}"
    assert raised.value.__suppress_context__ or raised.value.__context__ is None
    assert "key-secret" not in seen
    assert KEY.splitlines()[1] not in seen


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"\xfe\xed\xfe\xed\x00\x00\x00\x02", "is a Java keystore .JKS.; convert it: keytool"),
        (b"\x30\x82\x0a\x00", "is DER or PKCS12, not PEM; convert it: openssl"),
        (b"", "is no PEM"),
    ],
)
def test_files_of_another_format(content: bytes, told: str, tmp_path: Path) -> None:
    path = tmp_path / "store"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=told):
        client_context(Tls(ca=path))


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match=r"certificate .* cannot be read: Is a directory"):
        client_context(Tls(certificate=tmp_path))
    monkeypatch.setattr(pem, "MAX_PEM_BYTES", 10)
    path = tmp_path / "large"
    path.write_text(CA_PEM)
    with pytest.raises(ConfigurationError, match="larger than 10 bytes"):
        client_context(Tls(ca=path))


def test_a_folder_of_certificates_is_trusted(tmp_path: Path) -> None:
    assert client_context(Tls(ca=tmp_path)).verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize("parts", [{"key": KEY}, {"key_password": "x"}])
def test_parts_that_do_not_fit_together(parts: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="is set without certificate"):
        Tls(**parts)


@pytest.mark.parametrize("given", [None, "yes", 1, Tls, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)])
def test_invalid_tls_setting_is_refused(given: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^tls is"):
        ClientSettings(tls=given)


# --- Contexts of a client ---


def test_a_context_is_made_once() -> None:
    contexts = TlsContexts(True)
    assert contexts.enabled
    assert contexts.cached() is None
    made = contexts.renew()
    assert contexts.cached() is made


def test_a_context_of_the_users_is_taken_as_it_is() -> None:
    given = ssl.create_default_context()
    contexts = TlsContexts(given)
    assert contexts.cached() is given
    assert contexts.shows_certificate is None
    assert not TlsContexts(False).enabled


def rewritten(path: Path) -> None:
    path.write_text(path.read_text() + "\n")


def replaced(path: Path) -> None:
    other = path.with_suffix(".new")
    other.write_bytes(path.read_bytes())
    stat = path.stat()
    os.utime(other, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    other.rename(path)


def touched(path: Path) -> None:
    stat = path.stat()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1_000_000))


@pytest.mark.parametrize("change", [rewritten, replaced, touched])
@pytest.mark.parametrize("name", ["ca", "certificate", "key"])
def test_changed_files_are_read_again(
    name: str, change: Callable[[Path], None], tmp_path: Path
) -> None:
    for part, content in {"ca": CA_PEM, "certificate": CERTIFICATE, "key": KEY}.items():
        (tmp_path / part).write_text(content)
    contexts = TlsContexts(
        Tls(ca=tmp_path / "ca", certificate=tmp_path / "certificate", key=tmp_path / "key")
    )
    first = contexts.renew()
    assert contexts.cached() is first
    change(tmp_path / name)
    assert contexts.cached() is None
    assert contexts.renew() is not first


def test_a_change_that_is_half_done_leaves_what_was(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, key = tmp_path / "certificate", tmp_path / "key"
    path.write_text(CERTIFICATE)
    key.write_text(KEY)
    contexts = TlsContexts(Tls(certificate=path, key=key))
    first = contexts.renew()
    path.write_bytes(OTHER.cert_chain_pems[0].bytes())
    assert contexts.renew() is first
    assert "the previous stay" in caplog.text
    assert "does not fit" in caplog.text
    key.write_bytes(OTHER.private_key_pem.bytes())
    assert contexts.cached() is None
    assert contexts.renew() is not first


def test_the_name_that_is_asked_for() -> None:
    assert TlsContexts(True).name_of("b1.example.com.") == "b1.example.com"
    assert TlsContexts(Tls(server_name="kafka")).name_of("10.0.0.1") == "kafka"


def test_nothing_secret_is_shown() -> None:
    given = Tls(ca=CA_PEM, certificate=CERTIFICATE, key=PKCS8, key_password=PASSWORD)
    text = repr(given) + repr(ClientSettings(tls=given))
    assert PASSWORD not in text
    assert "BEGIN" not in text
    assert pickle.loads(pickle.dumps(given)) == given == copy.deepcopy(given)
