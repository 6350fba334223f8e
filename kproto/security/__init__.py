"""Configures TLS and SASL for a secured cluster, also from `.properties` files.

The client, the proxy and the fuzzer use this package; the broker uses its PEM reader and TLS
helpers. The package opens no connection to a broker.
"""

from .mechanisms import (
    DelegationToken,
    OAuthBearer,
    Plain,
    Sasl,
    ScramSha256,
    ScramSha512,
)
from .oauth_grant import ClientCredentials
from .tls import Pem, Tls

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
