"""The steps of a connection's handshake, except TCP and SASL: host name, TLS and ApiVersions."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

from ...messages.api_versions_request import ApiVersionsRequest
from ...messages.api_versions_response import ApiVersionsResponse
from ...messages.base import Request, Response
from ...protocol.negotiation import (
    UNSUPPORTED_VERSION,
    ApiRange,
    broker_ranges,
    fallback_version,
)
from ...security.diagnosis import CONNECTION_LIMIT_HINT, handshake_fault, is_tls_error
from ...security.tls import TlsContexts
from ...version import __version__
from ...wire.errors import BrokerConnectionError, ProtocolError
from ..release import common_ranges, has_api_versions, version_ranges_of
from ..settings import Address
from .addresses import HostAddresses, alternate_families, resolve_host

if TYPE_CHECKING:
    import ssl

__all__ = ["BrokerFeatures", "attach", "negotiate_features", "resolve_addresses", "tls_context"]

#: The name of this client's software (KIP-511).
_SOFTWARE_NAME: Final = "kproto"

_LAST_PORT: Final = 65_535

#: Sends a request in a version, and returns the response.
_SendRequest: TypeAlias = Callable[[Request[Any], int], Awaitable[Response]]


async def resolve_addresses(address: Address, failed_ip: str | None) -> HostAddresses:
    """Resolves a broker's host name; the IP address after `failed_ip`, if given, comes first.

    Raises BrokerConnectionError for an invalid port, and for an invalid or unknown host name.
    """
    if not 0 < address.port <= _LAST_PORT:  # a Metadata response may have any number
        reason = f"cannot connect: {address.port} is no port; the highest is {_LAST_PORT}"
        raise BrokerConnectionError(reason, address=str(address))
    try:
        return HostAddresses(address, alternate_families(await resolve_host(address), failed_ip))
    except OSError as error:
        reason = f"cannot connect: {error.strerror or error}"
    except ValueError as error:  # not a valid host name, such as an empty label
        reason = f"cannot connect: {error}; is the host name right?"
    raise BrokerConnectionError(reason, address=str(address))


async def tls_context(tls: TlsContexts) -> ssl.SSLContext | None:
    """Returns the TLS context for a connection; None if TLS is not enabled.

    Reads the certificate files in a thread if no context is cached. Raises ConfigurationError if
    the files are unusable.
    """
    if not tls.enabled:
        return None
    return tls.cached() or await asyncio.to_thread(tls.renew)


async def attach(
    protocol: asyncio.BaseProtocol,
    connected: socket.socket,
    address: Address,
    tls: TlsContexts,
    context: ssl.SSLContext | None,
) -> None:
    """Attaches `protocol` to the socket, with TLS if there is a context.

    Raises AuthenticationError if one side refuses the certificate of the other, and
    BrokerConnectionError for any other failure.
    """
    name = None if context is None else tls.name_of(address.host)
    try:
        await asyncio.get_running_loop().create_connection(
            lambda: protocol, sock=connected, ssl=context, server_hostname=name
        )
    except OSError as error:
        is_ended = isinstance(error, ConnectionResetError | ConnectionAbortedError)
        if name is None:
            hint = f"; {CONNECTION_LIMIT_HINT}" if is_ended else ""
            raise _unconnected(address, error, hint) from None
        if not is_ended and not is_tls_error(error):
            raise _unconnected(address, error) from None
        shows = tls.shows_certificate
        raise handshake_fault(error, str(address), name, shows_certificate=shows) from None
    except ValueError as error:  # a host name that no certificate can have
        reason = f"cannot connect: {error}; is the host name right?"
        raise BrokerConnectionError(reason, address=str(address)) from None


def _unconnected(address: Address, error: OSError, hint: str = "") -> BrokerConnectionError:
    reason = f"cannot connect: {error.strerror or error}{hint}"
    return BrokerConnectionError(reason, address=str(address))


class BrokerFeatures(NamedTuple):
    """The versions that a broker supports by API key, and its finalized features (KIP-584).

    `finalized` has the level of each feature by its name.
    """

    ranges: Mapping[int, ApiRange]
    finalized: Mapping[str, int] = {}


async def negotiate_features(
    send: _SendRequest, address: Address, release: str | None
) -> BrokerFeatures:
    """Returns the versions that the broker and `release` have in common, and the broker's features.

    `release` is the configured `broker_version`; None does not limit the versions. The broker
    reports its versions in ApiVersions. Brokers before 0.10 do not support ApiVersions: for such a
    broker the result has the versions of `release`. Raises ProtocolError if the broker refuses
    ApiVersions.
    """
    if release is None:
        return await _broker_features(send, address)
    ranges = version_ranges_of(release)
    if not has_api_versions(release):
        return BrokerFeatures(ranges)
    found = await _broker_features(send, address)
    return found._replace(ranges=common_ranges(ranges, found.ranges))


async def _broker_features(send: _SendRequest, address: Address) -> BrokerFeatures:
    request = ApiVersionsRequest(
        client_software_name=_SOFTWARE_NAME, client_software_version=__version__
    )
    version = ApiVersionsRequest.LATEST_STABLE
    answer = cast(ApiVersionsResponse, await send(request, version))
    if answer.error_code == UNSUPPORTED_VERSION and version > 0:
        version = min(version - 1, fallback_version(answer))
        answer = cast(ApiVersionsResponse, await send(request, version))
    if answer.error_code:
        raise ProtocolError(
            f"{address}: ApiVersions v{version} was answered with error code "
            f"{answer.error_code}; the broker does not accept this client"
        )
    features = {each.name: each.max_version_level for each in answer.finalized_features}
    return BrokerFeatures(broker_ranges(answer), features)
