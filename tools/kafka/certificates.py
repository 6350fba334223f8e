"""Creates certificates: an authority, and the certificates that it signs, all as PEM text."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

__all__ = ["Authority", "Certificate"]

_A_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate with its chain, and its key in PKCS#8, the format that Kafka requires."""

    chain: str
    key: str

    def encrypted_key(self, password: str) -> str:
        """Returns the PKCS#8 key encrypted with a password."""
        return _pkcs8(self.key.encode(), BestAvailableEncryption(password.encode()))


class Authority:
    """A private certificate authority; clients trust it only if they are given `pem`."""

    def __init__(self) -> None:
        self._ca = trustme.CA()

    @property
    def pem(self) -> str:
        """Returns the authority's own certificate."""
        return self._ca.cert_pem.bytes().decode("ascii")

    def server(self, *names: str, expired: bool = False) -> Certificate:
        """Returns a certificate for a server with these host names and addresses."""
        ends = datetime.now(UTC) - _A_DAY if expired else None
        begins = datetime.now(UTC) - 2 * _A_DAY if expired else None
        return _certificate(self._ca.issue_cert(*names, not_before=begins, not_after=ends))

    def client(self, name: str) -> Certificate:
        """Returns a client certificate; Kafka's principal is `User:CN=NAME,OU=...,O=...`."""
        return _certificate(self._ca.issue_cert(f"{name}@example.com", common_name=name))


def _certificate(leaf: trustme.LeafCert) -> Certificate:
    chain = "".join(part.bytes().decode("ascii") for part in leaf.cert_chain_pems)
    return Certificate(chain, _pkcs8(leaf.private_key_pem.bytes(), NoEncryption()))


def _pkcs8(pem: bytes, encryption: KeySerializationEncryption) -> str:
    key = load_pem_private_key(pem, None)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode("ascii")
