"""Tests embedded brokers that a program drops without `close`."""

from __future__ import annotations

import asyncio
import gc
import re
import socket
from typing import Any

import pytest

import kproto
from kproto.broker import Broker, Cluster


def warns(*addresses: str) -> Any:
    """Checks that the block emits the ResourceWarning of a broker at these addresses."""
    text = f"an embedded broker at {', '.join(addresses)} was not closed: use `async with`"
    return pytest.warns(ResourceWarning, match=re.escape(text))


def refuses(address: str) -> bool:
    host, port = address.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port))).close()
    except ConnectionRefusedError:
        return True
    return False


async def test_dropped_broker_warns_and_ends_its_connections() -> None:
    broker = Broker()
    await broker.start()
    address = broker.bootstrap
    async with kproto.Client(address) as client:
        connection = await client.connection()
        with warns(address):
            del broker
            gc.collect()
        while connection.usable:  # noqa: ASYNC110 - garbage collection has no event to wait for
            await asyncio.sleep(0.001)
    assert refuses(address)


async def test_dropped_cluster_names_each_broker() -> None:
    cluster = Cluster(2)
    await cluster.start()
    addresses = [cluster.broker(node).bootstrap for node in (1, 2)]
    with warns(*addresses):
        del cluster
        gc.collect()
    await asyncio.sleep(0)
    assert all(map(refuses, addresses))


def test_broker_of_a_closed_loop_warns_and_releases_its_port() -> None:
    async def start() -> Broker:
        broker = Broker()
        await broker.start()
        return broker

    broker = asyncio.run(start())
    address = broker.bootstrap
    with warns(address):
        del broker
        gc.collect()
    assert refuses(address)


async def test_closed_broker_does_not_warn() -> None:
    async with Broker() as broker:
        assert broker.is_listening
    unused = Broker()
    del broker, unused
    gc.collect()
