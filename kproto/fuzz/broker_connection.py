"""Connects to a broker under test with a blocking socket, and with TLS and SASL if configured."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import time
from typing import Final, NamedTuple

from ..protocol.framing import frame
from ..security.diagnosis import handshake_fault
from ..security.handshake import ConnectionHandshake, new_exchange
from ..security.sasl import Sasl
from ..security.tls import AnyTls, TlsContexts
from ..wire.errors import BrokerConnectionError

__all__ = ["PLAINTEXT", "ConnectionSecurity", "InvalidFrameError", "connect", "read_frame"]

_CLIENT_ID: Final = "kproto-fuzz"


class InvalidFrameError(OSError):
    """The size field of a received frame is negative or too large."""


class ConnectionSecurity(NamedTuple):
    """TLS and SASL of the connections to a broker; the values are those of a client's settings."""

    tls: AnyTls = False
    sasl: Sasl | None = None


PLAINTEXT: Final = ConnectionSecurity()


def connect(
    endpoint: tuple[str, int],
    contexts: TlsContexts,
    sasl: Sasl | None,
    *,
    timeout_s: float,
    most: int,
) -> socket.socket:
    """Returns a connection after the TLS handshake and SASL.

    The connect and each SASL response may take `timeout_s` seconds. A response may have up to
    `most` bytes. Raises OSError if the broker is unreachable, AuthenticationError or
    BrokerConnectionError if a handshake fails, and ConfigurationError for unusable TLS files.
    """
    connection = socket.create_connection(endpoint, timeout_s)
    try:
        connection = _with_tls(connection, endpoint, contexts)
        if sasl is not None:
            _authenticate(connection, sasl, endpoint, timeout_s, most)
    except BaseException:
        connection.close()
        raise
    return connection


def _with_tls(
    connection: socket.socket, endpoint: tuple[str, int], contexts: TlsContexts
) -> socket.socket:
    if not contexts.enabled:
        return connection
    context = contexts.cached() or contexts.renew()
    name = contexts.name_of(endpoint[0])
    try:
        return context.wrap_socket(connection, server_hostname=name)
    except (ssl.SSLError, ConnectionError) as error:
        address, shows = _text(endpoint), contexts.shows_certificate
        raise handshake_fault(error, address, name, shows_certificate=shows) from None


def _authenticate(
    connection: socket.socket, sasl: Sasl, endpoint: tuple[str, int], timeout_s: float, most: int
) -> None:
    exchange = asyncio.run(new_exchange(sasl, endpoint[0], _text(endpoint)))
    handshake = ConnectionHandshake(exchange, _text(endpoint), _CLIENT_ID)
    sent: bytes | None = handshake.begin()
    while sent is not None:
        connection.sendall(frame(sent))
        try:
            answer = read_frame(connection, timeout_s, most)
        except InvalidFrameError as error:
            raise BrokerConnectionError(f"during SASL, {error}", address=_text(endpoint)) from None
        if answer is None:
            raise handshake.disconnect_error() or BrokerConnectionError(
                "closed during SASL", address=_text(endpoint)
            )
        sent = handshake.next(answer)


def read_frame(connection: socket.socket, timeout_s: float, most: int) -> bytes | None:
    """Returns the next frame without its size field; None if the broker closes the connection.

    Raises TimeoutError after `timeout_s` seconds, and InvalidFrameError for a size below 0 or above
    `most`.
    """
    deadline = time.monotonic() + timeout_s
    head = _bytes(connection, 4, deadline)
    if head is None:
        return None
    (size,) = struct.unpack(">i", head)
    if not 0 <= size <= most:
        as_text = f" (as text {head.decode()!r})" if head.isalnum() else ""
        raise InvalidFrameError(f"the size of the response is {size}{as_text}, not 0 to {most}")
    return _bytes(connection, size, deadline)


def _bytes(connection: socket.socket, count: int, deadline: float) -> bytes | None:
    data = bytearray()
    while len(data) < count:
        connection.settimeout(max(0.001, deadline - time.monotonic()))
        piece = connection.recv(min(count - len(data), 65_536))
        if not piece:
            return None
        data += piece
    return bytes(data)


def _text(endpoint: tuple[str, int]) -> str:
    host, port = endpoint
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
