"""The connections of a client, opened when they are needed, and closed together.

Requests that a broker answers at once share one connection per broker. An owner whose requests wait
at the broker, such as a consumer, has its own connections. Brokers process one request of a
connection at a time, so other requests would have to wait, too.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from copy import copy
from typing import Final, TypeAlias

from ...clock import Clock, Timer
from ...security.tls import TlsContexts
from ...tasks import start_task
from ...unclosed import call_in_loop, warn_unclosed
from ...wire.errors import BrokerConnectionError, ConfigurationError, KprotoError
from ..core.loop_guard import LoopGuard
from ..core.retry import TIMER_RESOLUTION_S
from ..observing.observer import Observer
from ..release import magic_of_release
from ..settings import Address, ClientSettings
from .connection import BrokerConnection
from .node_state import NodeState

__all__ = ["ConnectionPool"]

_log: Final = logging.getLogger("kproto.client")

#: The most node states in memory: brokers may get new addresses all the time. There are more only
#: if all have an open or pending connection, or a backoff: such states are not dropped.
MAX_ADDRESSES: Final = 1_000

#: An address, and the owner of a connection; None for the shared connection.
_Key: TypeAlias = tuple[Address, object]


class ConnectionPool:
    """Opens and shares connections, one for each address and owner."""

    def __init__(
        self,
        bootstrap: Sequence[Address],
        settings: ClientSettings,
        clock: Clock,
        observer: Observer | None = None,
    ) -> None:
        self.bootstrap = list(bootstrap)
        self.settings = settings
        self.clock = clock
        self._observer = observer or Observer(settings.hooks, clock.monotonic)
        self.loop_guard = LoopGuard()
        self._open: dict[_Key, BrokerConnection] = {}
        self._opening: dict[_Key, _ConnectAttempt] = {}
        self._cancelled: set[asyncio.Task[BrokerConnection]] = set()  # without a caller that waits
        self._node_states: dict[Address, NodeState] = {}
        self._idle_timer: Timer | None = None
        self._closed = False
        #: The newest record format that every connected broker accepts.
        self.message_magic = magic_of_release(settings.broker_version)
        self.is_message_magic_known = settings.broker_version is not None
        self._tls = TlsContexts(settings.tls)
        if settings.sasl is not None and settings.sasl.readable and not self._tls.enabled:
            _log.warning(
                "%s without TLS: its credentials can be read on the network; set tls",
                settings.sasl.mechanism,
            )

    def open_connection(self, address: Address) -> BrokerConnection | None:
        """Returns the shared connection to `address`; None if it is not open."""
        connection = self._open.get((address, None))
        return connection if connection is not None and connection.usable else None

    def has_lost_connection(self, address: Address) -> bool:
        """Returns True if the shared connection to `address` has failed, and none is open."""
        connection = self._open.get((address, None))
        return connection is not None and not connection.usable

    def timed_out_addresses(self) -> set[Address]:
        """Returns the addresses with a connection that was closed because a request timed out.

        An address is left out once the owner of that connection has asked for another connection.
        """
        return {address for (address, _), each in self._open.items() if each.has_timed_out}

    def backoff_s(self, address: Address) -> float:
        """Returns the remaining reconnect backoff of `address` in seconds, 0 if it is over."""
        node_state = self._node_states.get(address)
        return (
            0.0 if node_state is None else max(0.0, node_state.not_before - self.clock.monotonic())
        )

    async def connection(self, address: Address, owner: object = None) -> BrokerConnection:
        """Returns a usable connection of `owner` to `address`, by default the shared connection.

        Concurrent callers share one attempt and its error. After a failure callers wait until the
        backoff of the broker is over. Raises the errors of `BrokerConnection.open`, and
        ConfigurationError once the pool is closed, or in another event loop.
        """
        self.loop_guard.check()
        key = (address, owner)
        connection = self._usable(key)
        if connection is not None:
            return connection
        self.raise_if_closed()
        opening = self._opening.get(key)
        if opening is None:
            opening = self._opening[key] = _ConnectAttempt(start_task(self._connect(key)))
            opening.task.add_done_callback(lambda task: self._on_opened(key, task))
        opening.waiting += 1
        opening.is_shared = opening.is_shared or opening.waiting > 1
        try:
            return await asyncio.shield(opening.task)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and not task.cancelling():  # the caller was not cancelled
                self.raise_if_closed()
                raise BrokerConnectionError(
                    "the connection was closed", address=str(address)
                ) from None
            raise
        except KprotoError as error:
            if not opening.is_shared:
                raise
            raise copy(error) from None  # each raised error has its own traceback
        finally:
            opening.waiting -= 1
            # The attempt may have been aborted already, and another one started.
            if not opening.waiting and self._opening.get(key) is opening:
                self._cancel_opening(key)

    def _usable(self, key: _Key) -> BrokerConnection | None:
        connection = self._open.get(key)
        if connection is None or connection.usable:
            return connection
        # The failure is counted once, because the connection is removed.
        del self._open[key]
        if connection.was_dropped:
            error = BrokerConnectionError("the connection was lost", address=str(key[0]))
            ip = None if connection.socket_address is None else connection.socket_address.ip
            self._node_state_of(key[0]).failed(error, connection.failed_at, _chance(), ip)
        return None

    def _node_state_of(self, address: Address) -> NodeState:
        known = self._node_states.get(address)
        if known is None:
            if len(self._node_states) >= MAX_ADDRESSES:
                self._drop_node_state()
            known = self._node_states[address] = NodeState(self.settings)
        return known

    def _drop_node_state(self) -> None:
        """Drops the oldest node state whose address has no connection and no backoff.

        Drops no node state if each address has a connection or a backoff.
        """
        in_use = {address for address, _ in (*self._open, *self._opening)}
        now = self.clock.monotonic()
        for address, node_state in self._node_states.items():
            if address not in in_use and node_state.not_before <= now:
                del self._node_states[address]
                return

    async def _connect(self, key: _Key) -> BrokerConnection:
        address, owner = key
        node_state = self._node_state_of(address)
        while (backoff_s := node_state.not_before - self.clock.monotonic()) > 0:
            await self.clock.sleep(backoff_s)
        watch = self._observer.connection(str(address))
        try:
            connection = await watch.open(
                lambda: BrokerConnection.open(
                    address,
                    self.settings,
                    self.clock,
                    tls=self._tls,
                    node_state=node_state,
                    watch=watch,
                )
            )
        except KprotoError as error:
            node_state.failed(error, self.clock.monotonic(), _chance(), node_state.failed_ip)
            raise
        node_state.succeeded()
        connection.reopen = lambda: self.connection(address, owner)
        self._open[key] = connection
        usable = [each.message_magic for each in self._open.values() if each.usable]
        self.message_magic = min(usable, default=self.message_magic)
        self.is_message_magic_known = True
        self._schedule_idle_check(self.settings.connections_max_idle_ms / 1000)
        return connection

    def _on_opened(self, key: _Key, task: asyncio.Task[BrokerConnection]) -> None:
        opening = self._opening.get(key)
        if opening is not None and opening.task is task:
            del self._opening[key]
        self._cancelled.discard(task)
        if not task.cancelled():
            task.exception()  # its waiter has raised it

    def _cancel_opening(self, key: _Key) -> None:
        """Cancels a connection attempt that no caller waits for."""
        task = self._opening.pop(key).task
        if not task.done():
            self._cancelled.add(task)
            task.cancel()

    # Idle connections

    def _schedule_idle_check(self, seconds: float) -> None:
        """Sets the timer that closes idle connections.

        Does nothing if the timer is set, if the pool is closed, or if `connections_max_idle_ms` is
        0, so that idle connections stay open.
        """
        if self._idle_timer is None and not self._closed and self.settings.connections_max_idle_ms:
            self._idle_timer = self.clock.call_later(seconds, self._close_idle)

    def _close_idle(self) -> None:
        """Closes connections that have been idle for `connections_max_idle_ms`."""
        self._idle_timer = None
        limit_s = self.settings.connections_max_idle_ms / 1000
        now = self.clock.monotonic()
        first = float("inf")
        for key, connection in list(self._open.items()):
            if connection.is_idle_since(now - limit_s + TIMER_RESOLUTION_S):
                _log.debug("the connection to %s was idle, and is closed", key[0])
                del self._open[key]
                connection.abort()
            elif connection.usable:
                first = min(first, max(connection.used_at + limit_s - now, limit_s / 10))
        if first != float("inf"):
            self._schedule_idle_check(first)

    def raise_if_closed(self) -> None:
        """Raises ConfigurationError once the pool is closed."""
        if self._closed:
            raise ConfigurationError("the client is closed; it cannot be used any more")

    async def release(self, owner: object) -> None:
        """Closes the connections that belong to `owner`, and waits until they are closed."""
        await self._close_connections(self._remove_connections_of(owner))

    def abort(self, owner: object) -> None:
        """Closes the connections that belong to `owner`, without waiting."""
        for connection in self._remove_connections_of(owner):
            connection.abort()

    def _remove_connections_of(self, owner: object) -> list[BrokerConnection]:
        for key in [key for key in self._opening if key[1] is owner]:
            self._cancel_opening(key)
        return [self._open.pop(key) for key in list(self._open) if key[1] is owner]

    def has_connections_of(self, owner: object) -> bool:
        """Returns True if `owner` has an open connection, or one that is being opened."""
        opened = any(key[1] is owner and each.usable for key, each in self._open.items())
        return opened or any(key[1] is owner for key in self._opening)

    def abort_all(self) -> None:
        """Closes all open connections without waiting for their end.

        The pool stays usable: a later request opens a new connection.
        """
        for connection in list(self._open.values()):
            connection.abort()

    async def close(self) -> None:
        """Closes all connections, including pending ones, and waits until they are closed."""
        self._refuse_new()
        connections = list(self._open.values())
        self._open.clear()
        await self._close_connections(connections)

    def warn_if_not_closed(self) -> None:
        """Warns about a client that was not closed, and closes its connections.

        Does nothing if no connection is open. It may be called in any thread.
        """
        loop = self.loop_guard.loop
        if self._closed or loop is None or not any(each.usable for each in self._open.values()):
            return
        call_in_loop(loop, self._abandon)
        warn_unclosed(f"a client of {', '.join(map(str, self.bootstrap))}", self)

    def _abandon(self) -> None:
        self._refuse_new()
        self.abort_all()

    def _refuse_new(self) -> None:
        self._closed = True
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        for key in list(self._opening):
            self._cancel_opening(key)

    def forget(self) -> None:
        """Drops all connections, because their event loop is closed."""
        self._closed = True
        self._open.clear()
        self._opening.clear()
        self._cancelled.clear()

    async def _close_connections(self, connections: Sequence[BrokerConnection]) -> None:
        """Closes connections, and waits until they are closed.

        Also waits until cancelled attempts to open a connection have ended. Even if the call is
        cancelled, no connection stays open.
        """
        for connection in connections:
            connection.abort()
        await asyncio.gather(*self._cancelled, return_exceptions=True)
        await asyncio.gather(*(connection.close() for connection in connections))


class _ConnectAttempt:
    """A pending connection, and the number of callers that wait for it."""

    __slots__ = ("is_shared", "task", "waiting")

    def __init__(self, task: asyncio.Task[BrokerConnection]) -> None:
        self.task = task
        self.waiting = 0
        self.is_shared = False


def _chance() -> float:
    return random.random()  # noqa: S311 - jitter, no secret
