"""Cancels every coroutine of a group consumer at each point where it waits.

The group membership is scripted. Also cancels the calls in which the membership assigns or revokes
partitions of the consumer, or reports them as lost. If the cancelled coroutine does not close the
consumer, the consumer then returns each remaining record once, and commits all records.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from kproto import GroupConsumer, Record, Retries, Stop
from kproto.client.consumer.rebalance_listener import RebalanceListenerInvoker
from tests.support.selection import named_rows
from tests.support.suspensions import CancelAt, points
from tests.unit.client.consumer.grouped import FAR, Group, group
from tests.unit.client.consumer.test_group_reading import P0, P1, TEN, THREE

ALL = {(0, at) for at in range(10)} | {(1, at) for at in range(3)}


@dataclass
class Scene:
    """A consumer under test.

    `found` are the records that the consumer has returned, and `iteration` is its latest iterator.
    `closes` is true if the coroutine under test closes the consumer.
    """

    it: Group
    consumer: GroupConsumer
    closes: bool = False
    found: list[tuple[int, int]] = field(default_factory=list)
    iteration: AsyncIterator[Any] | None = None

    async def enter(self) -> None:
        await self.consumer.__aenter__()
        await self.it.owner.assign([P0, P1])

    async def take(self, count: int) -> None:
        self.iteration = aiter(self.consumer)
        for _ in range(count):
            record = await anext(self.iteration)
            self.found.append((record.partition, record.offset))

    def handler(self, count: int, fails: int = 0) -> Callable[[Record], Awaitable[None]]:
        """Returns a handler that raises `fails` times, and stops `run` after `count` records."""
        left = fails

        async def handle(record: Record) -> None:
            nonlocal left
            await asyncio.sleep(0)
            if left:
                left -= 1
                raise ValueError
            self.found.append((record.partition, record.offset))
            if len(self.found) == count:
                raise Stop(done=True)

        return handle


Row = Callable[[Scene], Awaitable[Awaitable[object]]]
ROWS: dict[str, list[Row]] = {}


def row(name: str) -> Callable[[Row], Row]:
    def add(function: Row) -> Row:
        ROWS.setdefault(name, []).append(function)
        return function

    return add


@row("GroupConsumer.__aenter__")
async def entering(scene: Scene) -> Awaitable[object]:
    async def enter() -> None:
        try:
            await scene.consumer.__aenter__()
        except asyncio.CancelledError:
            scene.closes = True
            raise
        await scene.it.owner.assign([P0, P1])

    return enter()


@row("GroupConsumer.__aenter__")
async def entering_with_manual_assignment(scene: Scene) -> Awaitable[object]:
    scene.consumer = scene.it.consumer([P0, P1], auto_commit=True)

    async def enter() -> None:
        try:
            await scene.consumer.__aenter__()
        except asyncio.CancelledError:
            scene.closes = True
            raise

    return enter()


@row("GroupConsumer.__aexit__")
async def leaving(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.take(3)
    scene.closes = True
    return scene.consumer.__aexit__(None, None, None)


@row("GroupConsumer.__aexit__")
async def leaving_by_an_error(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.take(3)
    scene.closes = True
    return scene.consumer.__aexit__(ValueError, ValueError(), None)


@row("GroupConsumer.close")
async def closing(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.take(3)
    scene.closes = True
    return scene.consumer.close()


@row("GroupConsumer.close")
async def closing_during_a_poll(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.it.owner.on_partitions_lost([P0, P1])
    poll = asyncio.ensure_future(anext(aiter(scene.consumer)))
    poll.add_done_callback(lambda done: done.cancelled() or done.exception())
    await asyncio.wait([poll], timeout=0.01)
    scene.closes = True
    return scene.consumer.close()


@row("GroupConsumer.commit")
async def committing(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.take(3)
    return scene.consumer.commit()


@row("GroupConsumer.commit")
async def committing_behind_a_pending_commit(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.take(3)
    scene.it.coordinator.commit_errors = ["COORDINATOR_LOAD_IN_PROGRESS"]
    before = asyncio.create_task(scene.consumer.commit({P0: 0}))
    before.add_done_callback(lambda done: done.cancelled() or done.exception())
    await asyncio.sleep(0)
    return scene.consumer.commit({P0: 1}, "m")


@row("GroupConsumer.committed")
async def fetching_committed_offsets(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    return scene.consumer.committed(P0, P1)


@row("GroupConsumer.seek_to_committed")
async def seeking_to_committed_offsets(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    return scene.consumer.seek_to_committed()


@row("GroupConsumer.position")
async def resolving_a_position(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    return scene.consumer.position(P1)


@row("GroupConsumer.position")
async def seeking_to_the_start(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    scene.consumer.seek(P0, "earliest")
    return scene.consumer.position(P0)


@row("GroupConsumer.lag")
async def computing_the_lag(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    return scene.consumer.lag()


@row("GroupConsumer.offsets_for_times")
async def listing_offsets_for_times(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    return scene.consumer.offsets_for_times({P0: 5, P1: 7})


@row("RecordIteration.__anext__")
async def polling(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    return scene.take(13)


@row("RecordIteration.__anext__")
async def polling_before_the_assignment(scene: Scene) -> Awaitable[object]:
    await scene.consumer.__aenter__()

    async def read() -> None:
        coming = asyncio.create_task(scene.it.owner.assign([P0, P1]))
        try:
            await scene.take(13)
        finally:
            await coming

    return read()


@row("GroupConsumer.poll")
async def polling_within_a_timeout(scene: Scene) -> Awaitable[object]:
    await scene.enter()

    async def read() -> None:
        for _ in range(3):
            for (_, partition), records in (await scene.consumer.poll(100, 4)).items():
                scene.found += [(partition, record.offset) for record in records]

    return read()


@row("GroupConsumer.run")
async def handling_in_order(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    return scene.consumer.run(scene.handler(9), stop_on=())


@row("GroupConsumer.run")
async def handling_in_any_order_with_retries(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    retries = Retries(9, backoff_ms=1)
    return scene.consumer.run(scene.handler(9, fails=3), order="none", retries=retries)


@row("GroupConsumer.run")
async def handling_cancelled_at_the_end(scene: Scene) -> Awaitable[object]:
    await scene.enter()

    async def handle(record: Record) -> None:
        if record.partition == 0:
            await asyncio.Event().wait()
        scene.found.append((record.partition, record.offset))
        if record.offset == 2:
            raise Stop(done=True)

    return scene.consumer.run(handle, drain_timeout_ms=0)


@row("GroupConsumer.run_batches")
async def handling_batches(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    fails = True

    async def handle(records: list[Record]) -> dict[int, Exception] | None:
        nonlocal fails
        await asyncio.sleep(0)
        failed: dict[int, Exception] | None = {0: ValueError()} if fails else None
        fails = False
        found = records[1:] if failed else records
        scene.found += [(record.partition, record.offset) for record in found]
        if len(scene.found) >= 9:
            raise Stop(done=True)
        return failed

    retries = Retries(9, backoff_ms=1)
    return scene.consumer.run_batches(handle, batch_size=3, retries=retries, stop_on=())


@row("RebalanceListenerInvoker.assign")
async def being_assigned(scene: Scene) -> Awaitable[object]:
    await scene.consumer.__aenter__()

    async def assign() -> None:
        try:
            await scene.it.owner.assign([P0, P1])
        except asyncio.CancelledError:
            scene.found.clear()
            raise

    return assign()


def revoked_by_member(scene: Scene, work: Awaitable[object]) -> Awaitable[object]:
    async def revoke() -> None:
        """Awaits `work` as the group membership does, and then assigns both partitions again.

        If `work` is cancelled, reports the partitions as lost.
        """
        owner = scene.it.owner
        try:
            await work
        except asyncio.CancelledError:
            await owner.on_partitions_lost(owner.owned_partitions())
            raise
        finally:
            while scene.consumer._committer._in_flight:  # noqa: ASYNC110 - a property, and no event
                await asyncio.sleep(0.001)
            scene.found = [
                found
                for found in scene.found
                if found[1] < scene.it.coordinator.offsets.get(("t", found[0]), (0, -1, ""))[0]
            ]
            await owner.assign([P0, P1])

    return revoke()


@row("RebalanceListenerInvoker.revoke")
async def revoking(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.take(3)
    return revoked_by_member(scene, scene.it.owner.revoke([P0, P1], 0.0))


async def ended(task: asyncio.Future[Any]) -> None:
    """Waits until `task` has ended, even if the wait is cancelled meanwhile.

    If the wait was cancelled, raises CancelledError once `task` has ended.
    """
    cancelled = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


@row("RebalanceListenerInvoker.revoke")
async def revoking_during_run(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    running = asyncio.ensure_future(scene.consumer.run(scene.handler(9), order="key"))
    await asyncio.wait([running], timeout=0.01)

    async def revoke() -> None:
        try:
            await revoked_by_member(scene, scene.it.owner.revoke([P0, P1], FAR))
        finally:
            running.cancel()
            await ended(running)

    return revoke()


@row("RebalanceListenerInvoker.on_partitions_lost")
async def losing(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.take(3)
    return revoked_by_member(scene, scene.it.owner.on_partitions_lost([P0, P1]))


@row("RebalanceListenerInvoker.close")
async def ending(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.take(3)
    scene.closes = True
    return scene.it.owner.close(FAR)


async def callback(partitions: object) -> None:
    """Yields to the event loop once, so that the callback can be cancelled."""
    await asyncio.sleep(0)


async def play(prepare: Row, cancel: CancelAt) -> None:
    async with group(TEN, THREE) as it:
        consumer = it.consumer(on_assigned=callback, on_revoked=callback, on_lost=callback)
        scene = Scene(it, consumer)
        work = await prepare(scene)
        try:
            await cancel.run(work)
            if not scene.closes:
                await reads_on(scene)
        finally:
            await scene.consumer.close()
        if scene.consumer is consumer:
            assert it.member.calls[-1] == "close"
        for place, (offset, *_) in it.coordinator.offsets.items():
            handed_out = [at for partition, at in scene.found if partition == place[1]]
            assert offset <= max(handed_out, default=-1) + 1


async def reads_on(scene: Scene) -> None:
    """Checks that each remaining record is returned once, and commits all records."""
    records = scene.iteration or aiter(scene.consumer)
    while len(scene.found) < len(ALL):
        record = await asyncio.wait_for(anext(records), 5)
        scene.found.append((record.partition, record.offset))
    assert len(set(scene.found)) == len(scene.found)
    assert set(scene.found) == ALL
    await scene.consumer.commit({P0: 10, P1: 3})
    offsets = scene.it.coordinator.offsets
    assert {place: its[0] for place, its in offsets.items()} == {P0: 10, P1: 3}


#: `make quick` has every third row.
CASES = named_rows(ROWS, 3, pytest.mark.slow)


@pytest.mark.parametrize(
    "late",
    [
        pytest.param(False, id="waiting"),
        pytest.param(True, id="done", marks=pytest.mark.exhaustive),
    ],
)
@pytest.mark.parametrize("prepare", CASES)
def test_cancellation_leaves_no_task_and_loses_no_record(prepare: Row, late: bool) -> None:
    assert points(lambda cancel: play(prepare, cancel), late=late) > 0


def test_every_coroutine_has_a_row() -> None:
    special = ("__aenter__", "__aexit__")
    found = {
        f"{owner.__name__}.{name}"
        for owner in (GroupConsumer, RebalanceListenerInvoker)
        for name, member in inspect.getmembers(owner)
        if (not name.startswith("_") and inspect.iscoroutinefunction(member)) or name in special
    }
    assert found == set(ROWS) - {"RecordIteration.__anext__"}
