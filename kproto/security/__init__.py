"""Configures TLS and SASL for a secured cluster, also from `.properties` files.

Client and proxy import these settings and functions. They open no connection to a broker.
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
