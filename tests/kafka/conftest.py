"""Marks tests that need a real broker with `kafka`; limits the time of async tests here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

import kproto
from tests.kafka.consumer_members import config_of
from tests.support.any_broker import EMBEDDED, bootstrap, broker_version, client, connection, topic
from tests.support.async_limits import limit_async_tests
from tests.support.availability import not_available
from tests.support.brokers import CANNOT_START
from tests.support.secured import secured
from tests.support.selection import below
from tools.kafka import VERSIONS, KafkaNode

__all__ = ["bootstrap", "broker_version", "client", "connection", "secured", "topic"]

HERE = Path(__file__).parent

LONGEST_S = 300.0
"""Time limit of one test in seconds: tests that start and kill brokers take a minute, and longer on
a busy machine."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks each test that needs a real broker, and limits async tests to `LONGEST_S` s."""
    mine = below(items, HERE)
    for item in mine:
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        if parameters.get("broker_version") != EMBEDDED:
            item.add_marker("kafka")
    limit_async_tests(mine, LONGEST_S)


@pytest.fixture(scope="session", params=VERSIONS)
def node848(request: pytest.FixtureRequest) -> Iterator[KafkaNode]:
    """Yields a broker with the consumer protocol and frequent heartbeats."""
    try:
        kafka = KafkaNode(request.param, config=config_of(request.param))
        kafka.start()
    except CANNOT_START as error:
        not_available(f"Kafka {request.param}", error)
    yield kafka
    kafka.close()


@pytest_asyncio.fixture
async def share_client(share_node: KafkaNode) -> AsyncIterator[kproto.Client]:
    """Yields a client of the broker `share_node`, which the test module starts."""
    async with kproto.Client(share_node.bootstrap) as client:
        yield client
