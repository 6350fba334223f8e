"""What an exchange of any mechanism looks like to the shell that carries its tokens.

An exchange object turns the peer's tokens into ours; what carries them (SaslAuthenticate, or bare
frames behind SaslHandshake v0) is for others to know.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["ClientExchange", "ServerExchange"]


class ClientExchange(Protocol):
    """A client's side of one authentication. Raises `AuthenticationError`, then stays failed."""

    @property
    def mechanism(self) -> str:
        """Returns the name for SaslHandshake."""
        ...

    @property
    def done(self) -> bool:
        """Returns whether the server has answered all that it must."""
        ...

    def first(self) -> bytes:
        """Returns the token that opens the exchange; to be called once."""
        ...

    def next(self, challenge: bytes) -> bytes:
        """Returns the answer to the server's token; once `done`, it is empty and need not be
        sent.
        """
        ...


class ServerExchange(Protocol):
    """A server's side of one authentication. Raises `AuthenticationError`, then stays failed."""

    @property
    def mechanism(self) -> str:
        """Returns the name from SaslHandshake."""
        ...

    @property
    def done(self) -> bool:
        """Returns whether the client has proved who it is."""
        ...

    @property
    def username(self) -> str | None:
        """Who the client is; None until it is proved."""
        ...

    def next(self, response: bytes) -> bytes:
        """Returns the answer to the client's token, to be sent also when `done`."""
        ...
