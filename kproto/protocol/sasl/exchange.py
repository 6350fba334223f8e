"""Defines the interface of an exchange of any mechanism.

An exchange object answers the peer's tokens; other modules carry the tokens (in SaslAuthenticate,
or in bare frames after SaslHandshake v0).
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["ClientExchange", "ServerExchange"]


class ClientExchange(Protocol):
    """Defines a client's side of one authentication. Raises `AuthenticationError`, then stays
    failed.
    """

    @property
    def mechanism(self) -> str:
        """Returns the name for SaslHandshake."""
        ...

    @property
    def done(self) -> bool:
        """Returns whether the server has sent its last token."""
        ...

    def first(self) -> bytes:
        """Returns the token that opens the exchange; to be called once."""
        ...

    def next(self, challenge: bytes) -> bytes:
        """Returns the answer to the server's token; it is empty and need not be sent once
        `done`.
        """
        ...


class ServerExchange(Protocol):
    """Defines a server's side of one authentication. Raises `AuthenticationError`, then stays
    failed.
    """

    @property
    def mechanism(self) -> str:
        """Returns the name from SaslHandshake."""
        ...

    @property
    def done(self) -> bool:
        """Returns whether the client is authenticated."""
        ...

    @property
    def username(self) -> str | None:
        """Returns the user of the client; None until it is authenticated."""
        ...

    def next(self, response: bytes) -> bytes:
        """Returns the answer to the client's token, to be sent also when `done`."""
        ...
