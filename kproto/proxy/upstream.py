"""Connects the proxy to a broker: TCP, then TLS and SASL if they are configured.

The proxy sends the SASL requests itself, before it forwards a client's requests. It does not report
its own requests.
"""

from __future__ import annotations

import asyncio
import ssl
import struct
from typing import Final

from ..protocol.framing import frame
from ..security.diagnosis import handshake_fault
from ..security.handshake import ConnectionHandshake, new_exchange
from ..security.sasl import Sasl
from ..security.tls import TlsContexts
from ..wire.errors import BrokerConnectionError, ProtocolError
from .settings import Address, ProxySettings

__all__ = ["Stream", "connect"]

#: A connection: asyncio's reader and writer.
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]

#: The client id that the proxy sends while it authenticates; it appears in the broker's logs.
_CLIENT_ID: Final = "kproto-proxy"

#: Errors that a TLS handshake raises; any other OSError comes from the TCP connection.
_OF_HANDSHAKE: Final = (ssl.SSLError, ConnectionResetError, ConnectionAbortedError)


async def connect(target: Address, settings: ProxySettings, contexts: TlsContexts) -> Stream:
    """Connects to `target` and authenticates within `connect_timeout_ms`; returns the connection.

    Raises BrokerConnectionError if a retry may succeed, AuthenticationError if TLS or SASL is
    refused, ProtocolError or DecodeError for an invalid response, and ConfigurationError for
    unusable TLS files. Errors contain no secrets.
    """
    try:
        async with asyncio.timeout(settings.connect_timeout_ms / 1000):
            return await _connected(target, settings, contexts)
    except TimeoutError:
        raise BrokerConnectionError(
            f"no connection in {settings.connect_timeout_ms} ms", address=str(target)
        ) from None


async def _connected(target: Address, settings: ProxySettings, contexts: TlsContexts) -> Stream:
    context, name = None, None
    if contexts.enabled:
        context = contexts.cached() or await asyncio.to_thread(contexts.renew)
        name = contexts.name_of(target.host)
    try:
        stream = await asyncio.open_connection(
            *target, limit=settings.read_bytes, ssl=context, server_hostname=name
        )
    except OSError as error:
        if isinstance(error, TimeoutError):  # of `connect`
            raise
        if name is not None and isinstance(error, _OF_HANDSHAKE):
            shows = contexts.shows_certificate
            raise handshake_fault(error, str(target), name, shows_certificate=shows) from None
        reason = error.strerror or str(error) or type(error).__name__
        raise BrokerConnectionError(f"cannot be reached: {reason}", address=str(target)) from None
    except ValueError as error:  # an invalid host name, such as an empty label
        reason = f"cannot be reached: {error}; is the host name right?"
        raise BrokerConnectionError(reason, address=str(target)) from None
    if settings.sasl is not None:
        try:
            await _authenticate(stream, settings.sasl, target, settings.max_frame_bytes)
        except BaseException:
            stream[1].transport.abort()
            raise
    return stream


async def _authenticate(stream: Stream, sasl: Sasl, target: Address, most: int) -> None:
    reader, writer = stream
    exchange = await new_exchange(sasl, target.host, str(target))
    handshake = ConnectionHandshake(exchange, str(target), _CLIENT_ID)
    sent: bytes | None = handshake.begin()
    try:
        while sent is not None:
            writer.write(frame(sent))
            await writer.drain()
            (size,) = struct.unpack(">i", await reader.readexactly(4))
            if not 0 <= size <= most:
                raise ProtocolError(f"{target}: a frame of {size} bytes; the limit is {most}")
            answer = await reader.readexactly(size)
            sent = await asyncio.to_thread(handshake.next, answer)  # it may derive keys
    except (asyncio.IncompleteReadError, OSError) as error:
        if isinstance(error, TimeoutError | BrokerConnectionError):
            raise
        raise handshake.disconnect_error() or BrokerConnectionError(
            "closed while the proxy authenticated: does this listener require TLS, or no SASL?",
            address=str(target),
        ) from None
