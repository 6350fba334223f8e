"""Configures TLS and SASL for a secured cluster, also from `.properties` files.

The client, the proxy and the fuzzer use this package; the broker uses its PEM reader and TLS
helpers. The package opens no connection to a broker. Each public name is loaded at its first use:
`ClientCredentials` needs an HTTP client, and the mechanisms need OpenSSL's hash functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_names import lazy_names

if TYPE_CHECKING:
    from .mechanisms import DelegationToken, OAuthBearer, Plain, ScramSha256, ScramSha512
    from .oauth_grant import ClientCredentials
    from .sasl import Sasl
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

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "ClientCredentials": ".oauth_grant",
            "DelegationToken": ".mechanisms",
            "OAuthBearer": ".mechanisms",
            "Pem": ".tls",
            "Plain": ".mechanisms",
            "Sasl": ".sasl",
            "ScramSha256": ".mechanisms",
            "ScramSha512": ".mechanisms",
            "Tls": ".tls",
        },
    )
