"""Checks that a Kafka broker answers at an address, and counts the live brokers in its metadata.

Uses a plain socket instead of kproto's client, so that a fault of the client cannot hide a fault of
the broker.
"""

from __future__ import annotations

import socket
import struct

__all__ = ["accepts", "answers_api_versions", "answers_metadata", "known_brokers"]

API_VERSIONS_KEY = 18
CORRELATION_ID = 0x6B70
REQUEST = struct.pack(">hhih", API_VERSIONS_KEY, 0, CORRELATION_ID, -1)
"""ApiVersions v0 with a null client id: header v1 and an empty body."""

METADATA_KEY = 3
NO_TOPICS = struct.pack(">hhihi", METADATA_KEY, 1, CORRELATION_ID, -1, 0)
"""Metadata v1 for no topics: its response begins with the live brokers."""

ALL_TOPICS = struct.pack(">hhihi", METADATA_KEY, 0, CORRELATION_ID, -1, 0)
"""Metadata v0 for all topics, which every release up to 3.9 answers."""

LARGEST_ANSWER = 1 << 16
"""In bytes. An ApiVersions v0 response has 6 bytes per API; a larger response is not Kafka's."""


def answers_api_versions(host: str, port: int, timeout_s: float) -> bool:
    """Returns True if the server at this address answers ApiVersions without an error."""
    answer = _answer(host, port, timeout_s, REQUEST)
    return answer is not None and struct.unpack_from(">h", answer) == (0,)


def answers_metadata(host: str, port: int, timeout_s: float, *, least_brokers: int) -> bool:
    """Returns True if the server answers a request for the metadata of all topics.

    The answer must have at least `least_brokers` live brokers. For old releases: before 0.10, a
    broker closes a connection on which it receives ApiVersions.
    """
    answer = _answer(host, port, timeout_s, ALL_TOPICS)
    return answer is not None and struct.unpack_from(">i", answer)[0] >= least_brokers


def accepts(host: str, port: int, timeout_s: float) -> bool:
    """Returns True if a server accepts a connection at this address."""
    try:
        socket.create_connection((host, port), timeout_s).close()
    except OSError:
        return False
    return True


def known_brokers(host: str, port: int, timeout_s: float) -> int:
    """Returns the number of live brokers in the broker's metadata; 0 if the broker is silent."""
    answer = _answer(host, port, timeout_s, NO_TOPICS)
    return 0 if answer is None else int(struct.unpack_from(">i", answer)[0])


def _answer(host: str, port: int, timeout_s: float, request: bytes) -> bytes | None:
    """Returns the bytes that follow the correlation id of the response.

    Returns None if no Kafka broker responds.
    """
    try:
        with socket.create_connection((host, port), timeout_s) as connection:
            connection.settimeout(timeout_s)
            connection.sendall(struct.pack(">i", len(request)) + request)
            (size,) = struct.unpack(">i", _read(connection, 4))
            if not 10 <= size <= LARGEST_ANSWER:
                return None
            answer = _read(connection, size)
    except OSError:
        return None
    return answer[4:] if answer[:4] == struct.pack(">i", CORRELATION_ID) else None


def _read(connection: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = connection.recv(size)
        if not part:
            raise ConnectionError("closed before the answer was complete")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
