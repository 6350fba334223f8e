"""A connection to any broker: tries one after the other as `choosing` says."""

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
    """A shared connection to any broker: an open one, else one that is known, else bootstrap.

    Raises, where none can be had, an error that tells what each address answered:
    AuthenticationError when each refused, and when one did while no broker is known, else
    BrokerConnectionError. Raises ConfigurationError for TLS files that cannot be used, and
    once the pool is closed.
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
    # Those that are to be left alone for a moment come last.
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
    # Who never got through has a wrong setting, and trying again may lock an account. In use
    # the broker that worked is waited for, though another address refuses.
    if refused and (all(refused) or (any(refused) and not brokers)):
        raise AuthenticationError(told)
    raise BrokerConnectionError(f"no broker can be reached: {told}")


async def reach(
    pool: ConnectionPool, choosing: BrokerSelection, address: Address, owner: object = None
) -> BrokerConnection:
    """The connection to one address; what comes of it counts for the choice of the next."""
    try:
        connection = await pool.to(address, owner)
    except ConfigurationError:
        raise
    except KprotoError:
        choosing.failed(address)
        raise
    choosing.answered(address)
    return connection
