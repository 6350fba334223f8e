"""The connections of a client, opened when first needed, closed together.

One a broker for everything that is answered at once; and one for each owner that makes a broker
wait, as a consumer does: brokers work on one request of a connection at a time, so that all
others would wait with it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from ...clock import Clock
from ...security.tls import TlsContexts
from ...wire.errors import (
    AuthenticationError,
    BrokerConnectionError,
    ConfigurationError,
    KprotoError,
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

    async def to_any(self, known: Iterable[Address]) -> BrokerConnection:
        """A shared connection to any broker: an open one, else one that is known, else bootstrap.

        Raises, where none can be had, an error that tells what each address answered:
        AuthenticationError when each refused, and when one did while no broker is known, else
        BrokerConnectionError. Raises ConfigurationError for TLS files that cannot be used, and
        once the pool is closed.
        """
        self._raise_if_closed()
        for (_, owner), connection in self._open.items():
            if owner is None and connection.usable:
                return connection
        failures: list[KprotoError] = []
        brokers = list(known)
        for address in dict.fromkeys([*brokers, *self.bootstrap]):
            try:
                return await self.to(address)
            except ConfigurationError:
                raise
            except KprotoError as error:
                self._raise_if_closed()
                failures.append(error)
        told = "; ".join(dict.fromkeys(map(str, failures)))
        refused = [isinstance(each, AuthenticationError) for each in failures]
        # Who never got through has a wrong setting, and trying again may lock an account. In use
        # the broker that worked is waited for, though another address refuses.
        if refused and (all(refused) or (any(refused) and not brokers)):
            raise AuthenticationError(told)
        raise BrokerConnectionError(f"no broker can be reached: {told}")

    async def release(self, owner: object) -> None:
        """Close the connections that `owner` has for himself."""
        await asyncio.gather(*(connection.close() for connection in self._taken_from(owner)))

    def abort(self, owner: object) -> None:
        """The same, for who cannot wait until they are closed."""
        for connection in self._taken_from(owner):
            connection.abort()

    def _taken_from(self, owner: object) -> list[BrokerConnection]:
        for key in [key for key in self._locks if key[1] is owner]:
            del self._locks[key]
        return [self._open.pop(key) for key in list(self._open) if key[1] is owner]

    async def close(self) -> None:
        """Close every connection, those that are being opened too, and wait until they are."""
        self._closed = True
        opening = list(self._opening)
        for task in opening:
            task.cancel()
        await asyncio.gather(*opening, return_exceptions=True)
        connections = list(self._open.values())
        self._open.clear()
        await asyncio.gather(*(connection.close() for connection in connections))
