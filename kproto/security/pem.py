"""Reads and checks PEM, inline or from a file, and recognizes other formats.

Errors name the setting and its file, and quote nothing of the content.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from ..wire.errors import ConfigurationError

__all__ = [
    "MAX_PEM_BYTES",
    "FileStamp",
    "Pem",
    "certificates_of",
    "is_encrypted",
    "read_pem",
    "stamp",
]

#: PEM: bytes, text with `-----BEGIN ` in it, or else the path of a PEM file.
Pem: TypeAlias = str | bytes | os.PathLike[str]

#: Largest file that is read, in bytes. A system's bundle of root certificates has about 256 KiB.
MAX_PEM_BYTES: Final = 8 * 1024 * 1024

_BEGIN: Final = "-----BEGIN "
_CERTIFICATES: Final = re.compile(
    rb"-----BEGIN ((?:TRUSTED |X509 )?CERTIFICATE)-----.*?-----END \1-----", re.DOTALL
)
_KEYS: Final = re.compile(rb"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----")
_ENCRYPTED_KEYS: Final = re.compile(
    rb"-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED", re.MULTILINE
)

#: First bytes of other formats: the name of the format, and the command that converts a file.
_OTHER_FORMATS: Final[Mapping[bytes, str]] = {
    b"\xfe\xed\xfe\xed": "a Java keystore (JKS); convert it: keytool -importkeystore"
    " -srckeystore FILE -destkeystore out.p12 -deststoretype PKCS12, then"
    " openssl pkcs12 -in out.p12 -out out.pem",
    b"\x30\x82": "DER or PKCS12, not PEM; convert it: openssl pkcs12 -in FILE -out out.pem, or"
    " openssl x509 -inform DER -in FILE -out out.pem",
}

#: Text that may be the base64 content of a key; errors do not quote it.
_LIKE_BASE64: Final = re.compile(r"[A-Za-z0-9+/=\s]{64,}")
_LONGEST_PATH: Final = 4096


class FileStamp(NamedTuple):
    """Holds a file's mtime, size and inode. Rewriting the file normally changes at least one."""

    modified_ns: int
    size: int
    inode: int


def inline(part: Pem) -> bytes | None:
    """Returns the PEM text of `part` as bytes; None if `part` is a path."""
    if isinstance(part, str) and _BEGIN in part:
        return part.encode()
    if isinstance(part, bytes):
        return part
    return None


def stamp(part: Pem) -> FileStamp | None:
    """Returns the modification time, size and inode of a PEM file, by which a change is detected.

    Returns None for inline PEM, and if `stat` fails.
    """
    if isinstance(part, bytes) or inline(part) is not None:
        return None
    from pathlib import Path  # here, because a client without TLS reads no file

    try:
        found = Path(part).stat()
    except (OSError, ValueError):
        return None
    return FileStamp(found.st_mtime_ns, found.st_size, found.st_ino)


def read_pem(part: Pem, what: str) -> bytes:
    """Returns the PEM of the setting called `what`.

    Raises ConfigurationError if the file is unreadable or too large, or if the content is not PEM.
    """
    name = named(part, what)
    pem = inline(part)
    if pem is None:
        from pathlib import Path  # here, because a client without TLS reads no file

        assert not isinstance(part, bytes)
        try:
            with Path(part).open("rb") as file:
                pem = file.read(MAX_PEM_BYTES + 1)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise ConfigurationError(f"{name} cannot be read: {reason}") from None
        except ValueError:
            raise ConfigurationError(f"{name} is no path, and no PEM") from None
        if len(pem) > MAX_PEM_BYTES:
            raise ConfigurationError(f"{name} is larger than {MAX_PEM_BYTES} bytes; is it PEM?")
    if _BEGIN.encode() not in pem:
        for start, format_name in _OTHER_FORMATS.items():
            if pem.startswith(start):
                raise ConfigurationError(f"{name} is {format_name}")
        raise ConfigurationError(f"{name} is no PEM: it holds no line '-----BEGIN …'")
    return pem


def named(part: Pem, what: str) -> str:
    """Returns `what` with `part`, for errors.

    Omits the text of `part` if it is not a path, or may be a secret.
    """
    if inline(part) is not None:
        return f"{what} (inline PEM)"
    text = os.fspath(part)
    assert isinstance(text, str), "bytes are inline"
    if len(text) > _LONGEST_PATH or _LIKE_BASE64.fullmatch(text) or not text.isprintable():
        return f"{what} (text without -----BEGIN, taken for a path)"
    return f"{what} ({text!r})"


def certificates_of(pem: bytes) -> list[bytes]:
    """Returns each certificate block, without the text between the blocks."""
    return [found.group() for found in _CERTIFICATES.finditer(pem)]


def has_key(pem: bytes) -> bool:
    """Returns True if `pem` contains a private key."""
    return _KEYS.search(pem) is not None


def is_encrypted(pem: bytes) -> bool:
    """Returns True if `pem` contains a private key that needs a password."""
    return _ENCRYPTED_KEYS.search(pem) is not None
