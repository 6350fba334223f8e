"""Provides a blocking connection that sends any request in any version.

This includes requests that a client never sends. The connection uses only `kproto.protocol`, and
works with the embedded broker and with real brokers.
"""

from __future__ import annotations

import select
import socket
import ssl
import struct
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from kproto.messages.base import Request, Response
from kproto.protocol.connection import ClientConnection

__all__ = ["ClosedByBrokerError", "RawConnection"]

R = TypeVar("R", bound=Response)

TIMEOUT_S = 20.0


class ClosedByBrokerError(Exception):
    """Raised if the broker closes the connection instead of answering."""


class RawConnection:
    """A connection to `host:port`."""

    def __init__(
        self,
        bootstrap: str,
        client_id: str | None = "raw",
        tls: ssl.SSLContext | None = None,
        timeout: float = TIMEOUT_S,
    ) -> None:
        host, _, port = bootstrap.partition(",")[0].rpartition(":")
        self._socket = socket.create_connection((host.strip("[]"), int(port)), timeout)
        if tls is not None:
            try:
                self._socket = tls.wrap_socket(self._socket, server_hostname=host.strip("[]"))
            except BaseException:
                self._socket.close()
                raise
        self._stream = self._socket.makefile("rb")
        self._protocol = ClientConnection(client_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stream.close()
        self._socket.close()

    def exchange(self, request: Request[R], version: int) -> R:
        """Sends a request and returns its response. Raises ClosedByBrokerError."""
        self.send(request, version)
        return cast(R, self.receive())

    def send(self, request: Request[Any], version: int) -> None:
        """Sends a request."""
        _, data = self._protocol.send(request, version)
        self._socket.sendall(data)

    def send_bytes(self, data: bytes) -> None:
        """Sends bytes unchanged."""
        self._socket.sendall(data)

    def receive(self) -> Response:
        """Returns the response to the oldest pending request. Raises ClosedByBrokerError."""
        message = self._protocol.receive(self.receive_frame()).message
        assert message is not None
        return message

    def has_answer(self, timeout_s: float) -> bool:
        """Returns whether bytes arrive within `timeout_s` seconds.

        The caller must have read earlier responses.
        """
        return bool(select.select([self._socket], [], [], timeout_s)[0])

    def receive_rest(self) -> bytes:
        """Returns all bytes until the broker closes the connection."""
        return self._stream.read()

    def receive_frame(self) -> bytes:
        """Returns one frame without its size. Raises ClosedByBrokerError."""
        try:
            size = self._stream.read(4)
            if len(size) < 4:
                raise ClosedByBrokerError
            data = self._stream.read(struct.unpack(">i", size)[0])
        except ConnectionError as error:
            raise ClosedByBrokerError from error
        return data
