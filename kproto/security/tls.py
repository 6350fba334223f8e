"""Configures a client's TLS, and creates an `ssl.SSLContext` from the settings.

`ssl` is imported when the client needs it: OpenSSL takes 4 MiB. asyncio imports it, too, but
Python may have been built without it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from ..wire.errors import ConfigurationError
from .pem import FileStamp, Pem, certificates_of, has_key, is_encrypted, named, read_pem, stamp

if TYPE_CHECKING:
    import ssl

__all__ = ["AnyTls", "Pem", "Tls", "TlsContexts", "check_tls", "client_context", "load_identity"]

_log: Final = logging.getLogger("kproto.security")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """Configures TLS in detail. `Tls()` has the same effect as `tls=True`.

    Raises ConfigurationError for a key or its password without a certificate. Files are read when
    the first connection is opened, and again for the next connection after a file has changed.
    """

    #: Trusted CA certificates, or the path of a directory made by `openssl rehash`; None for the
    #: system's CA certificates.
    ca: Pem | None = field(default=None, repr=False)
    #: The client's certificate with its intermediate certificates, for brokers that request it.
    certificate: Pem | None = field(default=None, repr=False)
    #: The private key of `certificate`; None if `certificate` contains it too.
    key: Pem | None = field(default=None, repr=False)
    #: The password of an encrypted private key.
    key_password: str | None = field(default=None, repr=False)
    #: Check the broker's certificate. If False, the broker is not authenticated.
    verify: bool = True
    #: Check that the certificate is for the host of the connection. No effect if `verify` is False.
    check_hostname: bool = True
    #: The name to request (SNI) and to check instead of the host of the connection.
    server_name: str | None = None

    def __post_init__(self) -> None:
        if self.certificate is None and (self.key is not None or self.key_password is not None):
            what = "key" if self.key is not None else "key_password"
            raise ConfigurationError(f"tls: {what} is set without certificate; set that too")


#: The values of a client's setting `tls`.
AnyTls: TypeAlias = "bool | Tls | ssl.SSLContext"


def check_tls(given: object) -> None:
    """Raises ConfigurationError unless `given` is a bool, a `Tls` or an SSLContext for clients."""
    if isinstance(given, bool | Tls):
        return
    import ssl  # here, because a client without TLS does not need it

    if isinstance(given, ssl.SSLContext) and given.protocol is ssl.PROTOCOL_TLS_SERVER:
        raise ConfigurationError(
            "tls is an ssl.SSLContext for servers; ssl.create_default_context() makes a client's"
        )
    if not isinstance(given, ssl.SSLContext):
        raise ConfigurationError(
            f"tls is a {type(given).__name__}; it must be True, False, a Tls or an ssl.SSLContext"
        )


def client_context(tls: Tls) -> ssl.SSLContext:
    """Returns the SSLContext for `tls`; reads the certificate and key files that `tls` names.

    Raises ConfigurationError if a setting is invalid or its file is unusable; the error names the
    setting.
    """
    import ssl

    context = _trusting(tls.ca)
    context.check_hostname = tls.verify and tls.check_hostname
    if not tls.verify:
        context.verify_mode = ssl.CERT_NONE
    if tls.certificate is not None:
        load_identity(context, tls.certificate, tls.key, tls.key_password)
    return context


def _trusting(ca: Pem | None) -> ssl.SSLContext:
    import ssl

    if ca is None:
        return ssl.create_default_context()
    from pathlib import Path  # here, because a client without TLS reads no file

    if not isinstance(ca, bytes) and stamp(ca) is not None and Path(ca).is_dir():
        return ssl.create_default_context(capath=os.fspath(ca))
    pem, name = read_pem(ca, "tls: ca"), named(ca, "tls: ca")
    certificates = certificates_of(pem)
    if not certificates:
        raise ConfigurationError(f"{name} holds no certificate")
    try:
        return ssl.create_default_context(cadata=_ascii(certificates))
    except (ssl.SSLError, ValueError):
        raise ConfigurationError(f"{name} holds a broken certificate") from None


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
    """Loads a certificate and its key into `context`; if `key` is None, `certificate` has the key.

    Raises ConfigurationError for an unusable certificate, key or password. The error names the
    setting, with `where` in front of its name.
    """
    import ssl

    whole = read_pem(certificate, f"{where}: certificate")
    name = named(certificate, f"{where}: certificate")
    key_name = name if key is None else named(key, f"{where}: key")
    key_pem = whole if key is None else read_pem(key, f"{where}: key")
    chain = certificates_of(whole)
    if not chain:
        raise ConfigurationError(f"{name} holds no certificate")
    if not has_key(key_pem):
        other = "; set key if the private key is in another file" if key is None else ""
        raise ConfigurationError(f"{key_name} holds no private key{other}")
    encrypted = is_encrypted(key_pem)
    if encrypted and not password:
        raise ConfigurationError(f"{key_name} is encrypted: set key_password")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=_ascii(chain))
    except (ssl.SSLError, ValueError):
        raise ConfigurationError(f"{name} holds a broken certificate") from None
    try:
        with _as_file(b"\n".join(chain) + b"\n" + key_pem) as path:
            # Without a password function OpenSSL would ask for the password at the terminal.
            context.load_cert_chain(path, password=lambda: password or "")
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", None)
        raise ConfigurationError(_refused(name, key_name, reason, encrypted=encrypted)) from None


def _refused(name: str, key_name: str, reason: str | None, *, encrypted: bool) -> str:
    """Returns the error text for a certificate and key that OpenSSL refused with `reason`."""
    if reason == "KEY_VALUES_MISMATCH":
        return f"{key_name} does not fit {name}: the key belongs to another certificate"
    if reason in ("EE_KEY_TOO_SMALL", "CA_KEY_TOO_SMALL", "CA_MD_TOO_WEAK"):
        return f"{name} is too weak for this machine's OpenSSL ({reason})"
    if encrypted:
        return (
            f"{key_name} cannot be opened with key_password: the password is wrong, or the key is"
            " broken"
        )
    return f"{key_name} holds a private key that is broken, or of a kind unknown here"


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """Yields the path of a temporary file with `content`: OpenSSL reads keys from files only.

    On systems with memfd_create the file is in memory. On other systems it is on disk, and only the
    user can read it. It is removed on exit.
    """
    from pathlib import Path  # here, because a client without TLS reads no file

    if hasattr(os, "memfd_create") and Path("/proc/self/fd").is_dir():
        descriptor = os.memfd_create("kproto")
        try:
            with os.fdopen(descriptor, "wb", closefd=False) as file:
                file.write(content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    import tempfile  # here, because few systems need it

    descriptor, path = tempfile.mkstemp(prefix="kproto")  # of mode 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        yield path
    finally:
        Path(path).unlink()


class TlsContexts:
    """Caches the `ssl.SSLContext` of a client's connections until its files change.

    `renew` reads files and may be called in a thread. If the changed files are unusable, such as a
    new certificate without its new key yet, `renew` returns the previous context. `cached` then
    returns None, so that the next connection calls `renew` again.
    """

    def __init__(self, tls: AnyTls) -> None:
        check_tls(tls)
        self._tls = Tls() if tls is True else tls
        self._context = None if isinstance(tls, bool | Tls) else tls
        self._stamps: tuple[FileStamp | None, ...] = ()

    @property
    def enabled(self) -> bool:
        """Returns False if connections are plaintext."""
        return self._tls is not False

    @property
    def shows_certificate(self) -> bool | None:
        """Returns True if the client has a certificate; None for an SSLContext, or without TLS."""
        return self._tls.certificate is not None if isinstance(self._tls, Tls) else None

    def name_of(self, host: str) -> str:
        """Returns the name for SNI and for the check of the server certificate.

        This is `Tls.server_name` if it is set, and otherwise `host` without a trailing dot.
        """
        if isinstance(self._tls, Tls) and self._tls.server_name is not None:
            return self._tls.server_name
        return host.removesuffix(".")

    def cached(self) -> ssl.SSLContext | None:
        """Returns the context; None if the caller must call `renew`, or if TLS is off.

        The caller must call `renew` for the first connection and after files have changed.
        """
        if isinstance(self._tls, Tls) and stamps_of(self._tls) != self._stamps:
            return None
        return self._context

    def renew(self) -> ssl.SSLContext:
        """Reads the files again, and returns the new context.

        If the files cannot be used, returns the previous context; if there is none, raises
        ConfigurationError as `client_context` does.
        """
        assert isinstance(self._tls, Tls), "others are cached"
        stamps = stamps_of(
            self._tls
        )  # before the files are read: a change while they are read makes `cached` return None
        try:
            context = client_context(self._tls)
        except ConfigurationError as error:
            if self._context is None:
                raise
            _log.warning(
                "the changed TLS files cannot be used, the previous stay in use: %s", error
            )
            return self._context
        self._context, self._stamps = context, stamps
        return context


def stamps_of(tls: Tls) -> tuple[FileStamp | None, ...]:
    """Returns a stamp for each of the files `ca`, `certificate` and `key`, to detect changed files.

    A stamp is None if `tls` does not name the file, or if the file is unreadable.
    """
    parts = (tls.ca, tls.certificate, tls.key)
    return tuple(None if part is None else stamp(part) for part in parts)
