"""The connections of a client, opened when first needed, closed together.

One a broker for everything that is answered at once; and one for each owner that makes a broker
wait, as a consumer does: brokers work on one request of a connection at a time, so that all
others would wait with it.
"""

from __future__ import annotations

import asyncio
import logging
import random
import warnings
from collections.abc import Sequence
from copy import copy
from typing import Final, TypeAlias

from ...clock import Clock, Timer
from ...security.tls import TlsContexts
from ...wire.errors import BrokerConnectionError, ConfigurationError, KprotoError
from ..core.loop_guard import LoopGuard
from ..core.retry import TICK_S
from ..observing.observer import Observer
from ..release import magic_of
from ..settings import Address, ClientSettings
from .connection import BrokerConnection
from .node_state import NodeState

__all__ = ["ConnectionPool"]

_log: Final = logging.getLogger("kproto.client")

#: So many addresses are remembered with how they were reached: brokers may come under ever new
#: ones. One that is connected to, or waits to be, is not forgotten.
MOST_ADDRESSES: Final = 1_000

#: An address, and who has the connection for himself; None when it is shared.
_Key: TypeAlias = tuple[Address, object]


class ConnectionPool:
    """Connections by address and owner. Nothing is opened twice at once."""

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
        self.home = LoopGuard()
        self._open: dict[_Key, BrokerConnection] = {}
        self._opening: dict[_Key, _Opening] = {}
        self._ending: set[asyncio.Task[BrokerConnection]] = set()  # that nobody waits for any more
        self._reach: dict[Address, NodeState] = {}
        self._idle_timer: Timer | None = None
        self._closed = False
        #: The newest format of records that all brokers take which are connected.
        self.message_magic = magic_of(settings.broker_version)
        self._tls = TlsContexts(settings.tls)
        if settings.sasl is not None and settings.sasl.readable and not self._tls.enabled:
            _log.warning(
                "%s without TLS: who sees the bytes on their way can use what it sends; set tls",
                settings.sasl.mechanism,
            )

    def at_hand(self, address: Address) -> BrokerConnection | None:
        """The shared connection to `address`, if it is open."""
        connection = self._open.get((address, None))
        return connection if connection is not None and connection.usable else None

    def has_lost(self, address: Address) -> bool:
        """True when the shared connection to `address` has failed, and no other was opened."""
        connection = self._open.get((address, None))
        return connection is not None and not connection.usable

    def wait_s(self, address: Address) -> float:
        """How long nobody tries to reach `address`: the rest of its backoff, in seconds."""
        reach = self._reach.get(address)
        return 0.0 if reach is None else max(0.0, reach.not_before - self.clock.monotonic())

    async def to(self, address: Address, owner: object = None) -> BrokerConnection:
        """A usable connection to `address`, shared or `owner`'s.

        Who asks while one is being opened gets that one, or its error. After a failure the next
        attempt begins once the broker's backoff is over, and whoever asks before waits for it.
        Raises what `BrokerConnection.open` raises, and ConfigurationError once the pool is closed,
        or in another event loop.
        """
        self.home.check()
        key = (address, owner)
        connection = self._usable(key)
        if connection is not None:
            return connection
        self._raise_if_closed()
        opening = self._opening.get(key)
        if opening is None:
            opening = self._opening[key] = _Opening(asyncio.create_task(self._connect(key)))
            opening.task.add_done_callback(lambda task: self._opened(key, task))
        opening.waiting += 1
        opening.is_shared = opening.is_shared or opening.waiting > 1
        try:
            return await asyncio.shield(opening.task)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and not task.cancelling():  # it was not the caller who was
                self._raise_if_closed()
                raise BrokerConnectionError(
                    "the connection was closed", address=str(address)
                ) from None
            raise
        except KprotoError as error:
            if not opening.is_shared:
                raise
            raise copy(error) from None  # a raised exception collects its own traceback
        finally:
            opening.waiting -= 1
            # It may have been given up already, and another begun.
            if not opening.waiting and self._opening.get(key) is opening:
                self._give_up(key)

    def _usable(self, key: _Key) -> BrokerConnection | None:
        connection = self._open.get(key)
        if connection is None or connection.usable:
            return connection
        # Found once: what comes of it is in the reach from now on.
        del self._open[key]
        if connection.was_dropped:
            error = BrokerConnectionError("the connection was lost", address=str(key[0]))
            ip = None if connection.target is None else connection.target.ip
            self._reach_of(key[0]).failed(error, connection.failed_at, _chance(), ip)
        return None

    def _reach_of(self, address: Address) -> NodeState:
        known = self._reach.get(address)
        if known is None:
            if len(self._reach) >= MOST_ADDRESSES:
                self._forget_a_reach()
            known = self._reach[address] = NodeState(self.settings)
        return known

    def _forget_a_reach(self) -> None:
        """Forget how the address was reached that was met first, of those that nobody waits for."""
        in_use = {address for address, _ in (*self._open, *self._opening)}
        now = self.clock.monotonic()
        for address, reach in self._reach.items():
            if address not in in_use and reach.not_before <= now:
                del self._reach[address]
                return

    async def _connect(self, key: _Key) -> BrokerConnection:
        address, owner = key
        reach = self._reach_of(address)
        while (wait_s := reach.not_before - self.clock.monotonic()) > 0:
            await self.clock.sleep(wait_s)
        watch = self._observer.connection(str(address))
        try:
            connection = await watch.opening(
                lambda: BrokerConnection.open(
                    address, self.settings, self.clock, tls=self._tls, reach=reach, watch=watch
                )
            )
        except KprotoError as error:
            reach.failed(error, self.clock.monotonic(), _chance(), reach.failed_ip)
            raise
        reach.succeeded()
        connection.reopen = lambda: self.to(address, owner)
        self._open[key] = connection
        usable = [each.message_magic for each in self._open.values() if each.usable]
        self.message_magic = min(usable, default=self.message_magic)
        self._look_for_idle(self.settings.max_idle_ms / 1000)
        return connection

    def _opened(self, key: _Key, task: asyncio.Task[BrokerConnection]) -> None:
        opening = self._opening.get(key)
        if opening is not None and opening.task is task:
            del self._opening[key]
        self._ending.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waited has it

    def _give_up(self, key: _Key) -> None:
        """Open that one no more: nobody waits for it."""
        task = self._opening.pop(key).task
        if not task.done():
            self._ending.add(task)
            task.cancel()

    # Idle connections

    def _look_for_idle(self, seconds: float) -> None:
        """Look in so many seconds, unless that is planned already."""
        if self._idle_timer is None and not self._closed and self.settings.max_idle_ms:
            self._idle_timer = self.clock.call_later(seconds, self._close_idle)

    def _close_idle(self) -> None:
        """Close what nobody has used for `max_idle_ms`; it is opened again when it is needed."""
        self._idle_timer = None
        limit_s = self.settings.max_idle_ms / 1000
        now = self.clock.monotonic()
        first = float("inf")
        for key, connection in list(self._open.items()):
            if connection.is_idle_since(now - limit_s + TICK_S):
                _log.debug("the connection to %s was idle, and is closed", key[0])
                del self._open[key]
                connection.abort()
            elif connection.usable:
                first = min(first, max(connection.used_at + limit_s - now, limit_s / 10))
        if first != float("inf"):
            self._look_for_idle(first)

    def _raise_if_closed(self) -> None:
        if self._closed:
            raise ConfigurationError("the client is closed; it cannot be used any more")

    async def release(self, owner: object) -> None:
        """Close the connections that `owner` has for himself."""
        await self._ended(self._taken_from(owner))

    def abort(self, owner: object) -> None:
        """The same, for who cannot wait until they are closed."""
        for connection in self._taken_from(owner):
            connection.abort()

    def _taken_from(self, owner: object) -> list[BrokerConnection]:
        for key in [key for key in self._opening if key[1] is owner]:
            self._give_up(key)
        return [self._open.pop(key) for key in list(self._open) if key[1] is owner]

    def abort_all(self) -> None:
        """Close every connection at once; others are opened when they are asked for."""
        for connection in list(self._open.values()):
            connection.abort()

    async def close(self) -> None:
        """Close every connection, those that are being opened too, and wait until they are."""
        self._open_no_more()
        connections = list(self._open.values())
        self._open.clear()
        await self._ended(connections)

    def dropped(self) -> None:
        """Nobody has the client any more. Warns of what it left open, and closes that.

        May be called in any thread.
        """
        loop = self.home.loop
        if self._closed or loop is None or not any(each.usable for each in self._open.values()):
            return
        servers = ", ".join(map(str, self.bootstrap))
        text = f"a client of {servers} was not closed: use `async with`, or await its `close()`"
        warnings.warn(text, ResourceWarning, stacklevel=2, source=self)
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._abandon)

    def _abandon(self) -> None:
        self._open_no_more()
        self.abort_all()

    def _open_no_more(self) -> None:
        self._closed = True
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        for key in list(self._opening):
            self._give_up(key)

    def forget(self) -> None:
        """Have no connections any more, as their event loop is closed."""
        self._closed = True
        self._open.clear()
        self._opening.clear()
        self._ending.clear()

    async def _ended(self, connections: Sequence[BrokerConnection]) -> None:
        """Close them and wait until they are, and until nothing is opened that nobody waits for.

        Who is cancelled meanwhile leaves none open.
        """
        for connection in connections:
            connection.abort()
        await asyncio.gather(*self._ending, return_exceptions=True)
        await asyncio.gather(*(connection.close() for connection in connections))


class _Opening:
    """A connection that is being opened, and how many wait for it."""

    __slots__ = ("is_shared", "task", "waiting")

    def __init__(self, task: asyncio.Task[BrokerConnection]) -> None:
        self.task = task
        self.waiting = 0
        self.is_shared = False


def _chance() -> float:
    return random.random()  # noqa: S311 - jitter, no secret
