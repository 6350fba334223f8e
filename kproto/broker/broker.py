"""`Broker`: the public face. Owns the listener, the connections and the state."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

from ..messages.base import Request
from ..records import Record
from ..wire.errors import BrokerConnectionError, ConfigurationError
from . import handlers as _  # noqa: F401 - importing the handlers registers them
from .connection import ClientOfBroker
from .control import Control, ControlFunction, Controls
from .settings import BrokerSettings
from .state import BrokerState
from .topics import Topic

__all__ = ["Broker"]

logger = logging.getLogger("kproto.broker")

#: Connections that may wait to be accepted, as Kafka's socket.listen.backlog.size.
_BACKLOG: Final = 50

#: How long to wait after a connection could not be accepted, in seconds, as asyncio's Server does.
_ACCEPT_AGAIN_S: Final = 1.0


class Broker:
    """A Kafka broker in memory, for `async with`.

    The four settings that tests change most may be named here; they go before those in
    `settings`. Raises ConfigurationError for one that cannot work.
    """

    def __init__(
        self,
        settings: BrokerSettings | None = None,
        *,
        host: str | None = None,
        port: int | None = None,
        num_partitions: int | None = None,
        auto_create_topics: bool | None = None,
    ) -> None:
        named: dict[str, Any] = {
            "host": host,
            "port": port,
            "num_partitions": num_partitions,
            "auto_create_topics": auto_create_topics,
        }
        given = {name: value for name, value in named.items() if value is not None}
        self.settings = replace(settings or BrokerSettings(), **given)
        self._state = BrokerState(self.settings)
        self._controls = Controls()
        self._acceptor: _Acceptor | None = None
        self._clients: set[ClientOfBroker] = set()

    # Life

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Listen. Raises BrokerConnectionError when the address cannot be had."""
        if self._acceptor is not None:
            raise ConfigurationError(f"the broker listens at {self.bootstrap} already")
        listener = _listen(self.settings.host, self.settings.port)
        self._state.port = listener.getsockname()[1]
        self._acceptor = _Acceptor(listener, self._new_client)

    async def close(self) -> None:
        """Stop listening and end every connection; topics stay, and `start` serves them again.

        Cancelled, it ends them all the same, and does not wait until nothing of them is left.
        """
        acceptor, self._acceptor = self._acceptor, None
        arriving = set() if acceptor is None else acceptor.close()
        for client in self._clients:
            client.abort()
        if arriving:
            await asyncio.wait(arriving)
        if self._clients:
            await asyncio.wait([client.closed for client in self._clients])

    def _new_client(self) -> ClientOfBroker:
        return ClientOfBroker(self._state, self._controls, self._clients.add, self._clients.discard)

    # What a test wants to know

    @property
    def bootstrap(self) -> str:
        """`host:port` for clients. Raises ConfigurationError while the broker does not listen."""
        if self._acceptor is None:
            raise ConfigurationError("the broker does not listen; use it in `async with`")
        host = self._state.host
        return f"[{host}]:{self._state.port}" if ":" in host else f"{host}:{self._state.port}"

    @property
    def cluster_id(self) -> str:
        """The id that clients see in metadata."""
        return self._state.cluster_id

    @property
    def connections(self) -> int:
        """How many clients are connected now."""
        return len(self._clients)

    @property
    def topics(self) -> dict[str, Topic]:
        """The topics by name; a copy."""
        return {topic.name: topic for topic in self._state.topics}

    def end_offset(self, topic: str, partition: int = 0) -> int:
        """The offset that the next record will get. Raises BrokerResponseError."""
        return self._state.topics.named(topic).partition(partition).log.end_offset

    def records(self, topic: str, partition: int = 0) -> list[Record]:
        """Every record of a partition, decoded.

        Raises BrokerResponseError for an unknown one, CorruptBatchError, MissingCodecError.
        """
        log = self._state.topics.named(topic).partition(partition).log
        return [
            record
            for batch in log
            if not batch.is_control
            for record in batch.records(from_offset=log.start_offset)
        ]

    # What a test wants to do

    def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        configs: Mapping[str, str | None] | None = None,
    ) -> Topic:
        """Create a topic, with the default of partitions unless they are given.

        Raises BrokerResponseError, as a client would get it.
        """
        topic = self._state.plan_topic(
            name, -1 if partitions is None else partitions, configs=configs
        )
        self._state.topics.add(topic)
        return topic

    def delete_topic(self, name: str) -> None:
        """Delete a topic. Raises BrokerResponseError."""
        self._state.topics.remove(self._state.topics.named(name))

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Move the start of a log to offset `before`. Raises BrokerResponseError."""
        self._state.topics.named(topic).partition(partition).log.delete_before(before)

    def control(
        self,
        function: ControlFunction,
        *,
        request: type[Request[Any]] | None = None,
        times: int | None = None,
    ) -> Control:
        """Let `function` see each request, or those of class `request`, before the broker does.

        It returns None to let the request pass, or a response, `Delay` or `Close`. After it has
        decided `times` it is asked no more. Give what comes back to `remove_control`.
        """
        return self._controls.add(function, request, times)

    def remove_control(self, control: Control) -> None:
        """Take a control function away."""
        self._controls.remove(control)


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
    """Makes a client of every connection that comes to `listener`, until it is closed.

    Not asyncio's Server: that loses a connection, socket and all, which it accepts at the moment
    in which it is closed. So does a cancelled `loop.sock_accept`. Here a socket is accepted by a
    plain call, and what becomes of it is followed until a transport has it.
    """

    def __init__(self, listener: socket.socket, new_client: Callable[[], ClientOfBroker]) -> None:
        self._listener = listener
        self._new_client = new_client
        self._loop = asyncio.get_running_loop()
        self._arriving: set[asyncio.Task[None]] = set()
        self._again: asyncio.TimerHandle | None = None
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
            self._again = self._loop.call_later(_ACCEPT_AGAIN_S, self._watch)
            return
        task = self._loop.create_task(self._connect(connected))
        self._arriving.add(task)
        task.add_done_callback(partial(self._arrived, connected))

    async def _connect(self, connected: socket.socket) -> None:
        await self._loop.connect_accepted_socket(self._new_client, connected)

    def _arrived(self, connected: socket.socket, task: asyncio.Task[None]) -> None:
        """Close the socket unless a transport has it: the task may not even have begun."""
        self._arriving.discard(task)
        if task.cancelled():
            connected.close()
        elif (error := task.exception()) is not None:
            logger.warning("a connection was accepted and came to nothing: %r", error)
            connected.close()
