"""Accepts the connections of one listening socket, with or without TLS."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from ..clock import Clock, Timer
from ..tasks import start_task
from ..wire.errors import BrokerConnectionError
from .security.server_tls import ON_FAULT, handshake_fault

__all__ = ["Acceptor", "ListenerTls", "address_of", "listen", "listen_on_reserved", "reserve_port"]

logger = logging.getLogger("kproto.broker")

#: Maximum connections that wait to be accepted: Kafka's socket.listen.backlog.size.
_BACKLOG: Final = 50

#: Seconds until accepting is retried after an error, as in asyncio's Server.
_ACCEPT_RETRY_S: Final = 1.0

#: Maximum seconds to wait for a client's TLS close_notify, which many clients do not send.
_SHUTDOWN_S: Final = 1.0

#: Seconds that a connection stays open after a failed TLS handshake, so that the client can read
#: the alert.
_LINGER_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class ListenerTls:
    """Holds the TLS context of a listener, and the timeout of its handshakes in seconds."""

    context: ssl.SSLContext
    handshake_s: float


def address_of(host: str, port: int) -> str:
    """Returns `host:port`, with an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def listen(host: str, port: int) -> socket.socket:
    """Returns a listening socket; with port 0 the system chooses the port.

    Raises BrokerConnectionError if the address is not available.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        # The text of the socket module's error ends with the address, which `address` has already.
        reason = (error.strerror or str(error)).partition(" (while attempting")[0]
        reason = f"cannot listen: {reason}"
        raise BrokerConnectionError(reason, address=f"{host}:{port}") from None
    listener.setblocking(False)
    return listener


def reserve_port(host: str, port: int) -> socket.socket | None:
    """Returns a socket that is bound to a port, but does not listen.

    Returns None if the port is in use, or if the address cannot be bound for another reason.

    Until `listen_on_reserved` is called, the bound socket keeps the system from assigning the port
    to another process.
    """
    reserved = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        if os.name == "posix":
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind((host, port))
    except OSError:
        reserved.close()
        return None
    return reserved


def listen_on_reserved(reserved: socket.socket) -> socket.socket:
    """Listens on the socket of `reserve_port`, and returns it.

    Raises BrokerConnectionError if another process listens on the port.
    """
    try:
        reserved.listen(_BACKLOG)
    except OSError as error:
        address = address_of(*reserved.getsockname()[:2])
        reserved.close()
        reason = f"cannot listen again: {error.strerror or error}"
        raise BrokerConnectionError(reason, address=address) from None
    reserved.setblocking(False)
    return reserved


class Acceptor:
    """Accepts connections to `listener` until `close` is called.

    `new_session` creates the asyncio protocol of each connection. `encryption` is None for a
    listener without TLS. `throttle_ms` takes the address of a client, and returns the throttle time
    of its new connection in ms. A connection with a throttle time is closed after this time, and
    none of its requests is read (KIP-612).

    asyncio's Server leaks the socket of a connection that is accepted while the server closes. A
    cancelled `loop.sock_accept` leaks such a socket, too. This class calls `accept` itself, and
    tracks each accepted socket until a transport owns the socket.
    """

    def __init__(
        self,
        listener: socket.socket,
        new_session: Callable[[], asyncio.BufferedProtocol],
        clock: Clock,
        encryption: ListenerTls | None = None,
        throttle_ms: Callable[[str], int] = lambda host: 0,
    ) -> None:
        self._throttle_ms = throttle_ms
        self._refused: dict[socket.socket, Timer] = {}
        self._listener = listener
        self._new_session = new_session
        self._clock = clock
        self._encryption = encryption
        self._loop = asyncio.get_running_loop()
        self._faults: dict[socket.socket, tuple[ssl.SSLError, Timer]] = {}
        self._accepting: set[asyncio.Task[None]] = set()
        self._retry_timer: Timer | None = None
        self._watch()

    def close(self) -> set[asyncio.Task[None]]:
        """Stops accepting, and cancels and returns the tasks that set up connections.

        The caller awaits the tasks. If the event loop is closed, there are no tasks to cancel.
        """
        for connected in list(self._refused):
            self._close_refused(connected)
        if self._loop.is_closed():
            self._listener.close()
            return set()
        self._loop.remove_reader(self._listener)
        if self._retry_timer is not None:
            self._retry_timer.cancel()
        self._listener.close()
        for task in self._accepting:
            task.cancel()
        return set(self._accepting)

    def _watch(self) -> None:
        self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        try:
            connected, peer = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # the client has disconnected already
        except OSError as error:  # for example too many open files
            logger.warning("cannot accept a connection: %s", error)
            # The listener stays readable: the event loop would call `_accept` again and again.
            self._loop.remove_reader(self._listener)
            self._retry_timer = self._clock.call_later(_ACCEPT_RETRY_S, self._watch)
            return
        throttle_ms = self._throttle_ms(peer[0])
        if throttle_ms:
            self._refused[connected] = self._clock.call_later(
                throttle_ms / 1000, partial(self._close_refused, connected)
            )
            return
        task = start_task(self._connect(connected))
        self._accepting.add(task)
        task.add_done_callback(partial(self._on_connected, connected, address_of(peer[0], peer[1])))

    def _close_refused(self, connected: socket.socket) -> None:
        self._refused.pop(connected).cancel()
        connected.close()

    async def _connect(self, connected: socket.socket) -> None:
        encryption = self._encryption
        if encryption is not None:
            ON_FAULT.set(partial(self._delay_close, connected))  # only in the context of this task
        await self._loop.connect_accepted_socket(
            self._new_session,
            connected,
            ssl=None if encryption is None else encryption.context,
            ssl_handshake_timeout=None if encryption is None else encryption.handshake_s,
            ssl_shutdown_timeout=None if encryption is None else _SHUTDOWN_S,
        )

    def _delay_close(self, connected: socket.socket, fault: ssl.SSLError) -> None:
        """Shuts down the connection of a failed handshake after `_LINGER_S`, so that the client can
        read the alert.
        """
        timer = self._clock.call_later(_LINGER_S, partial(_shut_down, connected))
        self._faults[connected] = fault, timer

    def _on_connected(self, connected: socket.socket, peer: str, task: asyncio.Task[None]) -> None:
        """Handles the end of `task`, which creates the transport of an accepted connection.

        Closes the socket if the task failed or was cancelled, because then no transport owns the
        socket.
        """
        self._accepting.discard(task)
        fault, timer = self._faults.pop(connected, (None, None))
        if timer is not None:
            timer.cancel()
        if task.cancelled():
            connected.close()
        elif (error := task.exception()) is not None:
            if self._encryption is None:
                logger.warning("%s: the accepted connection failed: %r", peer, error)
            else:
                logger.warning("%s: no TLS: %s", peer, handshake_fault(fault or error))
            connected.close()


def _shut_down(connected: socket.socket) -> None:
    """Shuts down a socket, so that its transport closes; does nothing if the socket is closed."""
    with suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)
