"""Tests share consumers on a real cluster whose group and share coordinators are killed."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

import pytest

import kproto
from kproto.messages import FindCoordinatorRequest
from tests.support.brokers import StartCluster
from tests.support.share_groups import SHARE_CONFIG, SHARE_VERSION, ShareQueue

from .members_of_groups import until
from .share_readers import ShareReader
from .test_moving_leaders import QUICK, SETTINGS, create, move

pytestmark = pytest.mark.exhaustive

CONFIG: Final = {
    **SHARE_CONFIG,
    **QUICK,
    "offsets.topic.replication.factor": "3",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
}
#: The key types of FindCoordinator.
GROUP, SHARE = 0, 2
RECORDS: Final = 100


async def coordinator_of(client: kproto.Client, queue: ShareQueue, kind: int) -> int:
    """Returns the node of the group coordinator, or of the share coordinator, of a queue."""
    topic_id = (await client.topic(queue.topic)).topic_id
    key = queue.group if kind == GROUP else f"{queue.group}:{topic_id}:0"
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
    while True:
        (found,) = (await client.retrying(lambda: client.request(request))).coordinators
        if not found.error_code:
            return found.node_id
        await asyncio.sleep(0.1)


@pytest.mark.parametrize("kind", [GROUP, SHARE], ids=["group coordinator", "share coordinator"])
async def test_share_consumer_survives_the_kills_of_its_coordinator(
    start_cluster: StartCluster, kind: int
) -> None:
    cluster = start_cluster(SHARE_VERSION, config=CONFIG)
    async with kproto.Client(cluster.bootstrap, SETTINGS) as client:
        queue = ShareQueue(client)
        await create(client, queue.topic, {0: [1, 2, 3]})
        await queue.configure()
        reader = ShareReader(queue)
        async with reader.running() as reading:
            for round_number in range(2):
                begin = 2 * RECORDS * round_number
                coordinator = await coordinator_of(client, queue, kind)
                others = [node for node in (1, 2, 3) if node != coordinator]
                await move(client, queue.topic, [*others, coordinator])  # the leader survives
                await queue.produce(begin, RECORDS)
                await until(partial(reader.has_confirmed, begin + RECORDS))
                await asyncio.to_thread(cluster.node(coordinator).kill)
                await queue.produce(begin + RECORDS, RECORDS)
                await until(partial(reader.has_confirmed, begin + 2 * RECORDS))
                await asyncio.to_thread(cluster.node(coordinator).start)
            assert not reading.done()
            described = await client.admin.describe_share_groups([queue.group])
            assert len(described[queue.group].members) == 1
        assert not reader.again
        assert len(reader.counts) == 4 * RECORDS
        assert max(reader.counts.values()) <= 5
        assert await queue.lag() == 0
