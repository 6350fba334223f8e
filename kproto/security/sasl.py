"""Defines the protocol `Sasl`, which SASL credentials of a client implement.

A client without SASL loads only this module. `mechanisms` has kproto's own classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ..wire.errors import ConfigurationError

if TYPE_CHECKING:
    from ..protocol.sasl import ClientExchange

__all__ = ["Sasl", "check_sasl"]


@runtime_checkable
class Sasl(Protocol):
    """Describes a SASL mechanism with its credentials. A client's `sasl` may be any object with
    these members.
    """

    @property
    def mechanism(self) -> str:
        """Returns the mechanism's name that SaslHandshake sends."""
        ...

    @property
    def readable(self) -> bool:
        """Returns True if SASL tokens reveal the credentials.

        A mechanism whose tokens reveal them needs TLS.
        """
        ...

    async def exchange(self, host: str) -> ClientExchange:
        """Returns a new exchange with the broker at `host`.

        Raises AuthenticationError if the credentials cannot be obtained.
        """
        ...


def check_sasl(sasl: object) -> None:
    """Raises ConfigurationError unless `sasl` is None or implements `Sasl`.

    The error does not quote `sasl`.
    """
    if sasl is None:
        return
    if isinstance(sasl, type) or not isinstance(sasl, Sasl):
        kind = f"the class {sasl.__name__}" if isinstance(sasl, type) else type(sasl).__name__
        raise ConfigurationError(
            f"sasl is of {kind}; it must have `mechanism`, `readable` and `exchange`, as Plain,"
            " ScramSha256, ScramSha512, DelegationToken and OAuthBearer do"
        )
