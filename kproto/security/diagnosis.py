"""Explains why a connection to a secured listener failed.

The symptoms are OpenSSL's error, the broker's first bytes, and the stage at which the broker closed
the connection. A TLS fault, such as a wrong certificate or setting, is an AuthenticationError,
which is not retried. If the broker only closed the connection, it may be unavailable: the error is
then a BrokerConnectionError, which names possible causes.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from ..wire.errors import AuthenticationError, BrokerConnectionError, KprotoError

if TYPE_CHECKING:
    import ssl

__all__ = [
    "CONNECTION_LIMIT_HINT",
    "Stage",
    "closed_hint",
    "handshake_fault",
    "is_tls_error",
    "tls_fault",
    "unexpected_tls",
]


class Stage(Enum):
    """Names the stage that a connection has reached; each value describes its stage."""

    VERSIONS = "no request was answered yet"
    AUTHENTICATION = "SASL is in progress"
    FIRST_REQUEST = "versions are agreed on, and no later request was answered"
    OPEN = "requests are answered"


#: Description and remedy for each error of OpenSSL (X509_V_ERR_…) about a broker's certificate.
_CERTIFICATE_FAULTS: Final[dict[int, tuple[str, str]]] = {
    9: ("is not valid yet", "check the clock of this machine and of the certificate's issuer"),
    10: ("has expired", "the broker needs a new one; check this machine's clock, too"),
    18: (
        "is self-signed, and not trusted",
        "if it is the right one, trust it: tls=Tls(ca=…) with that certificate",
    ),
    19: (
        "comes from a CA that is not trusted",
        "tls=Tls(ca=…) names the certificate of the cluster's CA",
    ),
    20: (
        "comes from a CA that is not known",
        "tls=Tls(ca=…) names the certificate of the cluster's CA",
    ),
    21: (
        "comes from a CA that is not known",
        "the broker should send the intermediate certificates; tls=Tls(ca=…) names the CA's",
    ),
    23: ("was revoked", "the broker needs a new one"),
    62: (
        "is for another name",
        "connect by a name that it has, or set one that it has: tls=Tls(server_name=…)",
    ),
    64: (
        "is for another address",
        "connect by a name that it has, or set one that it has: tls=Tls(server_name=…)",
    ),
}
_NAME_FAULTS: Final = (62, 64)

#: OpenSSL's error reasons if the broker's bytes are not TLS.
_NO_TLS: Final = frozenset(
    {"WRONG_VERSION_NUMBER", "UNKNOWN_PROTOCOL", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"}
)

#: TLS alerts of a broker that requires a client certificate, or refuses the client's.
_REQUIRES_CERTIFICATE: Final = frozenset(
    {
        "TLSV13_ALERT_CERTIFICATE_REQUIRED",
        "SSLV3_ALERT_BAD_CERTIFICATE",
        "SSLV3_ALERT_HANDSHAKE_FAILURE",
    }
)

#: Other TLS alerts of a broker about the client's certificate.
_REFUSED_CERTIFICATE: Final[dict[str, str]] = {
    "TLSV1_ALERT_UNKNOWN_CA": "it does not trust the CA of the client's certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the client's certificate has expired",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "the client's certificate was revoked",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it does not accept the client's certificate",
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": "it cannot use a client's certificate of this kind",
    "TLSV1_ALERT_ACCESS_DENIED": "the client's certificate may not connect",
    "TLSV1_ALERT_DECRYPT_ERROR": "it could not check the client's certificate",
}

#: Error reasons if broker and client share no TLS version, cipher or key size, or server name.
_DISAGREED: Final[dict[str, str]] = {
    "TLSV1_ALERT_PROTOCOL_VERSION": "it supports no version of TLS that this client accepts",
    "UNSUPPORTED_PROTOCOL": "it supports no version of TLS that this client accepts",
    "NO_PROTOCOLS_AVAILABLE": "this client's settings allow no version of TLS",
    "TLSV1_UNRECOGNIZED_NAME": "it does not recognize the requested server name",
    "NO_SHARED_CIPHER": "both sides share no cipher",
    "DH_KEY_TOO_SMALL": "its key is too small for this machine's OpenSSL",
    "EE_KEY_TOO_SMALL": "the key of its certificate is too small for this machine's OpenSSL",
}

_IN_THE_CLEAR: Final = "the listener does not speak TLS; connect with tls=False, or to the TLS port"
_SPEAKS_TLS: Final = "the listener speaks TLS; connect with tls=True, or to the plaintext port"

#: First bytes of a TLS listener's answer to plaintext: an alert or a handshake record.
_TLS_RECORDS: Final = (b"\x15\x03", b"\x16\x03")

_CLIENT_CERTIFICATE: Final = (
    "does this listener require a client's certificate, and accept the one that is set?"
)

#: A broker with too many connections accepts a further one and closes it at once, without a byte.
CONNECTION_LIMIT_HINT: Final = (
    "has the broker reached its limit of connections (max.connections.per.ip, max.connections)?"
)

_REQUIRES_TLS: Final = f"does this listener require TLS (tls=True)? Or {CONNECTION_LIMIT_HINT}"

#: Possible cause of a close without an error, by stage, whether TLS is on, and whether SASL is on.
_CLOSED: Final[dict[tuple[Stage, bool, bool], str]] = {
    (Stage.VERSIONS, False, False): f"{_REQUIRES_TLS} Kafka before 0.10 requires "
    "broker_version (property broker.version.fallback)",
    (Stage.VERSIONS, False, True): _REQUIRES_TLS,
    (Stage.VERSIONS, True, False): _CLIENT_CERTIFICATE,
    (Stage.VERSIONS, True, True): _CLIENT_CERTIFICATE,
    (Stage.AUTHENTICATION, False, True): "SASL was in progress; was it refused?",
    (Stage.AUTHENTICATION, True, True): "SASL was in progress; was it refused?",
    (Stage.FIRST_REQUEST, False, False): "does this listener require SASL (sasl=…)?",
    (Stage.FIRST_REQUEST, True, False): "does this listener require SASL (sasl=…)?",
}


def handshake_fault(
    error: OSError, address: str, name: str, *, shows_certificate: bool | None
) -> KprotoError:
    """Returns the error to raise for a TLS handshake that failed with `error`.

    `name` is the requested server name. `shows_certificate` is True if the client has a
    certificate, None if that is not known.
    """
    import ssl  # here, because a client without TLS does not need it

    # The broker closed the connection, with or without a TLS close_notify. It may be shutting down,
    # so these errors do not prove a wrong setting.
    is_closed = isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError)
    if isinstance(error, ssl.SSLError) and not is_closed:
        known = tls_fault(error, address, name, shows_certificate=shows_certificate)
        if known is not None:
            return known
        reason = error.reason or error.strerror or type(error).__name__
        return AuthenticationError(f"{address}: the TLS handshake failed ({reason})")
    reason = error.strerror or str(error) or "the broker closed the connection"
    return BrokerConnectionError(
        f"the TLS handshake was cut off ({reason}); is this a listener with TLS?"
        " A plaintext listener reads TLS as a request that is too large, and closes the connection."
        f" Or {CONNECTION_LIMIT_HINT}",
        address=address,
    )


def is_tls_error(error: OSError) -> bool:
    """Returns True for an error of OpenSSL."""
    import ssl  # here, because a client without TLS does not need it

    return isinstance(error, ssl.SSLError)


def tls_fault(
    error: BaseException | None, address: str, name: str, *, shows_certificate: bool | None
) -> AuthenticationError | None:
    """Returns the error to raise for `error`; None if its cause is not certain, or not TLS.

    `name` and `shows_certificate` are as in `handshake_fault`. `error` may come after the
    handshake: in TLS 1.3 a broker refuses a client's certificate only when the client's handshake
    is over.
    """
    if error is None:
        return None
    import ssl  # here, because a client without TLS does not need it

    if not isinstance(error, ssl.SSLError):
        return None
    if isinstance(error, ssl.SSLCertVerificationError):
        return AuthenticationError(f"{address}: {_of_certificate(error, name)}")
    reason = error.reason or ""
    if reason in _NO_TLS:
        return AuthenticationError(f"{address}: {_IN_THE_CLEAR}")
    reason_text = _REFUSED_CERTIFICATE.get(reason) or _DISAGREED.get(reason)
    if reason in _REQUIRES_CERTIFICATE:
        reason_text = _requires_certificate(shows_certificate)
    if reason_text is None:
        return None
    return AuthenticationError(f"{address}: the broker and this client do not agree: {reason_text}")


def _of_certificate(error: ssl.SSLCertVerificationError, name: str) -> str:
    known = _CERTIFICATE_FAULTS.get(error.verify_code)
    if known is None:
        return f"the broker's certificate was refused ({error.verify_message})"
    wrong, remedy = known
    expected_name = f" than {name!r}" if error.verify_code in _NAME_FAULTS else ""
    return f"the broker's certificate {wrong}{expected_name}; {remedy}"


def _requires_certificate(shows_certificate: bool | None) -> str:
    if shows_certificate is None:
        return "it requires a client's certificate, or refuses the one of the ssl.SSLContext"
    if shows_certificate:
        return "it refuses the client's certificate, or shares no cipher; is it from the right CA?"
    return "it requires a client's certificate, and none is set: tls=Tls(certificate=…, key=…)"


def unexpected_tls(first: bytes, address: str) -> AuthenticationError | None:
    """Returns the error to raise if the broker's first bytes are TLS; None if they are not.

    Call it for plaintext connections only.
    """
    if first.startswith(_TLS_RECORDS):
        return AuthenticationError(f"{address}: {_SPEAKS_TLS}")
    return None


def closed_hint(stage: Stage, *, tls: bool, sasl: bool) -> str:
    """Returns a possible cause if a broker closed the connection at `stage`; "" if none is known.

    `tls` and `sasl` are True if the client uses them.
    """
    return _CLOSED.get((stage, tls, sasl), "")
