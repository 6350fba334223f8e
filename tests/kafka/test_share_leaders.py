"""Tests share consumers on a real cluster whose leaders move and are killed."""

from __future__ import annotations

from functools import partial

import pytest

import kproto
from tests.support.brokers import StartCluster
from tests.support.share_groups import SHARE_CONFIG, SHARE_VERSION, ShareQueue

from .members_of_groups import until
from .share_readers import ShareReader
from .test_moving_leaders import QUICK, SETTINGS, create, move

pytestmark = pytest.mark.exhaustive

CONFIG = {
    **SHARE_CONFIG,
    **QUICK,
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "1",
}


async def test_records_survive_moves_and_the_death_of_their_leader(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster(SHARE_VERSION, config=CONFIG)
    async with kproto.Client(cluster.bootstrap, SETTINGS) as client:
        queue = ShareQueue(client)
        await create(client, queue.topic, {0: [1, 2, 3]})
        await queue.configure()
        reader = ShareReader(queue)
        async with reader.running():
            await queue.produce(0, 100)
            await until(partial(reader.has_confirmed, 100))
            for at, nodes in enumerate(([2, 3, 1], [3, 1, 2], [1, 2, 3]), 1):
                await move(client, queue.topic, nodes)
                await queue.produce(at * 100, 100)
            await until(partial(reader.has_confirmed, 400))
            cluster.node(1).kill()
            await queue.produce(400, 100)
            await until(partial(reader.has_confirmed, 500))
        assert len(reader.counts) == 500
        assert not reader.again
        assert max(reader.counts.values()) <= 5
