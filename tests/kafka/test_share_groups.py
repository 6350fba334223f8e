"""Tests share consumers on a real broker: acknowledgements, locks, limits, members, errors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

import kproto
from tests.support.availability import not_available
from tests.support.brokers import CANNOT_START
from tests.support.share_groups import SHARE_CONFIG, SHARE_VERSION
from tests.support.share_scenes import SCENES, Scene
from tools.kafka import KafkaNode

pytestmark = pytest.mark.exhaustive


@pytest.fixture(scope="module")
def share_node() -> Iterator[KafkaNode]:
    """Yields a broker with short acquisition locks."""
    try:
        kafka = KafkaNode(SHARE_VERSION, config=SHARE_CONFIG)
        kafka.start()
    except CANNOT_START as error:
        not_available(f"Kafka {SHARE_VERSION}", error)
    yield kafka
    kafka.close()


@pytest_asyncio.fixture
async def share_client(share_node: KafkaNode) -> AsyncIterator[kproto.Client]:
    """Yields a client of the broker."""
    async with kproto.Client(share_node.bootstrap) as client:
        yield client


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
async def test_share_consumers_on_a_real_broker(scene: Scene, share_client: kproto.Client) -> None:
    await scene(share_client)
