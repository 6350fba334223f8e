"""Implements SASL for both sides: PLAIN (RFC 4616), SCRAM (RFC 5802), OAUTHBEARER (RFC 7628).

An exchange object answers the tokens of the other side; other modules carry the tokens (in
SaslAuthenticate, or in bare frames after SaslHandshake v0). A client's loop is the same for all
mechanisms:

    exchange = client_exchange("SCRAM-SHA-256", Credentials("alice", "secret"))
    token = exchange.first()
    while not exchange.done:
        token = exchange.next(await send(token))

Exchanges use no socket and no clock. A SCRAM exchange draws a random nonce unless the caller passes
one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy_names import lazy_names

if TYPE_CHECKING:
    from .credentials import (
        MIN_ITERATIONS,
        CredentialLookup,
        Credentials,
        PasswordSalter,
        SaltedCredential,
    )
    from .exchange import ClientExchange, ServerExchange
    from .mechanisms import MECHANISMS, Mechanism, client_exchange, server_exchange
    from .oauthbearer import (
        BearerIdentity,
        BearerToken,
        BearerValidator,
        OAuthBearerClient,
        OAuthBearerServer,
    )
    from .plain import PlainClient, PlainServer
    from .scram import (
        MAX_ITERATIONS,
        ScramSha256Client,
        ScramSha256Server,
        ScramSha512Client,
        ScramSha512Server,
    )
    from .text import MAX_TOKEN_BYTES

__all__ = [
    "MAX_ITERATIONS",
    "MAX_TOKEN_BYTES",
    "MECHANISMS",
    "MIN_ITERATIONS",
    "BearerIdentity",
    "BearerToken",
    "BearerValidator",
    "ClientExchange",
    "CredentialLookup",
    "Credentials",
    "Mechanism",
    "OAuthBearerClient",
    "OAuthBearerServer",
    "PasswordSalter",
    "PlainClient",
    "PlainServer",
    "SaltedCredential",
    "ScramSha256Client",
    "ScramSha256Server",
    "ScramSha512Client",
    "ScramSha512Server",
    "ServerExchange",
    "client_exchange",
    "server_exchange",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "MAX_ITERATIONS": ".scram",
            "MAX_TOKEN_BYTES": ".text",
            "MECHANISMS": ".mechanisms",
            "MIN_ITERATIONS": ".credentials",
            "BearerIdentity": ".oauthbearer",
            "BearerToken": ".oauthbearer",
            "BearerValidator": ".oauthbearer",
            "ClientExchange": ".exchange",
            "CredentialLookup": ".credentials",
            "Credentials": ".credentials",
            "Mechanism": ".mechanisms",
            "OAuthBearerClient": ".oauthbearer",
            "OAuthBearerServer": ".oauthbearer",
            "PasswordSalter": ".credentials",
            "PlainClient": ".plain",
            "PlainServer": ".plain",
            "SaltedCredential": ".credentials",
            "ScramSha256Client": ".scram",
            "ScramSha256Server": ".scram",
            "ScramSha512Client": ".scram",
            "ScramSha512Server": ".scram",
            "ServerExchange": ".exchange",
            "client_exchange": ".mechanisms",
            "server_exchange": ".mechanisms",
        },
    )
