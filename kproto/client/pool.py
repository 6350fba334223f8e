"""The connections of a client: one a broker, opened when first needed, closed together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ..wire.errors import BrokerConnectionError, KprotoError
from .cluster import Cluster
from .connection import BrokerConnection
from .settings import Address, ClientSettings

__all__ = ["ConnectionPool"]


class ConnectionPool:
    """Connections by address. Two brokers never share one, and nothing is opened twice at once."""

    def __init__(self, bootstrap: Sequence[Address], settings: ClientSettings) -> None:
        self.bootstrap = list(bootstrap)
        self.settings = settings
        self._open: dict[Address, BrokerConnection] = {}
        self._locks: dict[Address, asyncio.Lock] = {}
        self._closed = False

    async def to(self, address: Address) -> BrokerConnection:
        """A usable connection to `address`. Raises what `BrokerConnection.open` raises."""
        connection = self._open.get(address)
        if connection is not None and connection.usable:
            return connection
        async with self._locks.setdefault(address, asyncio.Lock()):
            connection = self._open.get(address)
            if connection is not None and connection.usable:
                return connection
            self._raise_if_closed(address)
            connection = await BrokerConnection.open(address, self.settings)
            try:
                self._raise_if_closed(address)
            except BrokerConnectionError:
                await connection.close()
                raise
            self._open[address] = connection
            return connection

    def _raise_if_closed(self, address: Address) -> None:
        if self._closed:
            raise BrokerConnectionError("the client is closed", address=str(address))

    async def to_any(self, cluster: Cluster) -> BrokerConnection:
        """A connection to any broker: an open one, else one of the cluster, else a bootstrap one.

        Raises BrokerConnectionError, which tells what each address answered, when none can be
        had.
        """
        for connection in self._open.values():
            if connection.usable:
                return connection
        failures: list[str] = []
        for address in dict.fromkeys([*cluster.brokers.values(), *self.bootstrap]):
            try:
                return await self.to(address)
            except KprotoError as error:
                failures.append(str(error))
        raise BrokerConnectionError(f"no broker can be reached: {'; '.join(failures)}")

    async def close(self) -> None:
        """Close every connection and wait until they are."""
        self._closed = True
        connections = list(self._open.values())
        self._open.clear()
        await asyncio.gather(*(connection.close() for connection in connections))
