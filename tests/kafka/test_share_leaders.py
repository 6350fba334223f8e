"""Tests share consumers on a real cluster whose leaders move and are killed."""

from __future__ import annotations

import asyncio

import pytest

import kproto
from tests.support.brokers import StartCluster
from tests.support.share_groups import SHARE_CONFIG, SHARE_VERSION, ShareQueue

from .members_of_groups import until
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
        accepted: dict[int, int] = {}
        confirmed: set[int] = set()
        again: list[int] = []

        def on_acknowledged(result: kproto.AcknowledgeResult) -> None:
            if result.error is None:
                confirmed.update(offset for offsets in result.accepted for offset in offsets)

        async def read() -> None:
            async with queue.consumer(
                max_poll_records=10, on_acknowledged=on_acknowledged
            ) as consumer:
                async for record in consumer:
                    if record.offset in confirmed:
                        again.append(record.offset)
                    accepted[record.offset] = record.delivery_count
                    await consumer.accept(record)
                    await asyncio.sleep(0.001)

        reading = asyncio.create_task(read())
        try:
            await queue.produce(0, 100)
            await until(lambda: len(confirmed) == 100)
            for at, nodes in enumerate(([2, 3, 1], [3, 1, 2], [1, 2, 3]), 1):
                await move(client, queue.topic, nodes)
                await queue.produce(at * 100, 100)
            await until(lambda: len(confirmed) == 400)
            cluster.node(1).kill()
            await queue.produce(400, 100)
            await until(lambda: len(confirmed) == 500)
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        assert len(accepted) == 500
        assert not again
        assert max(accepted.values()) <= 5
