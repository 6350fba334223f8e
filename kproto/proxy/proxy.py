"""Listens for clients, starts a `Relay` to a broker for each, and opens a port for each broker.

`address_rewriting` decides which addresses in responses change; `kproto.study` decodes the traffic.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Final, Self

from ..security.tls import TlsContexts
from ..study.conversations import TrafficEvent
from ..study.recording import Recorder, RecordingEntry
from ..study.redaction import redact_frame
from ..tasks import start_task
from ..wire.errors import BrokerConnectionError, ConfigurationError, EncodeError
from .address_rewriting import NODE_FIELDS, Node, NodeMap, rewrite_addresses
from .relay import Relay, now_us
from .settings import Address, ProxySettings, parse_address
from .upstream import connect

__all__ = ["Proxy"]

#: Maximum connections that wait to be accepted, as Kafka's socket.listen.backlog.size.
_BACKLOG: Final = 50

#: Iterations of the event loop until a pending connection is accepted: select, accept, create the
#: transport, create the streams; one to spare.
_ITERATIONS_TO_ACCEPT: Final = 5

#: Iterations of the event loop until an aborted transport has closed its socket: one; one to spare.
_ITERATIONS_TO_CLOSE: Final = 2

_LAST_PORT: Final = 65_535


class Proxy:
    """Listens at `listen` within `async with`, and forwards to the broker at `target`.

    Both are `host:port`; with port 0 in `listen` the system chooses a port. `on_event` is called
    with each event and the number of its connection. `on_notice` is called with messages about the
    proxy itself, and the number of the connection or None. `recorder` records the traffic, with
    asterisks in place of secrets unless `show_secrets` is set. Raises ConfigurationError for
    invalid addresses.
    """

    def __init__(
        self,
        listen: str,
        target: str,
        settings: ProxySettings | None = None,
        *,
        on_event: Callable[[TrafficEvent, int], None] | None = None,
        on_notice: Callable[[str, int | None], None] | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        self._listen = parse_address(listen, least_port=0)
        self._target = parse_address(target)
        self._settings = settings or ProxySettings()
        if self._settings.rewrite:
            self._advertised_host = self._settings.advertised_host_for(self._listen)
        self._on_event = on_event
        self._on_notice = on_notice or (lambda _text, _connection: None)
        self._recorder = recorder
        self._contexts = TlsContexts(self._settings.tls)
        self._nodes = NodeMap()
        self._port_lock = asyncio.Lock()
        self._next_port = self._settings.first_broker_port
        self._servers: list[asyncio.Server] = []
        self._relays: set[asyncio.Task[None]] = set()
        self._connections = 0

    @property
    def listens_at(self) -> str:
        """Returns the `host:port` that the proxy listens at, with the port that the system chose.

        Raises ConfigurationError while the proxy does not listen.
        """
        if not self._servers:
            raise ConfigurationError("the proxy does not listen; use it in `async with`")
        return str(Address(self._listen.host, self._servers[0].sockets[0].getsockname()[1]))

    async def __aenter__(self) -> Self:
        """Starts to listen. Raises BrokerConnectionError if the address is not available."""
        try:
            listener = _listening_socket(self._listen)
        except OSError as error:
            reason = (error.strerror or str(error)).partition(" (while attempting")[0]
            raise BrokerConnectionError(
                f"cannot listen: {reason}", address=str(self._listen)
            ) from None
        await self._serve(listener, None)
        sasl = self._settings.sasl
        if sasl is not None and sasl.readable and not self._contexts.enabled:
            self._on_notice(
                f"{sasl.mechanism} without TLS: the proxy's credentials can be read on the network",
                None,
            )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # A last connection may still be pending, and asyncio's Server leaks the socket of a
        # connection that it accepts while it closes. So let it accept before it closes.
        loop = asyncio.get_running_loop()
        for server in self._servers:
            for listener in server.sockets:
                loop.remove_reader(listener)
        for _ in range(_ITERATIONS_TO_ACCEPT):
            await asyncio.sleep(0)
        for server in self._servers:
            server.close()
        self._servers.clear()
        for relay in self._relays:
            relay.cancel()
        if self._relays:
            await asyncio.wait(self._relays)
        for _ in range(_ITERATIONS_TO_CLOSE):
            await asyncio.sleep(0)

    async def _serve(self, listener: socket.socket, node: Node | None) -> None:
        server = await asyncio.start_server(
            partial(self._accept, node), sock=listener, limit=self._settings.read_bytes
        )
        self._servers.append(server)

    def _accept(
        self, node: Node | None, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if len(self._relays) >= self._settings.max_connections:
            self._on_notice(
                f"a client was refused: {len(self._relays)} are connected (max_connections)", None
            )
            writer.transport.abort()
            return
        self._connections += 1
        task = start_task(self._relay(self._connections, node, reader, writer))
        self._relays.add(task)
        task.add_done_callback(partial(self._on_relay_done, writer))

    def _on_relay_done(self, writer: asyncio.StreamWriter, task: asyncio.Task[None]) -> None:
        self._relays.discard(task)
        writer.transport.abort()  # for a task that was cancelled before it started
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_notice(f"a connection was lost by an error in the proxy: {error!r}", None)

    async def _relay(
        self,
        number: int,
        node: Node | None,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        target = self._target if node is None else self._nodes.target(node)
        client = _peer(writer)
        self._on_notice(f"{client} connected, to {target}", number)
        self._record(RecordingEntry(now_us(), number, client=client, target=str(target)))
        rewrite = partial(self._rewrite, number) if self._settings.rewrite else None
        connecting = partial(connect, target, self._settings, self._contexts)
        relay = Relay(
            (reader, writer), connecting, self._settings, partial(self._on_events, number), rewrite
        )
        reason = "the proxy ended"
        try:
            reason = await relay.run()
        finally:
            self._record(RecordingEntry(now_us(), number, closed=reason))
            self._on_notice(reason, number)
            writer.transport.abort()  # `run` does not close it if no broker could be reached

    def _on_events(self, number: int, events: list[TrafficEvent]) -> None:
        for event in events:
            if event.data and self._recorder is not None:
                shown = self._settings.show_secrets
                data = event.data if shown else redact_frame(event)
                self._record(RecordingEntry(event.time_us, number, event.side, data))
            if self._on_event is not None:
                self._on_event(event, number)

    def _record(self, entry: RecordingEntry) -> None:
        recorder = self._recorder
        if recorder is None or recorder.is_full:
            return
        try:
            fits = recorder.write(entry)
        except OSError as error:
            self._recorder = None
            self._on_notice(f"recording ends: {error.strerror or error}", None)
            return
        if not fits:
            self._on_notice(
                f"recording ends at {recorder.written} bytes: the next entry exceeds its limit",
                None,
            )

    async def _rewrite(self, number: int, event: TrafficEvent) -> bytes:
        """Returns the frame to forward instead of a broker's frame.

        Opens a port for each broker that the response names for the first time. A frame that cannot
        be encoded again is forwarded unchanged.
        """
        received = event.received
        message = None if received is None else received.message
        if received is None or message is None or type(message).__name__ not in NODE_FIELDS:
            return event.data
        async with self._port_lock:
            new, moved = self._nodes.learn(message)
            for node, address in new.items():
                await self._open_port(node, address)
        for node, address in moved.items():
            self._on_notice(f"{node.kind} {node.id} has moved to {address}", None)
        if not rewrite_addresses(message, self._nodes):
            return event.data
        try:
            return received.to_frame()
        except EncodeError as error:
            self._on_notice(f"not rewritten: {error}", number)
            return event.data

    async def _open_port(self, node: Node, address: Address) -> None:
        if len(self._nodes) >= self._settings.max_brokers:
            self._on_notice(f"no port for {address} was opened (max_brokers)", None)
            return
        try:
            listener = self._broker_socket()
        except OSError as error:
            self._on_notice(f"no port for {address} was opened: {error.strerror or error}", None)
            return
        port = listener.getsockname()[1]
        advertised = Address(self._advertised_host, port)
        self._nodes.advertise(node, address, advertised)
        await self._serve(listener, node)
        self._on_notice(f"{node.kind} {node.id} at {address} is advertised as {advertised}", None)

    def _broker_socket(self) -> socket.socket:
        """Returns a listening socket for one broker.

        If `first_broker_port` is 0, the system chooses the port. Otherwise the port is the next
        free port from `first_broker_port` on. Raises OSError if no port is available.
        """
        if not self._settings.first_broker_port:
            return _listening_socket(Address(self._listen.host, 0))
        while self._next_port <= _LAST_PORT:
            port, self._next_port = self._next_port, self._next_port + 1
            try:
                return _listening_socket(Address(self._listen.host, port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
        raise OSError(errno.EADDRINUSE, "every port from first_broker_port on is taken")


def _listening_socket(address: Address) -> socket.socket:
    """Returns a listening socket for a single address of the host, in one address family.

    A host name may have several addresses. With port 0, a socket for each address would get its own
    port.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listener = socket.create_server(address, family=family, backlog=_BACKLOG)
    listener.setblocking(False)
    return listener


def _peer(writer: asyncio.StreamWriter) -> str:
    peer = writer.get_extra_info("peername")
    return str(Address(peer[0], peer[1])) if peer else "a disconnected client"
