"""Cancels `run` at each point where it waits, and checks that no record is lost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kproto import Record, Retries, Stop
from tests.support.selection import rest_slow
from tests.support.suspensions import CancelAt, points
from tests.unit.client.processing.orders import DEAD, TOPIC, orders, read_all

LATER = "later.0ms"
COUNT = 6


@pytest.mark.slow
@pytest.mark.parametrize("late", rest_slow([False, True], 0, 1))
@pytest.mark.parametrize("order", ["partition", "key"])
def test_nothing_is_left_and_every_record_is_handled_or_kept(order: Any, late: bool) -> None:
    async def scene(cancel: CancelAt) -> None:
        async with orders(COUNT, topics=[DEAD, LATER]) as it:
            seen: list[tuple[str, bytes | None]] = []

            async def handle(record: Record) -> None:
                await asyncio.sleep(0)
                if record.value == b"1":
                    raise ValueError(record.topic)
                seen.append((record.topic, record.value))
                if record.value == b"last":
                    raise Stop(done=True)

            given: dict[str, Any] = {
                "order": order,
                "retries": Retries(1, backoff_ms=0),
                "retry_topics": [LATER],
                "dead_letter_topic": DEAD,
                "stop_on": (),
            }
            async with it.consumer() as consumer:

                async def run() -> None:
                    await consumer.run(handle, **given)

                async def end() -> None:
                    while not await read_all(it.client, DEAD):  # noqa: ASYNC110 - a topic
                        await asyncio.sleep(0.005)
                    await it.send([b"last"])

                ending = asyncio.create_task(end())
                await cancel.run(run())
                if not ending.done() or (TOPIC, b"last") not in seen:
                    await run()
                await ending
            letters = await read_all(it.client, DEAD)
            assert {each.value for each in letters} == {b"1"}
            handled = [value or b"" for topic, value in seen if topic == TOPIC]
            assert sorted(handled) == sorted(
                [b"0", *(b"%d" % at for at in range(2, COUNT)), b"last"]
            )
            assert await it.committed(0) == [COUNT + 1]

    assert points(scene, late=late) > 3
