"""Tests share consumers on a real broker: acknowledgements, locks, limits, members, errors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import kproto
from tests.support.share_groups import SHARE_CONFIG
from tests.support.share_scenes import SCENES, Scene
from tools.kafka import KafkaNode

from .share_nodes import started_share_node

pytestmark = pytest.mark.exhaustive


@pytest.fixture(scope="module")
def share_node() -> Iterator[KafkaNode]:
    """Yields a broker with short acquisition locks."""
    with started_share_node(SHARE_CONFIG) as kafka:
        yield kafka


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
async def test_share_consumers_on_a_real_broker(scene: Scene, share_client: kproto.Client) -> None:
    await scene(share_client)
