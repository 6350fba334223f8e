"""What may be told of a connection that is lost. Plain functions on errors."""

from __future__ import annotations

from ...wire.errors import (
    AuthenticationError,
    BrokerConnectionError,
    ConfigurationError,
    KprotoError,
    ProtocolError,
    RequestTimeoutError,
)
from ..settings import Address

__all__ = ["fresh"]


def fresh(error: KprotoError, address: Address) -> KprotoError:
    """An error of its own for each request: a raised exception collects its own traceback."""
    if isinstance(error, BrokerConnectionError):
        return BrokerConnectionError(error.reason, address=error.address)
    if isinstance(error, AuthenticationError | ConfigurationError):
        return type(error)(str(error))
    if isinstance(error, RequestTimeoutError):
        return BrokerConnectionError(
            f"the connection was given up because another request timed out ({error})",
            address=str(address),
        )
    return ProtocolError(f"{address}: {error}" if str(address) not in str(error) else str(error))
