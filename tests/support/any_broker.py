"""Fixtures for tests that run on each broker alike: every real one, and the embedded one.

Import them into the conftest of a folder whose tests want them.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

import kproto
from kproto.broker import Broker

from .availability import not_available
from .brokers import CANNOT_START, Brokers, versions

__all__ = ["EMBEDDED", "bootstrap", "broker_version", "client", "topic"]

EMBEDDED = "embedded"


@pytest.fixture(params=[*versions(), EMBEDDED])
def broker_version(request: pytest.FixtureRequest) -> str:
    """Which broker the test runs on: `4.4.0`, `3.9.2`, `external` or `embedded`."""
    return str(request.param)


@pytest_asyncio.fixture
async def bootstrap(broker_version: str, kafka_brokers: Brokers) -> AsyncIterator[str]:
    """Where that broker listens; an embedded one is the test's own."""
    if broker_version == EMBEDDED:
        async with Broker() as broker:
            yield broker.bootstrap
        return
    try:
        running = kafka_brokers.get(broker_version)
    except CANNOT_START as error:
        not_available(f"a real Kafka {broker_version}", error)
    yield running.bootstrap


@pytest_asyncio.fixture
async def client(bootstrap: str) -> AsyncIterator[kproto.Client]:
    """A client of that broker with default settings."""
    async with kproto.Client(bootstrap) as client:
        yield client


@pytest_asyncio.fixture
async def topic(client: kproto.Client) -> AsyncIterator[str]:
    """A topic of three partitions that is gone after the test."""
    name = f"client-{uuid.uuid4().hex}"
    await client.create_topics(kproto.NewTopic(name, 3, 1))
    await client.topic(name)  # waits until the broker knows of it, as it does a moment later
    yield name
    await client.delete_topics(name)
