"""Tests commits that are queued or retried while partitions are revoked or the consumer closes."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any

import pytest

from kproto.client.commits.errors import CommitFailedError
from kproto.testing.clock import ManualClock
from tests.unit.client.consumer.grouped import FAR, QUICK, Group, group
from tests.unit.client.consumer.test_group_reading import P0, P1, TEN, THREE, take

NO_AUTO_COMMIT: dict[str, Any] = {"auto_commit": False}


async def commit_in_flight(it: Group, count: int = 1) -> None:
    """Waits until the broker has received `count` commits; the last commit is not answered yet."""
    await it.broker.until(lambda: len(it.coordinator.commits) == count)


async def test_queued_commit_skips_partitions_that_were_lost_meanwhile() -> None:
    """The next owner may have committed a later offset, which the queued commit would overwrite."""
    async with group(TEN, THREE) as it, it.consumer(**NO_AUTO_COMMIT) as consumer:
        await it.owner.assign([P0, P1])
        it.coordinator.answers.clear()
        first = asyncio.create_task(consumer.commit({P1: 1}))
        await commit_in_flight(it)
        second = asyncio.create_task(consumer.commit({P0: 5, P1: 2}))
        await asyncio.sleep(0)
        await it.owner.on_partitions_lost([P0])
        await it.owner.assign([P0])
        it.coordinator.answers.set()
        await first
        with pytest.raises(CommitFailedError, match=r"t\[0\]: not assigned .* any more"):
            await second
        assert it.coordinator.committed == [{P1: 1}, {P1: 2}]


async def test_revocation_waits_for_a_commit_of_the_user() -> None:
    async with group(TEN) as it, it.consumer(**NO_AUTO_COMMIT) as consumer:
        await it.owner.assign([P0])
        record = await anext(aiter(consumer))
        it.coordinator.answers.clear()
        revoking = asyncio.create_task(it.owner.revoke([P0], FAR))
        await asyncio.sleep(0)
        committing = asyncio.create_task(consumer.commit(record))
        await commit_in_flight(it)
        await asyncio.wait([revoking], timeout=0.05)
        assert not revoking.done()
        it.coordinator.answers.set()
        await committing
        await revoking
        assert it.coordinator.committed == [{P0: 1}]


async def test_revocation_stops_waiting_for_a_commit_after_5_s() -> None:
    clock = ManualClock()
    settings = replace(QUICK, api_timeout_ms=100_000)
    async with (
        group(TEN, clock=clock, settings=settings) as it,
        it.consumer(**NO_AUTO_COMMIT) as consumer,
    ):
        await it.owner.assign([P0])
        it.coordinator.answers.clear()
        committing = asyncio.create_task(consumer.commit({P0: 1}))
        await commit_in_flight(it)
        revoking = asyncio.create_task(it.owner.revoke([P0], FAR))
        await clock.advance(4_999)
        assert not revoking.done()
        await clock.advance(2)
        await revoking
        it.coordinator.answers.set()
        await committing


async def test_auto_commit_limits_its_wait_for_earlier_commits(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ManualClock()
    settings = replace(QUICK, api_timeout_ms=30_000)
    async with (
        group(TEN, clock=clock, settings=settings) as it,
        it.consumer(auto_commit_interval_ms=1_000) as consumer,
    ):
        await it.owner.assign([P0])
        await take(aiter(consumer), 1)
        it.coordinator.answers.clear()
        committing = asyncio.create_task(consumer.commit({P0: 2}))
        await commit_in_flight(it)
        with caplog.at_level(logging.WARNING):
            await clock.advance(2_001)
        assert "earlier commits were not over within 1000 ms" in caplog.text
        it.coordinator.answers.set()
        await committing
        assert it.coordinator.committed == [{P0: 2}]


async def test_frequent_auto_commit_waits_at_least_1_s_for_its_response(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ManualClock()
    settings = replace(QUICK, api_timeout_ms=30_000)
    async with (
        group(TEN, clock=clock, settings=settings) as it,
        it.consumer(auto_commit_interval_ms=5) as consumer,
    ):
        await it.owner.assign([P0])
        records = aiter(consumer)
        await take(records, 3)
        it.coordinator.answers.clear()
        with caplog.at_level(logging.WARNING):
            await clock.advance(6)
            await commit_in_flight(it)
            await clock.advance(900)
            it.coordinator.answers.set()
            await it.broker.until(lambda: bool(it.coordinator.offsets))
            assert caplog.text == ""
            await take(records, 1)
            it.coordinator.answers.clear()
            await asyncio.sleep(0.02)  # time for the response to arrive
            await clock.advance(6)
            await commit_in_flight(it, 2)
            await clock.advance(1_001)
        assert "t[0]: processed offsets were not committed, and will be retried: " in caplog.text
        assert "no broker answered within 1000 ms\n" in caplog.text
        it.coordinator.answers.set()


@pytest.mark.parametrize("error", [None, asyncio.CancelledError()])
async def test_auto_commit_pending_at_close_is_not_logged(
    error: BaseException | None, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock()
    async with group(TEN, clock=clock) as it:
        consumer = await it.consumer(auto_commit_interval_ms=5).__aenter__()
        await it.owner.assign([P0])
        await take(aiter(consumer), 3)
        it.coordinator.answers.clear()
        with caplog.at_level(logging.WARNING):
            await clock.advance(6)
            await commit_in_flight(it)
            kind = None if error is None else type(error)
            ending = asyncio.create_task(consumer.__aexit__(kind, error, None))
            await clock.advance(500)
            assert not ending.done()
            it.coordinator.answers.set()
            await ending
        assert caplog.text == ""
        assert it.coordinator.offsets[P0][0] == (3 if error is None else 2)


async def test_pending_commit_raises_when_the_consumer_closes() -> None:
    settings = replace(QUICK, error_flush_ms=50)
    async with group(TEN, settings=settings) as it:
        consumer = await it.consumer(**NO_AUTO_COMMIT).__aenter__()
        await it.owner.assign([P0])
        it.coordinator.answers.clear()
        committing = asyncio.create_task(consumer.commit({P0: 1}))
        await commit_in_flight(it)
        await consumer.__aexit__(ValueError, ValueError(), None)
        with pytest.raises(CommitFailedError, match="closed before the broker had answered"):
            await committing


@pytest.mark.parametrize("refusal", [None, "REBALANCE_IN_PROGRESS", "STALE_MEMBER_EPOCH"])
async def test_cancelled_close_does_not_wait_for_a_generation(
    refusal: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """The cancelled close ends the member, so the member gets no further generation."""
    settings = replace(QUICK, api_timeout_ms=30_000)
    async with group(TEN, settings=settings, clock=ManualClock()) as it:
        consumer = await it.consumer().__aenter__()
        await it.owner.assign([P0])
        await take(aiter(consumer), 3)
        closing = asyncio.create_task(consumer.close())
        await asyncio.sleep(0)
        closing.cancel()
        if refusal is None:
            it.member.identity = None
        else:
            it.coordinator.refused[P0] = refusal
        with caplog.at_level(logging.WARNING), pytest.raises(asyncio.CancelledError):
            await closing
        assert it.member.calls == ["start", "close", ("leave", True), "close"]
        assert "t[0]: processed offsets were not committed: " in caplog.text
        assert "an earlier close() was cancelled" in caplog.text


async def test_cancelled_close_repeats_an_interrupted_callback_and_commit() -> None:
    """The cancelled close repeats on_revoked and the commit, and leaves the group.

    A later close does nothing.
    """
    settings = replace(QUICK, error_flush_ms=20, cancelled_close_ms=0)
    called: list[str] = []
    may_return = asyncio.Event()

    async def on_revoked(partitions: Any) -> None:
        called.append("begins")
        await may_return.wait()
        called.append("ends")

    async with group(TEN, settings=settings) as it:
        consumer = await it.consumer(on_revoked=on_revoked).__aenter__()
        await it.owner.assign([P0])
        await take(aiter(consumer), 4)
        for number in (1, 2):
            closing = asyncio.create_task(consumer.close())
            if number == 1:
                await it.broker.until(lambda: called == ["begins"])
                it.coordinator.answers.clear()
                may_return.set()
                closing.cancel()
            await asyncio.wait([closing])
        assert called == ["begins", "begins", "ends"]
        assert it.coordinator.committed == [{P0: 3}]
        assert [each for each in it.member.calls if each != "close"] == ["start", ("leave", True)]


@pytest.mark.parametrize("how", ["consumer", "client"])
async def test_cancelled_close_does_not_disturb_a_close_of_another_task(
    how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The second close waits for the first close, and is cancelled; the first close continues."""
    async with group(TEN) as it:
        consumer = await it.consumer().__aenter__()
        it.client._parts.add_consumer(consumer)
        await it.owner.assign([P0])
        await take(aiter(consumer), 4)
        it.coordinator.answers.clear()
        closing = asyncio.create_task(consumer.close())
        await it.broker.until(lambda: len(it.coordinator.commits) == 1)
        other = asyncio.create_task((consumer if how == "consumer" else it.client).close())
        for _ in range(5):
            await asyncio.sleep(0)
        other.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
        assert it.member.calls == ["start"]
        it.coordinator.answers.set()
        await closing
        await asyncio.wait([other])
        assert other.cancelled()
        assert it.coordinator.committed == [{P0: 3}]
        assert it.member.calls.count(("leave", True)) == 1
    assert "were not committed" not in caplog.text


async def test_close_waits_for_a_commit_of_the_user() -> None:
    async with group(TEN) as it:
        async with it.consumer(**NO_AUTO_COMMIT) as consumer:
            await it.owner.assign([P0])
            it.coordinator.answers.clear()
            committing = asyncio.create_task(consumer.commit({P0: 1}))
            await commit_in_flight(it)
            asyncio.get_running_loop().call_later(0.05, it.coordinator.answers.set)
        assert committing.done()
        await committing


async def test_close_after_an_error_waits_error_flush_ms_for_the_commit(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ManualClock()
    settings = replace(QUICK, api_timeout_ms=30_000, error_flush_ms=200)
    async with group(TEN, settings=settings, clock=clock) as it:
        consumer = await it.consumer().__aenter__()
        await it.owner.assign([P0])
        await take(aiter(consumer), 3)
        it.coordinator.answers.clear()
        ending = asyncio.create_task(consumer.__aexit__(ValueError, ValueError(), None))
        await commit_in_flight(it)
        with caplog.at_level(logging.WARNING):
            await clock.advance(201)
            await ending
        assert "t[0]: processed offsets were not committed" in caplog.text


async def test_seek_does_not_drop_a_pending_commit() -> None:
    """The pending commit keeps its offset; the next commit has the offset of the seek."""
    async with group(TEN) as it, it.consumer(**NO_AUTO_COMMIT) as consumer:
        await it.owner.assign([P0])
        await take(aiter(consumer), 3)
        it.coordinator.refused[P0] = "COORDINATOR_LOAD_IN_PROGRESS"
        committing = asyncio.create_task(consumer.commit())
        await it.broker.until(lambda: len(it.coordinator.commits) > 1)
        consumer.seek(P0, 1)
        it.coordinator.refused.clear()
        await committing
        assert it.coordinator.offsets == {P0: (2, -1, "")}
        await consumer.commit()
        assert it.coordinator.offsets == {P0: (1, -1, "")}
