"""Implements PLAIN (RFC 4616) for both sides: name and password in one token. Does no I/O."""

from __future__ import annotations

from typing import Final

from ...wire.errors import AuthenticationError, ConfigurationError
from .credentials import INVALID_CREDENTIALS, CredentialLookup, Credentials
from .saslprep import saslprep
from .text import decode_text, encode_text

__all__ = ["OTHER_AUTHORIZATION_ID", "PlainClient", "PlainServer"]

#: The text of the error if the password is right, and the authorization id is not the user's name.
OTHER_AUTHORIZATION_ID: Final = "PLAIN: a user may act only for itself"


class PlainClient:
    """Implements a client of PLAIN: it sends the password in clear text, so it needs TLS.

    Raises `ConfigurationError` for a delegation token, which Kafka accepts only over SCRAM.
    """

    mechanism = "PLAIN"

    def __init__(self, credentials: Credentials) -> None:
        if credentials.delegation_token:
            raise ConfigurationError(
                "PLAIN cannot carry a delegation token: use SCRAM-SHA-256 or SCRAM-SHA-512"
            )
        self._credentials = credentials
        self._started = False
        self._done = False

    @property
    def done(self) -> bool:
        """Returns True if the server has accepted the user name and password."""
        return self._done

    def first(self) -> bytes:
        """Returns `NUL name NUL password` (RFC 4616, 2).

        The server may apply SASLprep to name and password.
        """
        if self._started:
            raise AuthenticationError("PLAIN: this exchange has already begun")
        self._started = True
        name = encode_text(self._credentials.username, "user name")
        password = encode_text(self._credentials.password, "password")
        return b"\0" + name + b"\0" + password

    def next(self, challenge: bytes) -> bytes:
        """Ends the exchange; ignores the server's answer, which is empty in Kafka."""
        if not self._started or self._done:
            raise AuthenticationError("PLAIN: unexpected message of the server")
        self._done = True
        return b""


class PlainServer:
    """Implements a server of PLAIN, which checks the password against a `SaltedCredential`.

    The credential may have any hash. With `prepare_strings` the server applies SASLprep to name and
    password first, as RFC 4616 requires.
    """

    mechanism = "PLAIN"

    def __init__(self, lookup: CredentialLookup, *, prepare_strings: bool = True) -> None:
        self._lookup = lookup
        self._prepare_strings = prepare_strings
        self._started = False
        self._username: str | None = None

    @property
    def done(self) -> bool:
        """Returns True if the client has sent the right password."""
        return self._username is not None

    @property
    def username(self) -> str | None:
        """Returns the user; None unless `done`."""
        return self._username

    def next(self, response: bytes) -> bytes:
        """Checks the client's only token; returns an empty response to a valid token.

        Raises `AuthenticationError` for an unknown user, a wrong password, an authorization id
        other than the user's name, a malformed token and a second token. As in Kafka, the password
        is checked before the authorization id.
        """
        if self._started:
            raise AuthenticationError("PLAIN: unexpected message of the client")
        self._started = True
        authorization_id, name, password = _parse_plain(response)
        if self._prepare_strings:
            name = saslprep(name, "user name")
            if authorization_id:
                authorization_id = saslprep(authorization_id, "authorization id")
        credential = self._lookup(name)
        if credential is None or not credential.matches(
            password, prepare_strings=self._prepare_strings
        ):
            raise AuthenticationError(f"PLAIN: {INVALID_CREDENTIALS}")
        if authorization_id not in ("", name):
            raise AuthenticationError(OTHER_AUTHORIZATION_ID)
        self._username = name
        return b""


def _parse_plain(token: bytes) -> tuple[str, str, str]:
    """Returns authorization id (may be empty), user name and password (RFC 4616, 2)."""
    parts = decode_text(token, "the client's PLAIN message").split("\0")
    if len(parts) != 3:
        raise AuthenticationError(
            "the client's PLAIN message is not three texts with a NUL between them"
        )
    authorization_id, name, password = parts
    if not name or not password:
        raise AuthenticationError("the client's PLAIN message has an empty user name or password")
    return authorization_id, name, password
