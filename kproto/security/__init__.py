"""Configures TLS and SASL for a secured cluster, also from files of properties.

Plain data and plain functions, which move no bytes to brokers. Client and proxy use them.
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
