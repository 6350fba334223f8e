"""How to reach a secured cluster: TLS, SASL, and what says so in a file. Client and proxy use it.

Plain data and plain functions; who moves bytes with it is elsewhere.
"""

from .mechanisms import (
    DelegationToken,
    OAuthBearer,
    Plain,
    Sasl,
    ScramSha256,
    ScramSha512,
)
from .tls import Pem, Tls

__all__ = [
    "DelegationToken",
    "OAuthBearer",
    "Pem",
    "Plain",
    "Sasl",
    "ScramSha256",
    "ScramSha512",
    "Tls",
]
