"""Configures TLS and SASL for a secured cluster, also from `.properties` files.

The client, the proxy and the fuzzer use this package; the broker uses its PEM reader and TLS
helpers. The package opens no connection to a broker. `ClientCredentials` is loaded at its first
use, because it needs an HTTP client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .mechanisms import (
    DelegationToken,
    OAuthBearer,
    Plain,
    Sasl,
    ScramSha256,
    ScramSha512,
)
from .tls import Pem, Tls

if TYPE_CHECKING:
    from .oauth_grant import ClientCredentials

__all__ = [
    "ClientCredentials",
    "DelegationToken",
    "OAuthBearer",
    "Pem",
    "Plain",
    "Sasl",
    "ScramSha256",
    "ScramSha512",
    "Tls",
]


def __getattr__(name: str) -> Any:
    if name != "ClientCredentials":
        raise AttributeError(f"{__name__} has no public name {name!r}")
    from .oauth_grant import ClientCredentials

    globals()[name] = ClientCredentials
    return ClientCredentials
