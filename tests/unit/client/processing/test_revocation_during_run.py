"""Tests revocation and loss of partitions while `run` processes their records."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from kproto import GroupConsumer, Record, Retries, RunSummary, Stop
from kproto.testing.clock import ManualClock
from tests.unit.client.consumer.grouped import FAR, Group, group
from tests.unit.client.consumer.test_group_reading import P0, P1, TEN, THREE


@dataclass
class Handled:
    """A running `consumer.run`, whose handler waits for the event of each record in `gates`.

    `begun`, `ended` and `cancelled` are (partition, offset) pairs of handler calls, in order.
    """

    it: Group
    consumer: GroupConsumer
    begun: list[tuple[int, int]] = field(default_factory=list)
    ended: list[tuple[int, int]] = field(default_factory=list)
    cancelled: list[tuple[int, int]] = field(default_factory=list)
    gates: dict[tuple[int, int], asyncio.Event] = field(default_factory=dict)
    fails: set[tuple[int, int]] = field(default_factory=set)
    running: asyncio.Task[RunSummary] | None = None

    def gate(self, partition: int, offset: int) -> asyncio.Event:
        return self.gates.setdefault((partition, offset), asyncio.Event())

    async def handle(self, record: Record) -> None:
        key = (record.partition, record.offset)
        self.begun.append(key)
        if key in self.gates:
            try:
                await self.gates[key].wait()
            except asyncio.CancelledError:
                self.cancelled.append(key)
                raise
        if key in self.fails:
            raise ValueError
        self.ended.append(key)

    async def until(self, *begun: tuple[int, int]) -> None:
        """Waits until the handler has been called for these records."""
        while not set(begun) <= set(self.begun):  # noqa: ASYNC110 - a list, and no event
            await asyncio.sleep(0)

    @property
    def committed(self) -> dict[Any, int]:
        return {tp: its[0] for tp, its in self.it.coordinator.offsets.items()}


@asynccontextmanager
async def handled(
    *partitions: list[bytes], gates: list[tuple[int, int]], given: Any = None, **settings: Any
) -> AsyncIterator[Handled]:
    """Yields a running `consumer.run` over all partitions.

    The handler waits at each record in `gates`.
    """
    async with group(*partitions) as it, it.consumer(**settings) as consumer:
        await it.owner.assign([("t", at) for at in range(len(partitions))])
        scene = Handled(it, consumer)
        for each in gates:
            scene.gate(*each)
        scene.running = asyncio.create_task(consumer.run(scene.handle, **(given or {})))
        await scene.until(*gates)
        try:
            yield scene
        finally:
            for gate in scene.gates.values():
                gate.set()
            if not scene.running.done():
                scene.running.cancel()
            await asyncio.wait([scene.running])


@pytest.mark.parametrize("order", ["partition", "key", "none"])
async def test_revocation_waits_for_handlers_in_flight_and_commits(order: Any) -> None:
    gates = [(0, 4)]
    async with handled(TEN, THREE, gates=gates, given={"order": order, "workers": 1}) as it:
        revoking = asyncio.create_task(it.it.owner.revoke([P0], FAR))
        await it.it.client.refresh(["t"])
        assert not revoking.done()
        assert it.committed == {}
        it.gate(0, 4).set()
        await revoking
        assert it.committed[P0] == 5
        await it.until((1, 2))
        assert [offset for partition, offset in it.ended if partition == 0] == [0, 1, 2, 3, 4]
        assert it.consumer.assignment == {P1}


async def test_revocation_finishes_records_before_a_processed_one() -> None:
    """While the first record is incomplete, the processed records after it stay uncommitted."""
    async with handled(TEN, gates=[(0, 0)], given={"order": "none", "workers": 2}) as it:
        await it.until((0, 9))
        await asyncio.sleep(0)
        revoking = asyncio.create_task(it.it.owner.revoke([P0], FAR))
        await it.it.client.refresh(["t"])
        assert not revoking.done()
        it.gate(0, 0).set()
        await revoking
        assert it.committed[P0] == 10


async def test_revocation_cancels_the_handler_at_its_deadline() -> None:
    async with handled(TEN, gates=[(0, 4)]) as it:
        await it.it.owner.revoke([P0], it.it.client._view.clock.monotonic() + 0.02)
        assert it.committed[P0] == 4
        await asyncio.sleep(0)
        assert it.cancelled == [(0, 4)]


@pytest.mark.parametrize("cancel_lost", [True, False])
async def test_handler_of_a_lost_partition_has_no_effect(cancel_lost: bool) -> None:
    given = {"cancel_lost": cancel_lost}
    async with handled(TEN, THREE, gates=[(0, 4), (1, 1)], given=given) as it:
        await it.it.owner.on_partitions_lost([P0])
        assert it.it.owner.owned_partitions() == [P1]
        await it.it.client.refresh(["t"])
        assert it.cancelled == ([(0, 4)] if cancel_lost else [])
        it.gate(0, 4).set()
        it.gate(1, 1).set()
        await it.until((1, 2))
        await it.consumer.commit()
        assert P0 not in it.committed
        assert (0, 5) not in it.begun


async def test_reassigned_partition_starts_at_its_commit_despite_an_old_handler() -> None:
    async with handled(TEN, gates=[(0, 4)], given={"cancel_lost": False, "workers": 1}) as it:
        it.it.coordinator.offsets[P0] = (2, -1, "")
        await it.it.owner.on_partitions_lost([P0])
        await it.it.owner.assign([P0])
        await it.it.client.refresh(["t"])
        before = len(it.begun)
        it.gate(0, 4).set()
        await it.until((0, 9))
        assert it.begun[before:] == [(0, at) for at in range(2, 10)]
        await it.consumer.commit()
        assert it.committed[P0] == 10


async def test_poll_interval_is_exceeded_by_the_slowest_handler() -> None:
    """One hanging handler exceeds max_poll_interval_ms, although other handlers finish in time."""
    clock = ManualClock()
    async with (
        group(TEN, [b"x"] * 30, clock=clock) as it,
        it.consumer(max_poll_interval_ms=500) as consumer,
    ):
        await it.owner.assign([P0, P1])
        counts = [0, 0]

        async def handle(record: Record) -> None:
            counts[record.partition] += 1
            if (record.partition, record.offset) == (0, 4):
                await asyncio.Event().wait()
            elif record.partition == 1:
                await clock.sleep(0.05)

        running = asyncio.create_task(consumer.run(handle, drain_timeout_ms=0))
        while not counts[1] or counts[0] < 5:  # noqa: ASYNC110 - a count
            await asyncio.sleep(0)
        polls = it.member.polls
        for at in range(10):
            assert not it.owner.poll_interval_exceeded(clock.monotonic())
            await clock.advance(50)
            while counts[1] < at + 2:  # noqa: ASYNC110 - a count
                await asyncio.sleep(0)
        assert not it.owner.poll_interval_exceeded(clock.monotonic())
        await clock.advance(1)
        assert it.owner.poll_interval_exceeded(clock.monotonic())
        # The member then leaves, and does not rejoin before the handler has ended.
        await it.owner.on_partitions_lost([P0, P1])
        assert not it.owner.poll_interval_exceeded(clock.monotonic())
        assert it.member.polls == polls
        while it.member.polls == polls:  # noqa: ASYNC110 - a count
            await asyncio.sleep(0)
        running.cancel()
        await clock.advance(1)
        await asyncio.wait([running])


@pytest.mark.parametrize("order", ["partition", "key", "none"])
async def test_record_waiting_for_a_retry_does_not_block_a_revocation(
    order: Any,
) -> None:
    """No later record of the partition is processed, so the retry can be left to the next owner."""
    async with group(TEN) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        failed = asyncio.Event()

        async def handle(record: Record) -> None:
            if record.offset == 3:
                failed.set()
                raise ValueError

        retries = Retries(5, backoff_ms=1_000_000, backoff_max_ms=1_000_000)
        running = asyncio.create_task(
            consumer.run(handle, retries=retries, order=order, max_offset_gap=1)
        )
        await failed.wait()
        await it.owner.revoke([P0], FAR)
        assert it.coordinator.committed == [{P0: 3}]
        running.cancel()
        await asyncio.wait([running])


async def test_run_polls_again_after_the_last_handler_of_lost_partitions() -> None:
    given = {"cancel_lost": False}
    async with handled(TEN, THREE, gates=[(0, 4), (1, 1)], given=given) as it:
        await it.it.owner.on_partitions_lost([P0, P1])
        polls = it.it.member.polls
        it.gate(0, 4).set()
        await it.it.client.refresh(["t"])
        assert (0, 4) in it.ended
        assert it.it.member.polls == polls
        it.gate(1, 1).set()
        await it.it.client.refresh(["t"])
        assert it.it.member.polls > polls


async def test_failure_in_a_lost_partition_does_not_end_run() -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        begun, lost = asyncio.Event(), asyncio.Event()

        async def handle(record: Record) -> None:
            begun.set()
            await lost.wait()
            raise ValueError

        running = asyncio.create_task(consumer.run(handle, retries=0, cancel_lost=False))
        await begun.wait()
        await it.owner.on_partitions_lost([P0])
        lost.set()
        for _ in range(3):
            await it.client.refresh(["t"])
        assert not running.done()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


async def test_no_handler_starts_while_the_session_may_have_expired() -> None:
    """After a suspend of the machine, a heartbeat must confirm the session first.

    A worker processes the first record alone, and checks the session before the second record.
    """
    async with handled(TEN, gates=[(0, 0)], given={"workers": 1}) as it:
        it.it.member.assignment_valid_until = 0.0
        it.gate(0, 0).set()
        await it.it.client.refresh(["t"])
        await asyncio.sleep(0.02)
        assert it.begun == [(0, 0)]
        it.it.member.assignment_valid_until = float("inf")
        await it.until((0, 9))


async def test_poll_error_ends_run_and_processed_records_are_committed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR)

    def on_revoked(partitions: list[tuple[str, int]]) -> None:
        if P1 in partitions:
            raise OSError("no disk")

    async with handled(TEN, THREE, gates=[(0, 4), (1, 2)], on_revoked=on_revoked) as it:
        revoking = asyncio.create_task(it.it.owner.revoke([P1], FAR))
        it.gate(1, 2).set()
        await revoking
        it.gate(0, 4).set()
        assert it.running is not None
        with pytest.raises(OSError, match="no disk"):
            await it.running
        assert it.committed[P0] >= 5


async def test_stop_during_a_revocation_commits_earlier_records() -> None:
    async with group(TEN, THREE) as it, it.consumer() as consumer:
        await it.owner.assign([P0, P1])
        revoking: list[asyncio.Task[None]] = []

        async def handle(record: Record) -> None:
            if (record.partition, record.offset) == (0, 4):
                revoking.append(asyncio.create_task(it.owner.revoke([P0, P1], FAR)))
                await asyncio.sleep(0)
                raise Stop

        await consumer.run(handle)
        await revoking[0]
        offsets = {tp: its[0] for tp, its in it.coordinator.offsets.items()}
        assert offsets[P0] == 4


@pytest.mark.parametrize("order", ["partition", "key", "none"])
@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_failed_record_is_not_committed_when_run_ends_during_a_revocation(
    order: Any, is_cancelled: bool
) -> None:
    """The revocation can commit offsets of the partition after `run` has ended."""
    over = asyncio.Event()

    async def on_revoked(partitions: object) -> None:
        await over.wait()

    async with group(TEN) as it, it.consumer(on_revoked=on_revoked) as consumer:
        await it.owner.assign([P0])
        begun, goes_on = asyncio.Event(), asyncio.Event()

        async def handle(record: Record) -> None:
            if record.offset == 4:
                begun.set()
                await goes_on.wait()
                raise ValueError

        running = asyncio.create_task(
            consumer.run(handle, order=order, retries=0, max_offset_gap=3)
        )
        await begun.wait()
        revoking = asyncio.create_task(it.owner.revoke([P0], FAR))
        await it.client.refresh(["t"])
        if is_cancelled:
            running.cancel()
            await asyncio.sleep(0.01)  # cancellations in consecutive iterations count as one
            running.cancel()
        else:
            goes_on.set()
        with pytest.raises(asyncio.CancelledError if is_cancelled else ValueError):
            await running
        over.set()
        await revoking
        assert it.coordinator.offsets[P0][0] == 4


async def test_revocation_keeps_records_processed_after_a_waiting_retry() -> None:
    retries = Retries(1, backoff_ms=3_600_000)
    given = {"order": "none", "workers": 2, "retries": retries}
    async with handled(TEN, gates=[(0, 0)], given=given) as it:
        it.fails = {(0, 3)}
        it.gate(0, 0).set()
        await it.until(*((0, at) for at in range(10)))
        await it.it.owner.revoke([P0], FAR)
        assert it.committed[P0] == 3
        begun = len(it.begun)
        it.fails = set()
        await it.it.owner.assign([P0])
        await it.until((0, 3))
        while len(it.begun) == begun:  # noqa: ASYNC110 - a list, and no event
            await asyncio.sleep(0)
        await it.consumer.commit()
        assert it.begun[begun:] == [(0, 3)]
        assert it.committed[P0] == 10
