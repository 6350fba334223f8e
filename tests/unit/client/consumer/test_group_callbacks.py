"""Tests the order and the errors of rebalance callbacks, and which calls a callback may make."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kproto import ConfigurationError
from kproto.client.consumer.group_consumer import GroupConsumer
from kproto.testing.clock import ManualClock
from tests.unit.client.consumer.grouped import FAR, QUICK, group
from tests.unit.client.consumer.test_group_reading import P0, P1, TEN, THREE, quiet, take


class RecordedCalls:
    """Records the calls of the three rebalance callbacks, which are coroutine functions."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, Any]] = []
        self.do: Callable[[str], Any] | None = None

    def callbacks(self) -> dict[str, Any]:
        def callback(name: str) -> Any:
            async def call(partitions: Any) -> None:
                self.lines.append((name, partitions))
                if self.do is not None:
                    await self.do(name)

            return call

        return {name: callback(name) for name in ("on_assigned", "on_revoked", "on_lost")}


async def test_callbacks_run_once_and_in_order() -> None:
    calls = RecordedCalls()
    async with group(TEN, THREE) as it:
        async with it.consumer(**calls.callbacks()):
            await it.owner.assign([P1, P0])
            await it.owner.assign([])
            await it.owner.revoke([P1], FAR)
            await it.owner.on_partitions_lost([P0])
            await it.owner.assign([P1])
        assert calls.lines == [
            ("on_assigned", [P0, P1]),
            ("on_revoked", [P1]),
            ("on_lost", [P0]),
            ("on_assigned", [P1]),
            ("on_revoked", [P1]),  # close revokes the partition
        ]


async def test_plain_on_revoked_is_called_for_lost_partitions() -> None:
    lines: list[Any] = []
    async with group(TEN) as it, it.consumer(on_revoked=lines.append) as consumer:
        await it.owner.assign([P0])
        await it.owner.on_partitions_lost([P0])
        assert lines == [[P0]]
        await quiet(aiter(consumer))


async def test_records_wait_for_the_end_of_on_assigned() -> None:
    calls = RecordedCalls()
    over = asyncio.Event()
    calls.do = lambda name: over.wait()
    async with group(TEN) as it, it.consumer(**calls.callbacks()) as consumer:
        assigning = asyncio.create_task(it.owner.assign([P0]))
        records = aiter(consumer)
        await quiet(records)
        assert calls.lines == [("on_assigned", [P0])]
        over.set()
        await assigning
        assert await take(records, 1) == [(0, 0)]


async def test_on_assigned_can_seek_and_pause() -> None:
    async with group(TEN, THREE) as it:
        consumers: list[GroupConsumer] = []

        async def on_assigned(partitions: list[tuple[str, int]]) -> None:
            (consumer,) = consumers
            assert await consumer.position(P1) == 0
            assert await consumer.committed(P1) == {P1: None}
            consumer.seek(P0, 8)
            consumer.pause(P1)

        async with it.consumer(on_assigned=on_assigned) as consumer:
            consumers.append(consumer)
            await it.owner.assign([P0, P1])
            assert await take(aiter(consumer), 2) == [(0, 8), (0, 9)]
            assert consumer.paused == {P1}


async def test_on_revoked_can_commit_offsets() -> None:
    async with group(TEN, THREE) as it:
        consumers: list[GroupConsumer] = []

        async def on_revoked(partitions: list[tuple[str, int]]) -> None:
            (consumer,) = consumers
            assert partitions == [P0]
            await consumer.commit({P0: 2}, "flushed")
            assert it.coordinator.offsets[P0] == (2, -1, "flushed")
            await asyncio.create_task(consumer.commit())
            assert it.coordinator.offsets[P0] == (3, -1, "")

        async with it.consumer(on_revoked=on_revoked, auto_commit=False) as consumer:
            consumers.append(consumer)
            await it.owner.assign([P0])
            records = aiter(consumer)
            await take(records, 3)
            revoking = asyncio.create_task(it.owner.revoke([P0], FAR))
            await quiet(records)
            await revoking
            assert it.coordinator.committed == [{P0: 2}, {P0: 3}]
        assert len(it.coordinator.commits) == 2


async def test_on_revoked_can_commit_during_close() -> None:
    async with group(TEN) as it:
        consumers: list[GroupConsumer] = []

        async def on_revoked(partitions: list[tuple[str, int]]) -> None:
            await consumers[0].commit()

        async with it.consumer(on_revoked=on_revoked, auto_commit=False) as consumer:
            consumers.append(consumer)
            await it.owner.assign([P0])
            await take(aiter(consumer), 3)
        assert it.coordinator.committed == [{P0: 3}]


async def test_on_revoked_waits_for_the_record_in_flight() -> None:
    calls = RecordedCalls()
    async with group(TEN) as it, it.consumer(**calls.callbacks()) as consumer:
        await it.owner.assign([P0])
        records = aiter(consumer)
        await take(records, 3)
        revoking = asyncio.create_task(it.owner.revoke([P0], FAR))
        await asyncio.wait([revoking], timeout=0.03)
        assert calls.lines == [("on_assigned", [P0])]
        await quiet(records)
        await revoking
        assert calls.lines[1:] == [("on_revoked", [P0])]


@pytest.mark.parametrize("cancelled_during", ["a record in flight", "on_revoked"])
async def test_cancelled_revocation_is_completed_by_the_next(cancelled_during: str) -> None:
    """Unsubscribing, for example, cancels a revocation.

    The partitions stay owned, and the next revocation commits and revokes them.
    """
    calls = RecordedCalls()
    async with group(TEN) as it, it.consumer(**calls.callbacks()) as consumer:
        await it.owner.assign([P0])
        records = aiter(consumer)
        await take(records, 3)
        begun = asyncio.Event()

        async def flush(name: str) -> None:
            begun.set()
            if len(calls.lines) == 2:
                await asyncio.Event().wait()

        calls.do = flush
        revoking = asyncio.create_task(it.owner.revoke([P0], FAR))
        if cancelled_during == "on_revoked":
            poll = asyncio.create_task(anext(records))
            await begun.wait()
        else:
            await asyncio.sleep(0)
        revoking.cancel()
        await asyncio.wait([revoking])
        assert it.owner.owned_partitions() == [P0]
        if cancelled_during != "on_revoked":
            calls.do = None
            poll = asyncio.create_task(anext(records))
        await it.owner.revoke([P0], FAR)
        assert calls.lines[-1] == ("on_revoked", [P0])
        assert it.owner.owned_partitions() == []
        assert it.coordinator.committed == [{P0: 3}]
        await it.owner.assign([P0])
        assert (await poll).offset == 3


async def test_completed_on_revoked_is_not_called_again() -> None:
    """The revocation is cancelled after on_revoked, while the last commit is in flight."""
    calls = RecordedCalls()
    async with group(TEN) as it, it.consumer(**calls.callbacks()) as consumer:
        await it.owner.assign([P0])
        records = aiter(consumer)
        await take(records, 3)
        it.coordinator.answers.clear()
        revoking = asyncio.create_task(it.owner.revoke([P0], FAR))
        await asyncio.sleep(0)
        poll = asyncio.create_task(anext(records))
        await it.broker.until(lambda: bool(it.coordinator.commits))
        revoking.cancel()
        await asyncio.wait([revoking])
        it.coordinator.answers.set()
        await it.owner.revoke([P0], FAR)
        assert calls.lines[1:] == [("on_revoked", [P0])]
        await it.owner.assign([P0])
        assert (await poll).offset == 3
        again = asyncio.create_task(it.owner.revoke([P0], FAR))
        await quiet(records)
        await again
        assert calls.lines[2:] == [("on_assigned", [P0]), ("on_revoked", [P0])]


@pytest.mark.parametrize("next_is", ["on_assigned", "the end"])
async def test_cancelled_on_lost_is_called_again(next_is: str) -> None:
    """The second call of on_lost precedes the next on_assigned, or happens during close."""
    calls = RecordedCalls()
    async with group(THREE) as it:
        async with it.consumer(**calls.callbacks()):
            await it.owner.assign([P0])
            begun = asyncio.Event()

            async def work(name: str) -> None:
                begun.set()
                await asyncio.Event().wait()

            calls.do = work
            losing = asyncio.create_task(it.owner.on_partitions_lost([P0]))
            await begun.wait()
            losing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await losing
            calls.do = None
            if next_is == "on_assigned":
                await it.owner.assign([P0])
        again = [("on_assigned", [P0]), ("on_revoked", [P0])] if next_is == "on_assigned" else []
        assert calls.lines[1:] == [("on_lost", [P0]), ("on_lost", [P0]), *again]


async def test_poll_raises_the_error_of_a_callback() -> None:
    def on_assigned(partitions: object) -> None:
        raise ZeroDivisionError("mine")

    async with group(TEN) as it, it.consumer(on_assigned=on_assigned) as consumer:
        records = aiter(consumer)
        poll = asyncio.create_task(anext(records))
        await asyncio.sleep(0)
        await it.owner.assign([P0])
        with pytest.raises(ZeroDivisionError) as raised:
            await poll
        assert raised.value.__notes__ == ["raised by on_assigned for t[0]"]
        assert await take(records, 2) == [(0, 0), (0, 1)]  # the partition is assigned nevertheless


async def test_failed_on_revoked_prevents_the_commit() -> None:
    def on_revoked(partitions: object) -> None:
        raise ZeroDivisionError("mine")

    async with group(TEN) as it, it.consumer(on_revoked=on_revoked) as consumer:
        await it.owner.assign([P0])
        records = aiter(consumer)
        await take(records, 3)
        revoking = asyncio.create_task(it.owner.revoke([P0], FAR))
        await asyncio.sleep(0)
        with pytest.raises(ZeroDivisionError):
            await anext(records)
        await revoking
        assert it.coordinator.commits == []


async def test_close_raises_an_unreported_callback_error(caplog: pytest.LogCaptureFixture) -> None:
    def on_revoked(partitions: object) -> None:
        raise ZeroDivisionError("mine")

    async with group(TEN) as it:
        consumer = await it.consumer(on_revoked=on_revoked).__aenter__()
        await it.owner.assign([P0])
        with pytest.raises(ZeroDivisionError):
            await consumer.__aexit__(None, None, None)
        assert it.member.calls[-2:] == [("leave", True), "close"]
        consumer = await it.consumer(on_revoked=on_revoked).__aenter__()
        await it.owner.assign([P0])
        with caplog.at_level(logging.WARNING):
            await consumer.__aexit__(ValueError, ValueError(), None)
        assert "not raised: mine" in caplog.text
        assert it.member.calls[-2:] == [("leave", True), "close"]


async def test_callback_cannot_close_or_poll_its_consumer() -> None:
    async with group(TEN) as it:
        faults: list[str] = []
        consumers: list[GroupConsumer] = []

        async def on_assigned(partitions: object) -> None:
            for work in (consumers[0].close(), anext(aiter(consumers[0]))):
                with pytest.raises(ConfigurationError, match="a callback cannot") as raised:
                    await work
                faults.append(str(raised.value))

        async with it.consumer(on_assigned=on_assigned) as consumer:
            consumers.append(consumer)
            await it.owner.assign([P0])
            assert len(faults) == 2
            assert await take(aiter(consumer), 1) == [(0, 0)]


async def test_revocation_waits_for_the_callback_of_an_assignment() -> None:
    calls = RecordedCalls()
    over = asyncio.Event()
    calls.do = lambda name: over.wait()
    async with group(TEN, THREE) as it, it.consumer(**calls.callbacks()) as consumer:
        assigning = asyncio.create_task(it.owner.assign([P0]))
        await asyncio.sleep(0)
        revoking = asyncio.create_task(it.owner.revoke([P0], FAR))
        await asyncio.wait([revoking], timeout=0.03)
        assert calls.lines == [("on_assigned", [P0])]
        assert consumer.assignment == frozenset()
        over.set()
        await asyncio.gather(assigning, revoking)
        assert calls.lines == [("on_assigned", [P0]), ("on_revoked", [P0])]
        await quiet(aiter(consumer))


async def test_close_ends_the_wait_of_a_revocation_for_a_record() -> None:
    async with group(TEN) as it:
        async with it.consumer() as consumer:
            await it.owner.assign([P0])
            records = aiter(consumer)
            await take(records, 3)
            revoking = asyncio.create_task(it.owner.revoke([P0], FAR))
            await asyncio.sleep(0)
            await consumer.close()
            await revoking
        assert it.coordinator.committed == [{P0: 2}]


async def test_stop_async_iteration_of_a_callback_becomes_runtime_error() -> None:
    async def on_assigned(partitions: Any) -> None:
        await anext(aiter(Empty()))

    async with group(TEN) as it, it.consumer(on_assigned=on_assigned) as consumer:
        await it.owner.assign([P0])
        with pytest.raises(RuntimeError, match="on_assigned raised StopAsyncIteration"):
            await anext(aiter(consumer))


class Empty:
    """An async iterator without items."""

    def __aiter__(self) -> Empty:
        return self

    async def __anext__(self) -> None:
        raise StopAsyncIteration


async def test_nothing_is_committed_after_a_callback_that_swallows_its_cancellation() -> None:
    """The lost membership cancels the callback: other members may own the partitions by now."""

    async def on_revoked(partitions: Any) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)

    async with group(TEN) as it, it.consumer(on_revoked=on_revoked) as consumer:
        await it.owner.assign([P0])
        await take(aiter(consumer), 3)
        consumer._subscriptions.poll.on_poll(0.0)
        revoking = asyncio.create_task(it.owner.revoke([P0], FAR))
        await asyncio.sleep(0.01)
        revoking.cancel()
        await asyncio.wait([revoking])
        assert revoking.cancelled()
        await it.owner.on_partitions_lost([P0])
        assert it.coordinator.commits == []


async def test_close_after_an_error_waits_for_a_callback_at_most_error_flush_ms(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def on_assigned(partitions: Any) -> None:
        await asyncio.Event().wait()

    clock = ManualClock()
    settings = replace(QUICK, error_flush_ms=200)
    async with group(TEN, clock=clock, settings=settings) as it:
        consumer = await it.consumer(on_assigned=on_assigned).__aenter__()
        assigning = asyncio.create_task(it.owner.assign([P0]))
        await asyncio.sleep(0)
        ending = asyncio.create_task(consumer.__aexit__(ValueError, ValueError(), None))
        with caplog.at_level(logging.WARNING):
            await clock.advance(199)
            assert not ending.done()
            await clock.advance(2)
            await ending
        assert "t[0]: revoked without on_revoked" in caplog.text
        assert it.member.calls == ["start", ("leave", True), "close"]
        assigning.cancel()
        await asyncio.wait([assigning])


async def test_callbacks_run_for_manual_assignment() -> None:
    calls: list[tuple[str, Any]] = []
    async with group(TEN) as it:
        consumer = it.consumer(
            [P0],
            on_assigned=lambda partitions: calls.append(("came", partitions)),
            on_revoked=lambda partitions: calls.append(("goes", partitions)),
        )
        async with consumer:
            assert calls == [("came", [P0])]
        assert calls == [("came", [P0]), ("goes", [P0])]


@pytest.mark.parametrize("name", ["on_assigned", "on_revoked", "on_lost"])
async def test_callback_that_is_not_callable_is_refused(name: str) -> None:
    async with group(TEN) as it:
        with pytest.raises(ConfigurationError, match=f"{name} is 'print'"):
            it.consumer(**{name: "print"})
