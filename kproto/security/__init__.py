"""How to reach a secured cluster: TLS, SASL, and what says so in a file. Client and proxy use it.

Plain data and plain functions; who moves bytes to brokers with it is elsewhere.
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
