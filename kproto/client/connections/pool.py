"""The connections of a client, opened when first needed, closed together.

One a broker for everything that is answered at once; and one for each owner that makes a broker
wait, as a consumer does: brokers work on one request of a connection at a time, so that all
others would wait with it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, TypeAlias

from ...clock import Clock
from ...security.tls import TlsContexts
from ...wire.errors import (
    ConfigurationError,
)
from ..observing.observer import Observer
from ..settings import Address, ClientSettings
from .broker_connection import BrokerConnection

__all__ = ["ConnectionPool"]

_log: Final = logging.getLogger("kproto.client")

#: An address, and who has the connection for himself; None when it is shared.
_Key: TypeAlias = tuple[Address, object]


class ConnectionPool:
    """Connections by address and owner. Nothing is opened twice at once."""

    def __init__(
        self,
        bootstrap: Sequence[Address],
        settings: ClientSettings,
        clock: Clock,
        observer: Observer,
    ) -> None:
        self.bootstrap = list(bootstrap)
        self.settings = settings
        self.clock = clock
        self._observer = observer
        self._open: dict[_Key, BrokerConnection] = {}
        self._locks: dict[_Key, asyncio.Lock] = {}
        self._opening: set[asyncio.Task[BrokerConnection]] = set()
        self._closed = False
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

    async def to(self, address: Address, owner: object = None) -> BrokerConnection:
        """A usable connection to `address`, shared or `owner`'s.

        Raises what `BrokerConnection.open` raises, and ConfigurationError once the pool is closed.
        """
        key = (address, owner)
        connection = self._open.get(key)
        if connection is not None and connection.usable:
            return connection
        async with self._locks.setdefault(key, asyncio.Lock()):
            connection = self._open.get(key)
            if connection is not None and connection.usable:
                return connection
            self._raise_if_closed()
            connection = self._open[key] = await self._connect(address)
            return connection

    async def _connect(self, address: Address) -> BrokerConnection:
        watch = self._observer.connection(str(address))
        opening = asyncio.create_task(
            watch.opening(
                lambda: BrokerConnection.open(
                    address, self.settings, self.clock, tls=self._tls, watch=watch
                )
            )
        )
        self._opening.add(opening)
        try:
            connection = await opening
        except asyncio.CancelledError:
            if opening.done() and not opening.cancelled() and opening.exception() is None:
                await opening.result().close()
            task = asyncio.current_task()
            if task is not None and not task.cancelling():
                self._raise_if_closed()  # it was not the caller who was cancelled
            raise
        finally:
            self._opening.discard(opening)
        if self._closed:
            await connection.close()
            self._raise_if_closed()
        return connection

    def _raise_if_closed(self) -> None:
        if self._closed:
            raise ConfigurationError("the client is closed; it cannot be used any more")

    async def release(self, owner: object) -> None:
        """Close the connections that `owner` has for himself."""
        await _closed(self._taken_from(owner))

    def abort(self, owner: object) -> None:
        """The same, for who cannot wait until they are closed."""
        for connection in self._taken_from(owner):
            connection.abort()

    def _taken_from(self, owner: object) -> list[BrokerConnection]:
        for key in [key for key in self._locks if key[1] is owner]:
            del self._locks[key]
        return [self._open.pop(key) for key in list(self._open) if key[1] is owner]

    def abort_all(self) -> None:
        """Close every connection at once; others are opened when they are asked for."""
        for connection in list(self._open.values()):
            connection.abort()

    async def close(self) -> None:
        """Close every connection, those that are being opened too, and wait until they are."""
        self._closed = True
        opening = list(self._opening)
        for task in opening:
            task.cancel()
        connections = list(self._open.values())
        self._open.clear()
        for connection in connections:
            connection.abort()
        await asyncio.gather(*opening, return_exceptions=True)
        await _closed(connections)


async def _closed(connections: Sequence[BrokerConnection]) -> None:
    """Close them and wait until they are. Who is cancelled meanwhile leaves none open."""
    for connection in connections:
        connection.abort()
    await asyncio.gather(*(connection.close() for connection in connections))
