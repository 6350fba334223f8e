"""Cancels every public coroutine of the client at each point where it waits.

No task is left and no record is lost; the client, its producer and its consumer still work. The
scenes are in `cancellation_scenes`; a public coroutine without a scene fails a test.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

import kproto
from kproto.client.consumer.record_stream import (
    RawBatchIteration,
    RecordIteration,
    RecordListIteration,
    ValueIteration,
)
from kproto.client.network.connection import BrokerConnection
from kproto.client.producer.batch import Delivery
from kproto.records import read_batches
from tests.support.embedded import ThreadedBroker, threaded_broker
from tests.support.selection import named_rows
from tests.support.suspensions import CancelAt, points
from tests.unit.client.cancellation_scenes import FIXED, RECORDS, ROWS, WRITTEN, Row, Scene

#: Needs another broker; `test_two_phase_commit` cancels it at each point.
ELSEWHERE = {"Producer.complete_transaction"}

#: Public only because other modules of the client use them for SASL.
INTERNAL = {"BrokerConnection.send_step", "BrokerConnection.exclusive"}

PUBLIC = (
    kproto.Client,
    kproto.Producer,
    kproto.Consumer,
    RecordIteration,
    RecordListIteration,
    ValueIteration,
    RawBatchIteration,
    BrokerConnection,
    Delivery,
)
SPECIAL = ("__aenter__", "__aexit__", "__anext__", "__await__")

NOT_RECORDS = (kproto.Consumer, type(None))


@pytest.fixture(scope="module")
def broker() -> Iterator[ThreadedBroker]:
    with threaded_broker() as broker:
        asyncio.run(fill(broker.bootstrap))
        yield broker


async def fill(bootstrap: str) -> None:
    async with kproto.Client(bootstrap) as client:
        topics = [kproto.NewTopic(name, 2, 1) for name in (WRITTEN, FIXED)]
        await client.create_topics(*topics)
        async with client.producer() as producer:
            for at in range(RECORDS):
                await producer.send(FIXED, b"%d" % at, partition=at % 2)


async def play(bootstrap: str, prepare: Row, cancel: CancelAt, *, is_cold: bool) -> None:
    scene = Scene(bootstrap, kproto.Client(bootstrap))
    try:
        if not is_cold:
            await scene.client.refresh()
        work = prepare(scene)
        if inspect.iscoroutine(work) and inspect.iscoroutinefunction(prepare):
            work = await work
        before: list[Any] = []

        async def run() -> None:
            before.append(await work)

        await cancel.run(run())
        if scene.closes or (scene.closes_if_cancelled and cancel.reached):
            with pytest.raises(kproto.ConfigurationError, match="closed"):
                await scene.client.refresh()
        else:
            await works(scene, before)
    finally:
        if scene.producer is not None:
            await scene.producer.close()
        if scene.consumer is not None:
            await scene.consumer.close()
        await scene.client.close()


async def works(scene: Scene, before: list[Any]) -> None:
    """Checks that the client, its producer and its consumer still work."""
    client = scene.client
    if scene.made:
        assert len(await client.refresh(scene.made)) == len(scene.made)
    if scene.iteration is not None:
        # The iteration loses no record, including those read before this check.
        found = scene.found
        found += sum(scene.count(it) for it in before if not isinstance(it, NOT_RECORDS))
        async for it in scene.iteration:
            found += scene.count(it)
        assert found == RECORDS
    producer = scene.producer or client.producer()
    delivery = await producer.enqueue(WRITTEN, b"still", partition=0)
    await producer.flush()
    ack = await delivery
    fetched = await client.fetch(WRITTEN, 0, ack.offset, max_wait_ms=1000)
    values = [record.value for batch in read_batches(fetched.records) for record in batch.records()]
    assert b"still" in values
    await producer.close()


#: `make test` has every second row.
CASES = named_rows(ROWS, 2, pytest.mark.exhaustive)


@pytest.mark.parametrize(
    ("is_cold", "late"),
    [
        pytest.param(True, False, id="cold-waiting", marks=pytest.mark.slow),
        pytest.param(True, True, id="cold-done", marks=pytest.mark.exhaustive),
        pytest.param(False, False, id="warm-waiting", marks=pytest.mark.exhaustive),
        pytest.param(False, True, id="warm-done", marks=pytest.mark.exhaustive),
    ],
)
@pytest.mark.parametrize("prepare", CASES)
def test_cancellation_leaves_no_task_and_loses_no_record(
    broker: ThreadedBroker, prepare: Row, is_cold: bool, late: bool
) -> None:
    points(lambda cancel: play(broker.bootstrap, prepare, cancel, is_cold=is_cold), late=late)


def test_every_public_coroutine_has_a_scene() -> None:
    found = {
        f"{owner.__name__}.{name}"
        for owner in PUBLIC
        for name, member in inspect.getmembers(owner)
        if (not name.startswith("_") and inspect.iscoroutinefunction(member)) or name in SPECIAL
    }
    shared = {f"ClusterView.{name}" for name in ("connection", "leader", "release")}
    assert found - INTERNAL - ELSEWHERE | shared == set(ROWS)


def test_harness_detects_leftovers() -> None:
    """The harness must detect a task, a timer and an unhandled exception.

    It must also detect a coroutine that swallows its cancellation.
    """

    async def leaves_a_task(cancel: CancelAt) -> None:
        async def work() -> None:
            other = asyncio.create_task(asyncio.sleep(100))
            await asyncio.sleep(0.001)
            other.cancel()

        await cancel.run(work())

    with pytest.raises(AssertionError, match="tasks are left"):
        points(leaves_a_task, late=False)

    async def leaves_a_timer(cancel: CancelAt) -> None:
        async def work() -> None:
            timer = asyncio.get_running_loop().call_later(100, print)
            await asyncio.sleep(0.001)
            timer.cancel()

        await cancel.run(work())

    with pytest.raises(AssertionError, match="timers are left"):
        points(leaves_a_timer, late=False)

    async def leaves_a_fault(cancel: CancelAt) -> None:
        async def fault() -> None:
            raise ValueError("never retrieved")

        async def work() -> None:
            asyncio.create_task(fault())  # noqa: RUF006 - the tested fault
            await asyncio.sleep(0.001)
            await asyncio.sleep(0.001)

        await cancel.run(work())

    with pytest.raises(AssertionError, match="never retrieved"):
        points(leaves_a_fault, late=True)

    async def swallows(cancel: CancelAt) -> None:
        async def work() -> None:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.001)

        await cancel.run(work())

    with pytest.raises(AssertionError, match="swallowed"):
        points(swallows, late=False)


def test_every_waiting_point_is_cancelled() -> None:
    reached: list[int] = []

    async def scene(cancel: CancelAt) -> None:
        async def work() -> None:
            for at in range(5):
                reached.append(at)
                await asyncio.sleep(0)

        await cancel.run(work())

    assert points(scene, late=False) == 5
    assert reached == [0, 0, 1, 0, 1, 2, 0, 1, 2, 3, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4]
