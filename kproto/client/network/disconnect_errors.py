"""Creates the errors of lost connections and request timeouts."""

from __future__ import annotations

from ...messages.base import Message
from ...security.diagnosis import Stage, closed_hint, tls_fault
from ...security.tls import TlsContexts
from ...wire.errors import (
    AuthenticationError,
    BrokerConnectionError,
    ConfigurationError,
    KprotoError,
    ProtocolError,
    RequestTimeoutError,
)
from ..release import has_api_versions
from ..settings import Address, ClientSettings

__all__ = ["disconnect_error", "error_for_request", "throttled_error", "timed_out_error"]


def error_for_request(error: KprotoError, address: Address) -> KprotoError:
    """Returns a copy of the connection's `error` for one request, with a traceback of its own.

    If `error` is the timeout of another request, the copy is a BrokerConnectionError. If the
    received bytes were invalid, the copy is a ProtocolError.
    """
    if isinstance(error, BrokerConnectionError):
        return BrokerConnectionError(error.reason, address=error.address)
    if isinstance(error, AuthenticationError | ConfigurationError):
        return type(error)(str(error))
    if isinstance(error, RequestTimeoutError):
        return BrokerConnectionError(
            f"the connection was closed because another request timed out ({error})",
            address=str(address),
        )
    return ProtocolError(f"{address}: {error}" if str(address) not in str(error) else str(error))


def timed_out_error(
    address: Address, request: type[Message], version: int, what: str, limit_ms: int
) -> RequestTimeoutError:
    """Returns the error of a request that timed out; `what` is e.g. "was not answered"."""
    return RequestTimeoutError(f"{address}: {request.__name__} v{version} {what} in {limit_ms} ms")


def throttled_error(
    address: Address, request: type[Message], version: int, limit_ms: int, remaining_s: float
) -> RequestTimeoutError:
    """Returns the error of a request that timed out while the broker throttled the client.

    `remaining_s` is the rest of the throttle time, in seconds.
    """
    return RequestTimeoutError(
        f"{address}: {request.__name__} v{version} could not be sent in {limit_ms} ms: the broker "
        f"throttles this client by its quota for {round(remaining_s * 1000)} ms more"
    )


def disconnect_error(
    exc: Exception | None,
    unread_bytes: int,
    stage: Stage,
    *,
    address: Address,
    settings: ClientSettings,
    tls: TlsContexts,
    cut_off: AuthenticationError | None,
    has_pending: bool,
) -> KprotoError:
    """Returns the error of a connection that the peer or the network has ended at `stage`.

    `exc` is the exception of the socket; None if the peer closed the connection. `unread_bytes` is
    the number of bytes that had arrived of an incomplete response. `cut_off` is the error of a SASL
    authentication in progress, or None. `has_pending` is True if a request was in flight.
    """
    shows = tls.shows_certificate
    name = tls.name_of(address.host)
    known = tls_fault(exc, str(address), name, shows_certificate=shows) or cut_off
    if known is not None:
        return known
    reason = "the broker closed the connection"
    if exc is not None:
        reason = f"the connection was lost ({exc})"
    if unread_bytes:
        reason += f", {unread_bytes} bytes into a response"
    else:
        release = settings.broker_version
        if has_pending and not has_api_versions(release):
            reason += f"; is it a Kafka {release} (broker_version)?"
        hint = closed_hint(stage, tls=tls.enabled, sasl=settings.sasl is not None)
        if hint:
            reason += f"; {hint}"
    return BrokerConnectionError(reason, address=str(address))
