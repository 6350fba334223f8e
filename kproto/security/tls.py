"""TLS as a client wants it: what is trusted, who we are, what is checked; and contexts of that."""

from __future__ import annotations

import logging
import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from ..wire.errors import ConfigurationError
from .pem import Pem, Stamp, certificates_of, has_key, is_encrypted, named, read_pem, stamp

__all__ = ["AnyTls", "Pem", "Tls", "TlsContexts", "check_tls", "client_context", "load_identity"]

_log: Final = logging.getLogger("kproto.security")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """What `tls=True` says in full; every part has the default that is safe.

    Raises ConfigurationError for parts that do not fit together. Files are read when a connection
    is opened, and again once they have changed.
    """

    #: Certificates that are trusted, or the path of a folder of them as `openssl rehash` makes it;
    #: None for those of the system.
    ca: Pem | None = field(default=None, repr=False)
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


#: What the setting `tls` of a client takes.
AnyTls: TypeAlias = bool | Tls | ssl.SSLContext


def check_tls(given: object) -> None:
    """Raises ConfigurationError for what is no setting of TLS."""
    if isinstance(given, ssl.SSLContext) and given.protocol is ssl.PROTOCOL_TLS_SERVER:
        raise ConfigurationError(
            "tls is an ssl.SSLContext for servers; ssl.create_default_context() makes a client's"
        )
    if not isinstance(given, bool | Tls | ssl.SSLContext):
        raise ConfigurationError(
            f"tls is a {type(given).__name__}; it must be True, False, a Tls or an ssl.SSLContext"
        )


def client_context(tls: Tls) -> ssl.SSLContext:
    """Returns a context of what `tls` says; files are read now.

    Raises ConfigurationError, which says which part is missing, unreadable or wrong.
    """
    context = _trusting(tls.ca)
    context.check_hostname = tls.verify and tls.check_hostname
    if not tls.verify:
        context.verify_mode = ssl.CERT_NONE
    if tls.certificate is not None:
        load_identity(context, tls.certificate, tls.key, tls.key_password)
    return context


def _trusting(ca: Pem | None) -> ssl.SSLContext:
    if ca is None:
        return ssl.create_default_context()
    if not isinstance(ca, bytes) and stamp(ca) is not None and Path(ca).is_dir():
        return ssl.create_default_context(capath=os.fspath(ca))
    pem, name = read_pem(ca, "tls: ca"), named(ca, "tls: ca")
    certificates = certificates_of(pem)
    if not certificates:
        raise ConfigurationError(f"{name} holds no certificate")
    try:
        return ssl.create_default_context(cadata=_ascii(certificates))
    except (ssl.SSLError, ValueError):
        raise ConfigurationError(f"{name} holds a certificate that is broken") from None


def _ascii(certificates: list[bytes]) -> str:
    return b"\n".join(certificates).decode("ascii") + "\n"


def load_identity(
    context: ssl.SSLContext,
    certificate: Pem,
    key: Pem | None,
    password: str | None,
    *,
    where: str = "tls",
) -> None:
    """Have `context` show a certificate. Raises ConfigurationError, which names the part."""
    whole = read_pem(certificate, f"{where}: certificate")
    name = named(certificate, f"{where}: certificate")
    key_name = name if key is None else named(key, f"{where}: key")
    key_pem = whole if key is None else read_pem(key, f"{where}: key")
    chain = certificates_of(whole)
    if not chain:
        raise ConfigurationError(f"{name} holds no certificate")
    if not has_key(key_pem):
        other = "; the key may be given as key" if key is None else ""
        raise ConfigurationError(f"{key_name} holds no private key{other}")
    encrypted = is_encrypted(key_pem)
    if encrypted and not password:
        raise ConfigurationError(f"{key_name} is encrypted: set key_password")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=_ascii(chain))
    except (ssl.SSLError, ValueError):
        raise ConfigurationError(f"{name} holds a certificate that is broken") from None
    try:
        with _as_file(b"\n".join(chain) + b"\n" + key_pem) as path:
            # Without a function OpenSSL would ask at the terminal.
            context.load_cert_chain(path, password=lambda: password or "")
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", None)
        raise ConfigurationError(_refused(name, key_name, reason, encrypted=encrypted)) from None


def _refused(name: str, key_name: str, reason: str | None, *, encrypted: bool) -> str:
    """Why OpenSSL did not take a certificate and its key."""
    if reason == "KEY_VALUES_MISMATCH":
        return f"{key_name} does not fit {name}: the key belongs to another certificate"
    if reason in ("EE_KEY_TOO_SMALL", "CA_KEY_TOO_SMALL", "CA_MD_TOO_WEAK"):
        return f"{name} is too weak for this machine's OpenSSL ({reason})"
    if encrypted:
        return f"{key_name} cannot be opened with key_password: it is wrong, or the key is broken"
    return f"{key_name} holds a private key that is broken, or of a kind unknown here"


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """Yields a path of `content` for OpenSSL, which takes keys from files alone: in memory where
    the system has such files, else one that only we may read, and that is gone at once.
    """
    if hasattr(os, "memfd_create") and Path("/proc/self/fd").is_dir():
        descriptor = os.memfd_create("kproto")
        try:
            with os.fdopen(descriptor, "wb", closefd=False) as file:
                file.write(content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    descriptor, path = tempfile.mkstemp(prefix="kproto")  # of mode 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        yield path
    finally:
        Path(path).unlink()


class TlsContexts:
    """The context of a client's connections; made anew when its files have changed.

    `renew` reads files and may be called in a thread. A change that cannot be used, as a
    certificate whose key is not there yet, leaves the context before it, and is tried again at the
    next connection.
    """

    def __init__(self, tls: AnyTls) -> None:
        check_tls(tls)
        self._tls = Tls() if tls is True else tls
        self._context = tls if isinstance(tls, ssl.SSLContext) else None
        self._stamps: tuple[Stamp | None, ...] = ()

    @property
    def enabled(self) -> bool:
        """Returns False where connections are in the clear."""
        return self._tls is not False

    @property
    def shows_certificate(self) -> bool | None:
        """Returns whether brokers that ask get a certificate; None where only the user knows."""
        return self._tls.certificate is not None if isinstance(self._tls, Tls) else None

    def name_of(self, host: str) -> str:
        """Returns the name that is asked for, and that the certificate must have."""
        if isinstance(self._tls, Tls) and self._tls.server_name is not None:
            return self._tls.server_name
        return host.removesuffix(".")

    def cached(self) -> ssl.SSLContext | None:
        """Returns the context, unless it is to be made first: the first time, and once files
        changed.
        """
        if isinstance(self._tls, Tls) and stamps_of(self._tls) != self._stamps:
            return None
        return self._context

    def renew(self) -> ssl.SSLContext:
        """Makes the context. Raises ConfigurationError, as `client_context` does."""
        assert isinstance(self._tls, Tls), "every other is at hand"
        stamps = stamps_of(self._tls)  # before the files are read: a change meanwhile is seen later
        try:
            context = client_context(self._tls)
        except ConfigurationError as error:
            if self._context is None:
                raise
            _log.warning("the changed TLS files cannot be used, those before them stay: %s", error)
            return self._context
        self._context, self._stamps = context, stamps
        return context


def stamps_of(tls: Tls) -> tuple[Stamp | None, ...]:
    """What changes with the files that `tls` names."""
    parts = (tls.ca, tls.certificate, tls.key)
    return tuple(None if part is None else stamp(part) for part in parts)
