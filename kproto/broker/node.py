"""One node: where it listens, and the sessions of the clients that are connected to it.

Knows sockets and sessions; what is answered is handed to it.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from ..clock import Clock, Timer
from ..protocol.message_classes import MessageClasses
from ..wire.errors import BrokerConnectionError, ConfigurationError
from .cluster import ClusterState, Endpoint
from .context import Context
from .faults import Controls
from .registry import Api, served
from .session import Session
from .settings import BrokerSettings

__all__ = ["Node"]

logger = logging.getLogger("kproto.broker")

#: Connections that may wait to be accepted, as Kafka's socket.listen.backlog.size.
_BACKLOG: Final = 50

#: How long to wait after a connection could not be accepted, in seconds, as asyncio's Server does.
_ACCEPT_AGAIN_S: Final = 1.0


class Node:
    """A member of `cluster` that answers `apis`, and does to requests what `controls` say."""

    def __init__(
        self,
        settings: BrokerSettings,
        cluster: ClusterState,
        apis: Iterable[Api],
        controls: Controls,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._apis = served(apis, settings)
        self._classes = MessageClasses(requests=[api.request for api in self._apis.values()])
        self._controls = controls
        self._clock = clock
        self._acceptor: _Acceptor | None = None
        self._sessions: set[Session] = set()
        self.endpoint = self._at(settings.port)
        self._port = settings.port

    def _at(self, port: int) -> Endpoint:
        """Tell the cluster where clients reach this node."""
        settings = self._settings
        host = settings.advertised_host or settings.host
        endpoint = Endpoint(settings.node_id, host, settings.advertised_port or port)
        self._cluster.join(endpoint)
        return endpoint

    @property
    def bootstrap(self) -> str:
        """`host:port` for clients. Raises ConfigurationError while the node does not listen."""
        self._check_listening()
        return _address(self.endpoint.host, self.endpoint.port)

    @property
    def listens_at(self) -> str:
        """`host:port` of the listener itself. Raises ConfigurationError as `bootstrap` does."""
        self._check_listening()
        return _address(self._settings.host, self._port)

    def _check_listening(self) -> None:
        if self._acceptor is None:
            raise ConfigurationError("the broker does not listen; use it in `async with`")

    @property
    def connections(self) -> int:
        """How many clients are connected now."""
        return len(self._sessions)

    def start(self) -> None:
        """Listen. Raises BrokerConnectionError when the address cannot be had."""
        if self._acceptor is not None:
            raise ConfigurationError(f"the broker listens at {self.listens_at} already")
        listener = _listen(self._settings.host, self._settings.port)
        self._port = listener.getsockname()[1]
        self.endpoint = self._at(self._port)
        context = Context(
            cluster=self._cluster,
            settings=self._settings,
            endpoint=self.endpoint,
            versions={key: api.versions for key, api in self._apis.items()},
            clock=self._clock,
        )
        self._acceptor = _Acceptor(listener, partial(self._new_session, context), self._clock)

    async def close(self) -> None:
        """Stop listening and end every session; `start` listens again.

        Cancelled, it ends them all the same, and does not wait until nothing of them is left.
        """
        acceptor, self._acceptor = self._acceptor, None
        arriving = set() if acceptor is None else acceptor.close()
        for session in self._sessions:
            session.abort()
        if arriving:
            await asyncio.wait(arriving)
        if self._sessions:
            await asyncio.wait([session.closed for session in self._sessions])

    def _new_session(self, context: Context) -> Session:
        return Session(
            context,
            self._apis,
            self._classes,
            self._controls,
            self._sessions.add,
            self._sessions.discard,
        )


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _listen(host: str, port: int) -> socket.socket:
    """One listening socket: with port 0, several for one name would get different ports."""
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


class _Acceptor:
    """Makes a session of every connection that comes to `listener`, until it is closed.

    Not asyncio's Server: that loses a connection, socket and all, which it accepts at the moment
    in which it is closed. So does a cancelled `loop.sock_accept`. Here a socket is accepted by a
    plain call, and what becomes of it is followed until a transport has it.
    """

    def __init__(
        self, listener: socket.socket, new_session: Callable[[], Session], clock: Clock
    ) -> None:
        self._listener = listener
        self._new_session = new_session
        self._clock = clock
        self._loop = asyncio.get_running_loop()
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
            connected = self._listener.accept()[0]
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
        task.add_done_callback(partial(self._arrived, connected))

    async def _connect(self, connected: socket.socket) -> None:
        await self._loop.connect_accepted_socket(self._new_session, connected)

    def _arrived(self, connected: socket.socket, task: asyncio.Task[None]) -> None:
        """Close the socket unless a transport has it: the task may not even have begun."""
        self._arriving.discard(task)
        if task.cancelled():
            connected.close()
        elif (error := task.exception()) is not None:
            logger.warning("a connection was accepted and came to nothing: %r", error)
            connected.close()
