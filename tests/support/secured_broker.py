"""Provides certificates and SASL exchanges for tests of a secured broker."""

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
    """Returns the authority that signs the certificates of a test run."""
    return trustme.CA(key_type=trustme.KeyType.ECDSA)


@cache
def pem_of(*names: str, common_name: str | None = None) -> str:
    """Returns a private key and its certificate, signed by `authority`, as PEM."""
    issued = authority().issue_cert(
        *names,
        common_name=common_name,
        organization_name="Bread",
        organization_unit_name="Oven",
        key_type=trustme.KeyType.ECDSA,
    )
    return issued.private_key_and_cert_chain_pem.bytes().decode()


def authority_pem() -> str:
    """Returns the certificate of the authority, which clients trust."""
    return authority().cert_pem.bytes().decode()


def server_tls(client_auth: str = "none") -> ServerTls:
    """Returns the TLS settings of a listener on this machine."""
    return ServerTls(
        certificate=pem_of("localhost", "127.0.0.1"),
        client_ca=None if client_auth == "none" else authority_pem(),
        client_auth=client_auth,  # type: ignore[arg-type]  # a str is no Literal
    )


def client_tls(name: str | None = None) -> ssl.SSLContext:
    """Returns the TLS context of a client, with a certificate if `name` is not None."""
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
    """Returns a listener of one of Kafka's four security protocols."""
    return Listener(
        protocol,
        tls=server_tls() if "SSL" in protocol else None,
        mechanisms=mechanisms if "SASL" in protocol else (),
    )


def password(mechanism: str, name: str = "alice", secret: str | None = None) -> ClientExchange:
    """Returns a client's SASL exchange by name and password."""
    secret = PASSWORDS[name] if secret is None else secret
    return client_exchange(mechanism, Credentials(name, secret, prepare_strings=False))


def bearer(now_ms: int, name: str = "alice", lifetime_ms: int = 60_000) -> ClientExchange:
    """Returns a client's SASL exchange by an unsigned token."""
    return OAuthBearerClient(
        BearerToken(unsecured_token(name, now_ms=now_ms, lifetime_ms=lifetime_ms))
    )


def sign_in(
    connection: RawConnection, exchange: ClientExchange, version: int = 2
) -> SaslAuthenticateResponse:
    """Authenticates; returns the broker's last response, with an error or with success."""
    handshake = connection.exchange(SaslHandshakeRequest(mechanism=exchange.mechanism), 1)
    assert handshake.error_code == 0, handshake
    token = exchange.first()
    while True:
        answer = connection.exchange(SaslAuthenticateRequest(auth_bytes=token), version)
        if answer.error_code:
            return answer
        token = exchange.next(answer.auth_bytes)
        if exchange.done:
            return answer


def sign_in_bare(connection: RawConnection, exchange: ClientExchange) -> None:
    """Authenticates by SaslHandshake v0 and frames without a header."""
    handshake = connection.exchange(SaslHandshakeRequest(mechanism=exchange.mechanism), 0)
    assert handshake.error_code == 0, handshake
    token = exchange.first()
    while not exchange.done:
        connection.send_bytes(frame(token))
        token = exchange.next(connection.receive_frame())
