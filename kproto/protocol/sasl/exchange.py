"""Defines the two sides of a SASL exchange, client and server; each mechanism implements both.

An exchange object answers the tokens of the other side; other modules carry the tokens (in
SaslAuthenticate, or in bare frames after SaslHandshake v0).
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["ClientExchange", "ServerExchange"]


class ClientExchange(Protocol):
    """Defines a client's side of one authentication.

    `first` and `next` raise `AuthenticationError` if the authentication fails. The exchange cannot
    continue after this failure.
    """

    @property
    def mechanism(self) -> str:
        """Returns the name for SaslHandshake."""
        ...

    @property
    def done(self) -> bool:
        """Returns True if the exchange has succeeded: no token follows."""
        ...

    def first(self) -> bytes:
        """Returns the client's first token. Call it once, before `next`."""
        ...

    def next(self, challenge: bytes) -> bytes:
        """Returns the answer to the server's token `challenge`.

        If `done` is True after the call, the answer is empty and need not be sent.
        """
        ...


class ServerExchange(Protocol):
    """Defines a server's side of one authentication.

    `next` raises `AuthenticationError` if the authentication fails. The exchange cannot continue
    after this failure.
    """

    @property
    def mechanism(self) -> str:
        """Returns the mechanism that the client has named in SaslHandshake."""
        ...

    @property
    def done(self) -> bool:
        """Returns True if the client is authenticated."""
        ...

    @property
    def username(self) -> str | None:
        """Returns the user of the client; None until it is authenticated."""
        ...

    def next(self, response: bytes) -> bytes:
        """Returns the answer to the client's token `response`.

        Send the answer even if `done` is True after the call: the client waits for it.
        """
        ...
