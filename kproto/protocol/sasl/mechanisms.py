"""Lists the mechanisms that use passwords, with the classes of both sides.

OAUTHBEARER is not among them, because it uses a token: see `oauthbearer`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from ...wire.errors import ConfigurationError
from .credentials import CredentialLookup, Credentials
from .exchange import ClientExchange, ServerExchange
from .plain import PlainClient, PlainServer
from .scram import (
    ScramSha256Client,
    ScramSha256Server,
    ScramSha512Client,
    ScramSha512Server,
)

__all__ = ["MECHANISMS", "Mechanism", "client_exchange", "server_exchange"]


class Mechanism(NamedTuple):
    """Holds the functions that create the client's and the server's side of a mechanism."""

    client: Callable[[Credentials], ClientExchange]
    server: Callable[[CredentialLookup], ServerExchange]


#: The mechanisms, by their names in SaslHandshake.
MECHANISMS: Final[Mapping[str, Mechanism]] = MappingProxyType(
    {
        "PLAIN": Mechanism(PlainClient, PlainServer),
        "SCRAM-SHA-256": Mechanism(ScramSha256Client, ScramSha256Server),
        "SCRAM-SHA-512": Mechanism(ScramSha512Client, ScramSha512Server),
    }
)


def client_exchange(mechanism: str, credentials: Credentials) -> ClientExchange:
    """Returns the client's side of a mechanism, with its default settings.

    Raises `ConfigurationError` for an unknown mechanism.
    """
    return _find(mechanism).client(credentials)


def server_exchange(mechanism: str, lookup: CredentialLookup) -> ServerExchange:
    """Returns the server's side of a mechanism, with its default settings.

    Raises `ConfigurationError` for an unknown mechanism; a broker then answers the client with
    error code 33 and the names in `MECHANISMS`.
    """
    return _find(mechanism).server(lookup)


def _find(mechanism: str) -> Mechanism:
    found = MECHANISMS.get(mechanism)
    if found is None:
        raise ConfigurationError(
            f"SASL mechanism {mechanism!r} is not known: take one of {', '.join(MECHANISMS)}"
        )
    return found
