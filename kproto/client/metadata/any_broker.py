"""Connects to any broker: uses the first broker that answers, in the order of `broker_selection`.

The next attempt starts when the previous attempt has failed, or after `connection_attempt_delay_ms`
while the previous attempt continues: so a silent broker delays the client only for that time.
Brokers in reconnect backoff are tried last.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from ...tasks import start_task
from ...wire.errors import (
    AuthenticationError,
    BrokerConnectionError,
    ConfigurationError,
    KprotoError,
)
from ..network.addresses import wait_for_first
from ..network.connection import BrokerConnection
from ..network.pool import ConnectionPool
from ..settings import Address
from .broker_selection import BrokerSelection

__all__ = ["connect", "connect_any"]


async def connect_any(
    pool: ConnectionPool, selection: BrokerSelection, known: Iterable[Address]
) -> BrokerConnection:
    """Returns a shared connection to the first broker that answers; cancels all other attempts.

    `known` are the addresses of the brokers in the metadata. If no broker can be reached, the error
    has the failure of each address: AuthenticationError if all brokers refused the client, or if
    one broker refused the client and no broker is known yet; BrokerConnectionError in all other
    cases. Raises ConfigurationError for TLS files that cannot be used, once the pool is closed, and
    in another event loop.
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
    # Brokers in backoff come last, and after them brokers that did not answer a request in time:
    # another connection to such a broker may be open, and would not be answered either.
    timed_out = pool.timed_out_addresses()
    addresses = sorted(
        selection.candidates(brokers, load),
        key=lambda each: (each in timed_out, pool.backoff_s(each)),
    )
    if pool.open_connection(addresses[0]) is not None:
        connection: BrokerConnection | None = await connect(pool, selection, addresses[0])
    else:
        connection = await _connect_first(pool, selection, addresses, failures)
    if connection is not None:
        selection.on_request(connection.address)
        return connection
    reasons = "; ".join(dict.fromkeys(map(str, failures)))
    refused = [isinstance(each, AuthenticationError) for each in failures]
    # If the client has never connected, its settings are wrong, and retries may lock an account.
    # Later the client waits for the broker that worked, even if another address refuses the client.
    if refused and (all(refused) or (any(refused) and not brokers)):
        raise AuthenticationError(reasons)
    raise BrokerConnectionError(f"no broker can be reached: {reasons}")


async def _connect_first(
    pool: ConnectionPool,
    selection: BrokerSelection,
    addresses: Sequence[Address],
    failures: list[KprotoError],
) -> BrokerConnection | None:
    """Returns the connection of the first attempt that succeeds; None if all have failed.

    Adds the errors of failed attempts to `failures`. If attempts that started earlier than the
    successful attempt have not ended, reports their brokers to `selection` as failed, so that later
    calls try them last.
    """
    delay_s = pool.settings.connection_attempt_delay_ms / 1000
    left = list(addresses)
    attempts: dict[asyncio.Task[BrokerConnection], Address] = {}
    try:
        while left or attempts:
            if left:
                address = left.pop(0)
                attempts[start_task(connect(pool, selection, address))] = address
            for task in await wait_for_first(attempts, delay_s if left else None, pool.clock):
                del attempts[task]
                try:
                    connection = task.result()
                except ConfigurationError:
                    raise
                except KprotoError as error:
                    failures.append(error)
                else:
                    for address in attempts.values():
                        if addresses.index(address) < addresses.index(connection.address):
                            selection.on_failed(address)
                    return connection
        return None
    finally:
        for task in attempts:
            task.cancel()
        await asyncio.gather(*attempts, return_exceptions=True)


async def connect(
    pool: ConnectionPool, selection: BrokerSelection, address: Address, owner: object = None
) -> BrokerConnection:
    """Returns the connection to `address`; reports to `selection` whether it can be reached.

    Raises KprotoError if the address cannot be reached. Raises ConfigurationError without a report.
    """
    try:
        connection = await pool.connection(address, owner)
    except ConfigurationError:
        raise
    except KprotoError:
        selection.on_failed(address)
        raise
    selection.on_success(address)
    return connection
