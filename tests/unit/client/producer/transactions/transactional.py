"""Runs embedded brokers of either transaction version; reads their logs and transaction states."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest

from kproto import Client, ClientSettings
from kproto.broker import Broker, BrokerSettings, Cluster
from kproto.messages import DescribeTransactionsRequest
from tests.unit.client.scripted_broker import quick

__all__ = ["BOTH_VERSIONS", "ID", "QUICK", "Scene", "committed", "scene", "state_of", "written"]

#: The transactional id of the tests.
ID = "billing-1"

QUICK = quick(metadata_wait_ms=300, delivery_timeout_ms=3_000)

#: Runs a test with brokers that have finalized transaction.version 0, and 2 (KIP-890).
BOTH_VERSIONS = pytest.mark.parametrize("version", [0, 2])


class Scene(NamedTuple):
    """A broker or cluster with the topic `t`, and a client of it."""

    broker: Broker | Cluster
    client: Client


@asynccontextmanager
async def scene(
    version: int,
    settings: ClientSettings = QUICK,
    *,
    nodes: int = 1,
    partitions: int = 1,
    broker_settings: BrokerSettings | None = None,
) -> AsyncIterator[Scene]:
    """Runs a broker, or a cluster of `nodes`, with this level of transaction.version."""
    configured = broker_settings or BrokerSettings(transaction_version=version)
    made = Broker(configured) if nodes == 1 else Cluster(nodes, settings=configured)
    async with made as broker, Client(broker.bootstrap, settings) as client:
        broker.create_topic("t", partitions)
        yield Scene(broker, client)


async def committed(client: Client, topic: str = "t") -> list[bytes | None]:
    """Returns the values that a consumer with `read_committed` reads up to the log end."""
    return await _values(client, topic, read_committed=True)


async def written(client: Client, topic: str = "t") -> list[bytes | None]:
    """Returns the values in the log, also those of open and aborted transactions."""
    return await _values(client, topic, read_committed=False)


async def _values(client: Client, topic: str, *, read_committed: bool) -> list[bytes | None]:
    consumer = client.consumer(topic, stop_at_end=True, read_committed=read_committed)
    return [record.value async for record in consumer]


async def state_of(client: Client, transactional_id: str = ID) -> str:
    """Returns the state of a transactional id at its coordinator."""
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    response = await client.request(request)
    return response.transaction_states[0].transaction_state
