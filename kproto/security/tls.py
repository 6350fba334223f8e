"""TLS as a client wants it: what is trusted, who we are, what is checked. Plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from ..wire.errors import ConfigurationError

__all__ = ["Pem", "Tls"]

#: PEM as text or bytes that hold `-----BEGIN `, or the path of a file of it.
Pem: TypeAlias = str | bytes | Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """What `tls=True` says in full; every part has the default that is safe.

    Raises ConfigurationError for parts that do not fit together. Files are read when a connection
    is opened, and again once they have changed.
    """

    #: Certificates that are trusted; None for those of the system.
    ca: Pem | None = None
    #: Our own certificate, with those between it and its root, for brokers that ask for one.
    certificate: Pem | None = field(default=None, repr=False)
    #: Its private key; None when `certificate` holds it too.
    key: Pem | None = field(default=None, repr=False)
    #: What the key is encrypted with.
    key_password: str | None = field(default=None, repr=False)
    #: Check the broker's certificate. Without it anybody may be the broker.
    verify: bool = True
    #: Check that the certificate is for the very name that is connected to.
    check_hostname: bool = True
    #: The name to ask for and to check instead of the one that is connected to.
    server_name: str | None = None

    def __post_init__(self) -> None:
        if self.certificate is None and (self.key is not None or self.key_password is not None):
            what = "key" if self.key is not None else "key_password"
            raise ConfigurationError(f"tls: {what} is set without certificate; set that too")
