"""Runs the scenes of share consumers on the embedded broker, in virtual time."""

from __future__ import annotations

import asyncio
from dataclasses import fields
from typing import Any

import pytest

import kproto
from kproto.broker import Broker, BrokerSettings
from tests.support.share_groups import SHARE_CONFIG, ShareQueue
from tests.support.share_scenes import SCENES, Scene
from tests.support.virtual_time import LoopClock, run_in_virtual_time

NAMES = {each.name for each in fields(BrokerSettings)}


async def play(scene: Scene) -> None:
    """Runs a scene with a new broker, whose client shares its clock."""
    clock = LoopClock()
    its: dict[str, Any] = {
        name.replace(".", "_"): int(value) for name, value in SHARE_CONFIG.items()
    }
    settings = BrokerSettings(**{name: value for name, value in its.items() if name in NAMES})
    async with (
        Broker(settings, clock=clock) as broker,
        kproto.Client(broker.bootstrap, clock=clock) as client,
    ):
        await scene(client)


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_share_consumers_on_the_embedded_broker(scene: Scene) -> None:
    run_in_virtual_time(play(scene))


def test_dropped_records_are_logged_with_their_partitions(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def read(client: kproto.Client) -> None:
        queue = await ShareQueue(client).create(share_record_lock_duration_ms="1000")
        await queue.produce(0, 20)
        found = []
        async with queue.consumer() as consumer:
            async for record in consumer:
                found.append(record.offset)
                await asyncio.sleep(0.3)
                if len(found) == 6:
                    break
        (line,) = {each.message for each in caplog.records if "were not returned" in each.message}
        assert f"records of {queue.topic}[0] were not returned before" in line

    run_in_virtual_time(play(read))
