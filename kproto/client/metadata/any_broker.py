"""Connects to any broker: tries one after the other, in the order of `broker_selection`."""

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

__all__ = ["reach", "reach_any"]


async def reach_any(
    pool: ConnectionPool, choosing: BrokerSelection, known: Iterable[Address]
) -> BrokerConnection:
    """Returns a shared connection to any broker: an open one, else a known one, else bootstrap.

    If no broker can be reached, raises an error that says what happened at each address:
    AuthenticationError if each refused, or if one did while no broker is known, else
    BrokerConnectionError. Raises ConfigurationError for TLS files that cannot be used, and once the
    pool is closed.
    """
    brokers = list(known)

    def load(address: Address) -> int | None:
        connection = pool.at_hand(address)
        if connection is not None:
            return connection.in_flight
        if pool.has_lost(address):
            choosing.failed(address)
        return None

    failures: list[KprotoError] = []
    # Brokers in backoff come last.
    for address in sorted(choosing.order(brokers, load), key=pool.wait_s):
        try:
            connection = await reach(pool, choosing, address)
        except ConfigurationError:
            raise
        except KprotoError as error:
            failures.append(error)
        else:
            choosing.asked(address)
            return connection
    told = "; ".join(dict.fromkeys(map(str, failures)))
    refused = [isinstance(each, AuthenticationError) for each in failures]
    # A client that never connected has a wrong setting, and retries may lock an account. Later the
    # client waits for the broker that worked, even if another address refuses.
    if refused and (all(refused) or (any(refused) and not brokers)):
        raise AuthenticationError(told)
    raise BrokerConnectionError(f"no broker can be reached: {told}")


async def reach(
    pool: ConnectionPool, choosing: BrokerSelection, address: Address, owner: object = None
) -> BrokerConnection:
    """Returns the connection to one address; notes the outcome for the selection of the next
    broker.
    """
    try:
        connection = await pool.to(address, owner)
    except ConfigurationError:
        raise
    except KprotoError:
        choosing.failed(address)
        raise
    choosing.answered(address)
    return connection
