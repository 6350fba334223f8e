"""Provides fixtures for tests that run on every real broker and on the embedded broker.

The conftest of a test folder imports the fixtures that its tests need.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

import kproto
from kproto.broker import Broker

from .availability import not_available
from .brokers import CANNOT_START, Brokers, RunningKafka, versions
from .embedded import threaded_broker
from .raw_connection import RawConnection

__all__ = [
    "EMBEDDED",
    "bootstrap",
    "broker_version",
    "client",
    "connection",
    "real_broker",
    "topic",
]

EMBEDDED = "embedded"


@pytest.fixture(params=[*versions(), EMBEDDED])
def broker_version(request: pytest.FixtureRequest) -> str:
    """Returns the broker of the test: `4.4.0`, `3.9.2`, `external` or `embedded`."""
    return str(request.param)


@pytest_asyncio.fixture
async def bootstrap(broker_version: str, kafka_brokers: Brokers) -> AsyncIterator[str]:
    """Yields the address of the test's broker; an embedded broker is new for each test."""
    if broker_version == EMBEDDED:
        async with Broker() as broker:
            yield broker.bootstrap
        return
    yield real_broker(broker_version, kafka_brokers).bootstrap


@pytest.fixture
def connection(broker_version: str, kafka_brokers: Brokers) -> Iterator[RawConnection]:
    """Yields a blocking connection to the test's broker; an embedded broker is new each time."""
    if broker_version == EMBEDDED:
        with threaded_broker() as embedded, RawConnection(embedded.bootstrap) as connection:
            yield connection
        return
    with RawConnection(real_broker(broker_version, kafka_brokers).bootstrap) as connection:
        yield connection


def real_broker(version: str, kafka_brokers: Brokers) -> RunningKafka:
    """Returns a running Kafka broker of `version`.

    If the broker cannot start, skips the test; in CI the test fails.
    """
    try:
        return kafka_brokers.get(version)
    except CANNOT_START as error:
        not_available(f"a real Kafka {version}", error)


@pytest_asyncio.fixture
async def client(bootstrap: str) -> AsyncIterator[kproto.Client]:
    """Yields a client of the test's broker, with default settings."""
    async with kproto.Client(bootstrap) as client:
        yield client


@pytest_asyncio.fixture
async def topic(client: kproto.Client) -> AsyncIterator[str]:
    """Yields a topic of three partitions, which is deleted after the test."""
    name = f"client-{uuid.uuid4().hex}"
    await client.create_topics(kproto.NewTopic(name, 3, 1))
    await client.topic(name)  # waits until the broker has the topic in its metadata
    yield name
    await client.delete_topics(name)
