"""What tests of a secured broker share: certificates, and SASL over a connection."""

from __future__ import annotations

import ssl
from functools import cache

import trustme

from kproto.broker import Listener, ServerTls
from kproto.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kproto.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kproto.messages.sasl_handshake_request import SaslHandshakeRequest
from kproto.protocol.framing import frame
from kproto.protocol.sasl import (
    BearerToken,
    ClientExchange,
    Credentials,
    OAuthBearerClient,
    client_exchange,
)
from kproto.protocol.sasl.unsecured_jws import unsecured_token
from tests.support.raw_connection import RawConnection

__all__ = [
    "ALL_MECHANISMS",
    "PASSWORDS",
    "authority",
    "authority_pem",
    "bearer",
    "client_tls",
    "of_kind",
    "password",
    "pem_of",
    "server_tls",
    "sign_in",
    "sign_in_bare",
]

ALL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
PASSWORDS = {"alice": "the secret of alice", "bob": "the secret of bob"}


@cache
def authority() -> trustme.CA:
    """Who signs the certificates of a test run."""
    return trustme.CA(key_type=trustme.KeyType.ECDSA)


@cache
def pem_of(*names: str, common_name: str | None = None) -> str:
    """Key and certificate, signed by `authority`."""
    issued = authority().issue_cert(
        *names,
        common_name=common_name,
        organization_name="Bread",
        organization_unit_name="Oven",
        key_type=trustme.KeyType.ECDSA,
    )
    return issued.private_key_and_cert_chain_pem.bytes().decode()


def authority_pem() -> str:
    """The certificate to trust."""
    return authority().cert_pem.bytes().decode()


def server_tls(client_auth: str = "none") -> ServerTls:
    """TLS of a listener on this machine."""
    return ServerTls(
        certificate=pem_of("localhost", "127.0.0.1"),
        client_ca=None if client_auth == "none" else authority_pem(),
        client_auth=client_auth,  # type: ignore[arg-type]  # a str is no Literal
    )


def client_tls(name: str | None = None) -> ssl.SSLContext:
    """TLS of a client, which shows a certificate if it has a name."""
    context = ssl.create_default_context(cadata=authority_pem())
    if name is not None:
        authority().issue_cert(
            "client@example.org",
            common_name=name,
            organization_name="Bread",
            organization_unit_name="Oven",
            key_type=trustme.KeyType.ECDSA,
        ).configure_cert(context)
    return context


def of_kind(protocol: str, mechanisms: tuple[str, ...] = ALL_MECHANISMS) -> Listener:
    """A listener of one of Kafka's four kinds."""
    return Listener(
        protocol,
        tls=server_tls() if "SSL" in protocol else None,
        mechanisms=mechanisms if "SASL" in protocol else (),
    )


def password(mechanism: str, name: str = "alice", secret: str | None = None) -> ClientExchange:
    """A client's exchange by name and password."""
    secret = PASSWORDS[name] if secret is None else secret
    return client_exchange(mechanism, Credentials(name, secret, prepare_strings=False))


def bearer(now_ms: int, name: str = "alice", lifetime_ms: int = 60_000) -> ClientExchange:
    """A client's exchange by a token without a signature."""
    return OAuthBearerClient(
        BearerToken(unsecured_token(name, now_ms=now_ms, lifetime_ms=lifetime_ms))
    )


def sign_in(
    connection: RawConnection, exchange: ClientExchange, version: int = 2
) -> SaslAuthenticateResponse:
    """The broker's last answer: that which refused, or that which took the client in."""
    shaken = connection.exchange(SaslHandshakeRequest(mechanism=exchange.mechanism), 1)
    assert shaken.error_code == 0, shaken
    token = exchange.first()
    while True:
        answer = connection.exchange(SaslAuthenticateRequest(auth_bytes=token), version)
        if answer.error_code:
            return answer
        token = exchange.next(answer.auth_bytes)
        if exchange.done:
            return answer


def sign_in_bare(connection: RawConnection, exchange: ClientExchange) -> None:
    """The same, by SaslHandshake v0 and frames without a header."""
    shaken = connection.exchange(SaslHandshakeRequest(mechanism=exchange.mechanism), 0)
    assert shaken.error_code == 0, shaken
    token = exchange.first()
    while not exchange.done:
        connection.send_bytes(frame(token))
        token = exchange.next(connection.receive_frame())
