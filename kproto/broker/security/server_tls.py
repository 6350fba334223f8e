"""TLS of a listener: what it shows, and whether clients must show something too.

Makes an `ssl.SSLContext` of it, and says in words why a handshake failed. Opens no connection.
"""

from __future__ import annotations

import os
import re
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from ...security.tls import Pem
from ...wire.errors import ConfigurationError

__all__ = ["ClientAuth", "ServerTls", "handshake_fault", "server_context"]

ClientAuth = Literal["none", "requested", "required"]

_VERIFY: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}

_BEGIN: Final = "-----BEGIN "

_KEY: Final = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTls:
    """What a listener with TLS shows, and asks for. Raises ConfigurationError.

    Each part of it is PEM, or the path of a file of it, which is read when the broker starts.
    """

    #: The broker's certificate, with those between it and its root.
    certificate: Pem = field(repr=False)
    #: Its private key; None when `certificate` holds it too.
    key: Pem | None = field(default=None, repr=False)
    #: What the key is encrypted with.
    key_password: str | None = field(default=None, repr=False)
    #: Who signs certificates of clients; needed to ask for them.
    client_ca: Pem | None = field(default=None, repr=False)
    #: Whether clients show a certificate (Kafka's ssl.client.auth). One that is shown is checked.
    client_auth: ClientAuth = "none"

    def __post_init__(self) -> None:
        if self.client_auth not in _VERIFY:
            raise ConfigurationError(
                f"client_auth is {self.client_auth!r}: take one of {', '.join(_VERIFY)}"
            )
        if self.client_auth != "none" and self.client_ca is None:
            raise ConfigurationError(
                f"client_auth is {self.client_auth!r} without client_ca: say whose certificates of"
                " clients are trusted"
            )
        if self.client_auth == "none" and self.client_ca is not None:
            raise ConfigurationError(
                "client_ca is set and client_auth is 'none', so that nobody is asked: set"
                " client_auth to 'required' or 'requested'"
            )


def server_context(tls: ServerTls) -> ssl.SSLContext:
    """What Python's TLS needs. Raises ConfigurationError that names the part at fault."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2  # as Kafka's ssl.enabled.protocols
    certificate = _pem("certificate", tls.certificate)
    key = None if tls.key is None else _pem("key", tls.key)
    _load_chain(context, certificate, key, tls.key_password)
    if tls.client_ca is not None:
        authorities = _pem("client_ca", tls.client_ca)
        try:
            context.load_verify_locations(cadata=authorities)
        except (ssl.SSLError, ValueError):
            authorities = ""
        if not authorities:
            raise ConfigurationError("tls: client_ca holds no certificate in PEM that can be read")
    context.verify_mode = _VERIFY[tls.client_auth]
    return context


def _pem(part: str, given: Pem) -> str:
    """The text of a part. Raises ConfigurationError for a file that cannot be read."""
    try:
        text = given.decode("ascii", "replace") if isinstance(given, bytes) else str(given)
        if isinstance(given, Path) or _BEGIN not in text:
            text = Path(os.fsdecode(given) if isinstance(given, bytes) else given).read_text(
                encoding="ascii", errors="replace"
            )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "no path"
    else:
        if _BEGIN in text:
            return text
        reason = "it holds no '-----BEGIN ', so it is no PEM"
    raise ConfigurationError(f"tls: {part} is neither PEM nor a file of it: {reason}")


def _load_chain(
    context: ssl.SSLContext, certificate: str, key: str | None, password: str | None
) -> None:
    """Load both parts from one file of ours, as OpenSSL reads them from files alone."""
    if not _KEY.search(certificate if key is None else key):
        raise ConfigurationError(
            f"tls: {'key' if key is not None else 'certificate'} holds no private key; set key"
        )
    asked = False

    def give_password() -> str:
        nonlocal asked
        asked = True
        return password or ""

    try:
        with _file_of(certificate if key is None else f"{key}\n{certificate}") as path:
            context.load_cert_chain(path, password=give_password)
    except (ssl.SSLError, ValueError) as error:  # ValueError: a password that is too long
        reason = getattr(error, "reason", None) or ""
    else:
        return
    if reason == "KEY_VALUES_MISMATCH":
        fault = "the key is not that of the certificate"
    elif asked:
        fault = "the key is encrypted; key_password " + ("is wrong" if password else "is not set")
    else:
        fault = f"certificate or key cannot be read ({reason or 'no PEM of a certificate'})"
    raise ConfigurationError(f"tls: {fault}")


@contextmanager
def _file_of(text: str) -> Iterator[str]:
    """A path at which `text` can be read by us alone, for the time of the block."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("kproto")
        path = f"/proc/self/fd/{descriptor}"
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode())
            file.flush()
            if Path(path).exists():
                yield path
                return
    descriptor, path = tempfile.mkstemp()  # mode 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode())
        yield path
    finally:
        Path(path).unlink()


#: What OpenSSL calls it, and what it means to who reads the broker's log.
_FAULTS: Final = {
    "WRONG_VERSION_NUMBER": "the client does not speak TLS",
    "HTTP_REQUEST": "the client speaks HTTP without TLS",
    "HTTPS_PROXY_REQUEST": "the client speaks HTTP without TLS",
    "UNSUPPORTED_PROTOCOL": "the client speaks no version of TLS that is taken here",
    "NO_SHARED_CIPHER": "the client takes no cipher that we have",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client shows no certificate, and client_auth is"
    " 'required'",
    "CERTIFICATE_VERIFY_FAILED": "the client's certificate is not trusted",
    "TLSV1_ALERT_UNKNOWN_CA": "the client does not trust our certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the client does not take our certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the client finds our certificate expired",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the client does not take our certificate",
}


def handshake_fault(error: BaseException) -> str:
    """Why a handshake failed, as the end of a sentence in one line."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{_FAULTS['CERTIFICATE_VERIFY_FAILED']}: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        reason = getattr(error, "reason", None) or "the client ended it"
        return _FAULTS.get(reason, reason)
    if isinstance(error, ConnectionAbortedError):  # so asyncio tells of its time limit
        return "it took too long (tls_handshake_timeout_ms)"
    if isinstance(error, OSError):
        return "the client ended the connection"
    return type(error).__name__
