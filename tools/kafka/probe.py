"""Asks whether something that speaks Kafka answers at an address.

Written out by hand on a plain socket, so that a fault in the product cannot hide a broker's.
"""

from __future__ import annotations

import socket
import struct

__all__ = ["answers_api_versions"]

API_VERSIONS_KEY = 18
CORRELATION_ID = 0x6B70
REQUEST = struct.pack(">hhih", API_VERSIONS_KEY, 0, CORRELATION_ID, -1)
"""ApiVersions v0 with a null client id: header v1 and an empty body."""

LARGEST_ANSWER = 1 << 16
"""An ApiVersions v0 answer has 6 bytes an API; more than this is no Kafka."""


def answers_api_versions(host: str, port: int, timeout_s: float) -> bool:
    """Return whether an ApiVersions request to this address is answered without an error."""
    try:
        with socket.create_connection((host, port), timeout_s) as connection:
            connection.settimeout(timeout_s)
            connection.sendall(struct.pack(">i", len(REQUEST)) + REQUEST)
            (size,) = struct.unpack(">i", _read(connection, 4))
            if not 10 <= size <= LARGEST_ANSWER:
                return False
            correlation_id, error_code = struct.unpack_from(">ih", _read(connection, size))
    except OSError:
        return False
    return bool(correlation_id == CORRELATION_ID and error_code == 0)


def _read(connection: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = connection.recv(size)
        if not part:
            raise ConnectionError("closed before the answer was complete")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
