"""Accepts the connections that come to one listening socket, until it is closed; TLS included.

Knows sockets, and nothing of what is said over them: what a connection becomes is handed to it.
"""

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
from ..wire.errors import BrokerConnectionError
from .security.server_tls import ON_FAULT, handshake_fault

__all__ = ["Acceptor", "Encryption", "address_of", "listen", "listen_again", "reserve"]

logger = logging.getLogger("kproto.broker")

#: Connections that may wait to be accepted, as Kafka's socket.listen.backlog.size.
_BACKLOG: Final = 50

#: How long to wait after a connection could not be accepted, in seconds, as asyncio's Server does.
_ACCEPT_AGAIN_S: Final = 1.0

#: How long a client may take to say goodbye in TLS, in seconds; many say none.
_SHUTDOWN_S: Final = 1.0

#: How long a client has to read why its TLS handshake failed, in seconds, unless it goes before.
_LINGER_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class Encryption:
    """TLS of a listener, and how long its handshake may take."""

    context: ssl.SSLContext
    handshake_s: float


def address_of(host: str, port: int) -> str:
    """As clients write it; an IPv6 address stands in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def listen(host: str, port: int) -> socket.socket:
    """One listening socket: with port 0, several for one name would get different ports.

    Raises BrokerConnectionError when the address cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        # The socket module says the address too, which our error has already.
        reason = (error.strerror or str(error)).partition(" (while attempting")[0]
        reason = f"cannot listen: {reason}"
        raise BrokerConnectionError(reason, address=f"{host}:{port}") from None
    listener.setblocking(False)
    return listener


def reserve(host: str, port: int) -> socket.socket | None:
    """Keep a port to which nobody can connect until `listen_again`; None when it is gone.

    Without that, the system may give a free port to the next connection of anybody.
    """
    held = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        if os.name == "posix":
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind((host, port))
    except OSError:
        held.close()
        return None
    return held


def listen_again(held: socket.socket) -> socket.socket:
    """Listen at a port that was kept. Raises BrokerConnectionError when somebody else does."""
    try:
        held.listen(_BACKLOG)
    except OSError as error:
        address = address_of(*held.getsockname()[:2])
        held.close()
        reason = f"cannot listen again: {error.strerror or error}"
        raise BrokerConnectionError(reason, address=address) from None
    held.setblocking(False)
    return held


class Acceptor:
    """Makes a session of every connection that comes to `listener`, until it is closed.

    Not asyncio's Server: that loses a connection, socket and all, which it accepts at the moment
    in which it is closed. So does a cancelled `loop.sock_accept`. Here a socket is accepted by a
    plain call, and what becomes of it is followed until a transport has it.
    """

    def __init__(
        self,
        listener: socket.socket,
        new_session: Callable[[], asyncio.BufferedProtocol],
        clock: Clock,
        encryption: Encryption | None = None,
    ) -> None:
        self._listener = listener
        self._new_session = new_session
        self._clock = clock
        self._encryption = encryption
        self._loop = asyncio.get_running_loop()
        self._faults: dict[socket.socket, tuple[ssl.SSLError, Timer]] = {}
        self._arriving: set[asyncio.Task[None]] = set()
        self._again: Timer | None = None
        self._watch()

    def close(self) -> set[asyncio.Task[None]]:
        """Stop at once; returns the tasks to wait for, which end those that were just accepted."""
        self._loop.remove_reader(self._listener)
        if self._again is not None:
            self._again.cancel()
        self._listener.close()
        for task in self._arriving:
            task.cancel()
        return set(self._arriving)

    def _watch(self) -> None:
        self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        try:
            connected, peer = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # who came is gone again
        except OSError as error:  # the process has too many files open, for one
            logger.warning("cannot accept a connection: %s", error)
            # The listener stays readable: watched, it would be tried without end.
            self._loop.remove_reader(self._listener)
            self._again = self._clock.call_later(_ACCEPT_AGAIN_S, self._watch)
            return
        task = self._loop.create_task(self._connect(connected))
        self._arriving.add(task)
        task.add_done_callback(partial(self._arrived, connected, address_of(peer[0], peer[1])))

    async def _connect(self, connected: socket.socket) -> None:
        encryption = self._encryption
        if encryption is not None:
            ON_FAULT.set(partial(self._linger, connected))  # for this task alone
        await self._loop.connect_accepted_socket(
            self._new_session,
            connected,
            ssl=None if encryption is None else encryption.context,
            ssl_handshake_timeout=None if encryption is None else encryption.handshake_s,
            ssl_shutdown_timeout=None if encryption is None else _SHUTDOWN_S,
        )

    def _linger(self, connected: socket.socket, fault: ssl.SSLError) -> None:
        """Leave a failed handshake open for as long as its alert needs."""
        timer = self._clock.call_later(_LINGER_S, partial(_hang_up, connected))
        self._faults[connected] = fault, timer

    def _arrived(self, connected: socket.socket, peer: str, task: asyncio.Task[None]) -> None:
        """Close the socket unless a transport has it: the task may not even have begun."""
        self._arriving.discard(task)
        fault, timer = self._faults.pop(connected, (None, None))
        if timer is not None:
            timer.cancel()
        if task.cancelled():
            connected.close()
        elif (error := task.exception()) is not None:
            if self._encryption is None:
                logger.warning("%s was accepted and came to nothing: %r", peer, error)
            else:
                logger.warning("%s: no TLS: %s", peer, handshake_fault(fault or error))
            connected.close()


def _hang_up(connected: socket.socket) -> None:
    """End a connection, so that its transport notices; one that is closed stays so."""
    with suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)
