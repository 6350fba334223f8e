"""Configures TLS of a listener, creates its `ssl.SSLContext`, and explains failed handshakes."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, Literal

from ...security.pem import Pem, certificates_of, named, read_pem
from ...security.tls import load_identity
from ...wire.errors import ConfigurationError

__all__ = ["ON_FAULT", "ClientAuth", "ServerTls", "handshake_fault", "server_context"]

ClientAuth = Literal["none", "requested", "required"]

_VERIFY: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTls:
    """Configures TLS of a listener. Certificates and keys are inline PEM, or paths of PEM files.

    The broker reads the files when it starts. Raises ConfigurationError for contradictory settings.
    """

    #: The broker's certificate, with its intermediate certificates.
    certificate: Pem = field(repr=False)
    #: The private key of `certificate`; None if `certificate` contains it too.
    key: Pem | None = field(default=None, repr=False)
    #: The password of an encrypted private key.
    key_password: str | None = field(default=None, repr=False)
    #: The CA certificates for client certificates; required unless `client_auth` is "none".
    client_ca: Pem | None = field(default=None, repr=False)
    #: Whether a client certificate is required, requested or not requested (ssl.client.auth). With
    #: "required" and "requested", a certificate that the client sends must be valid.
    client_auth: ClientAuth = "none"

    def __post_init__(self) -> None:
        if self.client_auth not in _VERIFY:
            raise ConfigurationError(
                f"client_auth is {self.client_auth!r}: take one of {', '.join(_VERIFY)}"
            )
        if self.client_auth != "none" and self.client_ca is None:
            raise ConfigurationError(
                f"client_auth is {self.client_auth!r} without client_ca: give the CA certificates"
                " that client certificates are checked with"
            )
        if self.client_auth == "none" and self.client_ca is not None:
            raise ConfigurationError(
                "client_ca is set and client_auth is 'none', so that no client certificate is"
                " requested: set client_auth to 'required' or 'requested'"
            )


#: A function that is called with the error of a failed handshake, in the task or callback that
#: performs the handshake; None for no function.
ON_FAULT: Final[ContextVar[Callable[[ssl.SSLError], None] | None]] = ContextVar(
    "ON_FAULT", default=None
)


class _TlsHandshake(ssl.SSLObject):
    """Hides the failure of a handshake from asyncio, so that the client gets the TLS alert.

    asyncio would close the connection at once and not send the alert. Instead, the handshake stays
    incomplete, and the function in `ON_FAULT` closes the connection later.
    """

    _failed = False

    def do_handshake(self) -> None:
        if self._failed:
            raise ssl.SSLWantReadError
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError, ssl.SSLSyscallError):
            raise
        except ssl.SSLError as error:
            tell = ON_FAULT.get()
            if tell is None:
                raise
            self._failed = True
            tell(error)
            raise ssl.SSLWantReadError from None


def server_context(tls: ServerTls) -> ssl.SSLContext:
    """Returns the SSL context of a listener; reads the files that `tls` names.

    Raises a ConfigurationError that names the unreadable or invalid setting.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sslobject_class = _TlsHandshake
    context.minimum_version = ssl.TLSVersion.TLSv1_2  # as Kafka's ssl.enabled.protocols
    load_identity(context, tls.certificate, tls.key, tls.key_password)
    if tls.client_ca is not None:
        _trust(context, tls.client_ca)
    context.verify_mode = _VERIFY[tls.client_auth]
    return context


def _trust(context: ssl.SSLContext, client_ca: Pem) -> None:
    name = named(client_ca, "tls: client_ca")
    authorities = certificates_of(read_pem(client_ca, "tls: client_ca"))
    if not authorities:
        raise ConfigurationError(f"{name} holds no certificate")
    try:
        context.load_verify_locations(cadata=b"\n".join(authorities).decode("ascii"))
    except (ssl.SSLError, ValueError):
        raise ConfigurationError(f"{name} holds a certificate that is broken") from None


#: Explanations of OpenSSL's error reasons, for the broker's log.
_FAULTS: Final = {
    "WRONG_VERSION_NUMBER": "the client does not speak TLS",
    "HTTP_REQUEST": "the client speaks HTTP without TLS",
    "HTTPS_PROXY_REQUEST": "the client speaks HTTP without TLS",
    "UNSUPPORTED_PROTOCOL": "the client supports no TLS version of the broker",
    "NO_SHARED_CIPHER": "the client supports no cipher of the broker",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client sent no certificate, and client_auth is"
    " 'required'",
    "CERTIFICATE_VERIFY_FAILED": "the client's certificate is not trusted",
    "TLSV1_ALERT_UNKNOWN_CA": "the client does not trust the broker's certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the client rejects the broker's certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the client rejects the broker's certificate as expired",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the client rejects the broker's certificate",
}


def handshake_fault(error: BaseException) -> str:
    """Returns why a handshake failed, as part of a log line."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{_FAULTS['CERTIFICATE_VERIFY_FAILED']}: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        reason = getattr(error, "reason", None) or "the client ended it"
        return _FAULTS.get(reason, reason)
    if isinstance(error, ConnectionAbortedError):  # asyncio's error for its handshake timeout
        return "it took too long (tls_handshake_timeout_ms)"
    if isinstance(error, OSError):
        return "the client ended the connection"
    return type(error).__name__
