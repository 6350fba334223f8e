"""Connects to any broker: tries one after the other, in the order of `broker_selection`.

Brokers in reconnect backoff are tried last.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...wire.errors import (
    AuthenticationError,
    BrokerConnectionError,
    ConfigurationError,
    KprotoError,
)
from ..network.connection import BrokerConnection
from ..network.pool import ConnectionPool
from ..settings import Address
from .broker_selection import BrokerSelection

__all__ = ["connect", "connect_any"]


async def connect_any(
    pool: ConnectionPool, selection: BrokerSelection, known: Iterable[Address]
) -> BrokerConnection:
    """Returns a shared connection to the first broker that can be reached.

    `known` are the addresses of the brokers in the metadata. If no broker can be reached, the error
    has the failure of each address: AuthenticationError if all brokers refused the client, or if
    one broker refused it and no broker is known yet; BrokerConnectionError in all other cases.
    Raises ConfigurationError for TLS files that cannot be used, once the pool is closed, and in
    another event loop.
    """
    brokers = list(known)

    def load(address: Address) -> int | None:
        connection = pool.open_connection(address)
        if connection is not None:
            return connection.in_flight
        if pool.has_lost_connection(address):
            selection.on_failed(address)
        return None

    failures: list[KprotoError] = []
    # Brokers in backoff come last.
    for address in sorted(selection.candidates(brokers, load), key=pool.backoff_s):
        try:
            connection = await connect(pool, selection, address)
        except ConfigurationError:
            raise
        except KprotoError as error:
            failures.append(error)
        else:
            selection.on_request(address)
            return connection
    reasons = "; ".join(dict.fromkeys(map(str, failures)))
    refused = [isinstance(each, AuthenticationError) for each in failures]
    # If the client has never connected, its settings are wrong, and retries may lock an account.
    # Later the client waits for the broker that worked, even if another address refuses the client.
    if refused and (all(refused) or (any(refused) and not brokers)):
        raise AuthenticationError(reasons)
    raise BrokerConnectionError(f"no broker can be reached: {reasons}")


async def connect(
    pool: ConnectionPool, selection: BrokerSelection, address: Address, owner: object = None
) -> BrokerConnection:
    """Returns the connection to one address; reports success or failure to `selection`."""
    try:
        connection = await pool.connection(address, owner)
    except ConfigurationError:
        raise
    except KprotoError:
        selection.on_failed(address)
        raise
    selection.on_success(address)
    return connection
