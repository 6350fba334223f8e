"""Tests polls while partitions are assigned, revoked or lost, or while the consumer closes."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from dataclasses import replace
from typing import Any

import pytest

from kproto import ConfigurationError
from kproto.client.commits.errors import CommitFailedError
from kproto.client.consumer.group_consumer import GroupConsumer
from kproto.client.groups.subscription import Subscription
from kproto.client.observing.hooks import Hooks
from kproto.messages import FetchRequest
from kproto.records import Record
from kproto.testing.clock import ManualClock
from tests.support.steady_time import hold_up
from tests.unit.client.consumer.grouped import FAR, QUICK, Group, group
from tests.unit.client.scripted_log import batch

TEN = [b"%d" % at for at in range(10)]
THREE = [b"b%d" % at for at in range(3)]

P0, P1 = ("t", 0), ("t", 1)


async def take(records: Any, count: int) -> list[tuple[int, int]]:
    """Polls `count` records; returns their partitions and offsets."""
    found = []
    for _ in range(count):
        record = await anext(records)
        found.append((record.partition, record.offset))
    return found


async def quiet(records: Any) -> None:
    """Checks that no record arrives within 0.1 s, the time of several empty fetches.

    Before the wait, `sleep(0)` lets new tasks start: since Python 3.12 `wait_for` runs its
    awaitable without switching to other tasks.
    """
    await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(records), 0.1)


async def test_assigned_partitions_start_at_the_commit_or_the_beginning() -> None:
    async with group(TEN, THREE) as it:
        it.coordinator.offsets[P0] = (7, -1, "")
        async with it.consumer() as consumer:
            assert consumer.assignment == frozenset()
            await it.owner.assign([P0, P1])
            assert consumer.assignment == {P0, P1}
            found = await take(aiter(consumer), 6)
            assert sorted(found) == [(0, 7), (0, 8), (0, 9), (1, 0), (1, 1), (1, 2)]
        assert it.member.calls == ["start", ("leave", True), "close"]


async def test_pending_poll_gets_records_of_partitions_assigned_later() -> None:
    async with group(THREE) as it, it.consumer() as consumer:
        poll = asyncio.create_task(anext(aiter(consumer)))
        await asyncio.wait([poll], timeout=0.05)
        assert not poll.done()
        assert it.member.polls == 1
        await it.owner.assign([P0])
        assert (await poll).value == b"b0"


async def test_buffered_records_of_a_revoked_partition_are_dropped() -> None:
    async with group(TEN, THREE) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        records = aiter(consumer)
        await take(records, 2)
        await it.owner.assign([P1])
        revoking = asyncio.create_task(it.owner.revoke([P0], FAR))
        await asyncio.sleep(0)
        assert consumer.assignment == {P1}
        assert await take(records, 3) == [(1, 0), (1, 1), (1, 2)]
        await revoking
        await quiet(records)
        assert it.coordinator.committed[-1] == {P0: 2}


async def test_revocation_waits_until_the_record_in_flight_is_processed() -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        records = aiter(consumer)
        await take(records, 3)
        revoking = asyncio.create_task(it.owner.revoke([P0], FAR))
        await asyncio.wait([revoking], timeout=0.05)
        assert not revoking.done()
        assert it.coordinator.commits == []
        await quiet(records)  # this poll marks the third record as processed
        await revoking
        assert it.coordinator.committed == [{P0: 3}]


@pytest.mark.parametrize("kind", ["record_lists", "values", "raw_batches"])
async def test_revocation_waits_until_a_whole_list_is_processed(kind: str) -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        lists = getattr(consumer, kind)()
        fetched = await anext(lists)
        revoking = asyncio.create_task(it.owner.revoke([P0], FAR))
        await asyncio.wait([revoking], timeout=0.05)
        assert not revoking.done()
        await quiet(lists)
        await revoking
        behind = {"record_lists": 10, "values": 10, "raw_batches": 1}[kind]
        assert it.coordinator.committed == [{P0: behind}]
        assert (fetched.topic, fetched.partition) == P0


async def test_commit_excludes_a_list_in_flight() -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        await take(aiter(consumer), 2)
        await anext(consumer.record_lists())
        await consumer.commit()
        assert it.coordinator.committed == [{P0: 2}]


async def test_revocation_after_max_poll_interval_drops_the_record_and_warns(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ManualClock()
    async with (
        group(TEN, clock=clock) as it,
        it.consumer(max_poll_interval_ms=1_000, auto_commit_interval_ms=10**8) as consumer,
    ):
        await it.owner.assign([P0])
        await take(aiter(consumer), 3)
        assert not it.owner.poll_interval_exceeded(clock.monotonic())  # the first check
        await clock.advance(900)
        assert not it.owner.poll_interval_exceeded(clock.monotonic())
        revoking = asyncio.create_task(it.owner.revoke([P0], FAR))
        await clock.advance(99)
        assert not revoking.done()
        with caplog.at_level(logging.WARNING):
            await clock.advance(2)
            await revoking
        assert it.owner.poll_interval_exceeded(clock.monotonic())
        assert it.coordinator.committed == [{P0: 2}]
        assert "t[0]: revoked with a record in flight" in caplog.text


async def test_revocation_waits_for_the_record_until_its_deadline() -> None:
    clock = ManualClock()
    async with group(TEN, clock=clock) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        await take(aiter(consumer), 3)
        revoking = asyncio.create_task(it.owner.revoke([P0], clock.monotonic() + 5))
        await clock.advance(4_999)
        assert not revoking.done()
        await clock.advance(2)
        await revoking
        assert it.coordinator.committed[-1] == {P0: 2}


async def test_pending_poll_does_not_exceed_the_poll_interval() -> None:
    clock = ManualClock()
    async with (
        group([], clock=clock) as it,
        it.consumer(max_poll_interval_ms=1_000) as consumer,
    ):
        poll = asyncio.create_task(anext(aiter(consumer)))
        await asyncio.sleep(0)
        for _ in range(3):
            await clock.advance(999)
            assert not it.owner.poll_interval_exceeded(clock.monotonic())
        poll.cancel()
        await asyncio.wait([poll])
        assert not it.owner.poll_interval_exceeded(clock.monotonic())
        await clock.advance(1_001)
        assert it.owner.poll_interval_exceeded(clock.monotonic())  # no poll is pending


async def test_lost_partitions_are_neither_polled_nor_committed() -> None:
    async with group(TEN) as it:
        async with it.consumer() as consumer:
            await it.owner.assign([P0])
            records = aiter(consumer)
            await take(records, 3)
            await it.owner.on_partitions_lost([P0])
            assert consumer.assignment == frozenset()
            await quiet(records)
        assert it.coordinator.commits == []


async def test_poll_waits_while_the_session_may_have_expired() -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        lists = consumer.raw_batches()
        await anext(lists)
        it.member.assignment_valid_until = 0.0  # the session has expired
        poll = asyncio.create_task(anext(lists))
        await asyncio.wait([poll], timeout=0.03)
        assert not poll.done()
        await it.owner.on_partitions_lost([P0])
        it.coordinator.offsets[P0] = (7, -1, "")  # another member has committed meanwhile
        it.member.assignment_valid_until = float("inf")
        await it.owner.assign([P0])
        assert (await poll).batch.base_offset == 7


async def test_fetched_records_wait_while_the_session_may_have_expired() -> None:
    async with group([b"a"]) as it, it.consumer(max_wait_ms=50) as consumer:
        await it.owner.assign([P0])
        records = aiter(consumer)
        await take(records, 1)
        poll = asyncio.create_task(anext(records))
        await it.broker.until(lambda: len(it.log.fetches) > 1)
        it.member.assignment_valid_until = 0.0
        it.log.append(batch(1, [b"b"]))
        await asyncio.wait([poll], timeout=0.2)
        assert not poll.done()
        it.member.assignment_valid_until = float("inf")  # a heartbeat has confirmed the session
        assert (await poll).offset == 1


async def test_partly_committed_list_stays_in_flight() -> None:
    async with group(TEN) as it, it.consumer(auto_commit=False) as consumer:
        await it.owner.assign([P0])
        fetched = await anext(consumer.record_lists())
        await consumer.commit(fetched.records[2])
        revoking = asyncio.create_task(it.owner.revoke([P0], FAR))
        await asyncio.wait([revoking], timeout=0.05)
        assert not revoking.done()
        await consumer.commit(fetched)
        await revoking
        assert it.coordinator.committed == [{P0: 3}, {P0: 10}]


class DropAll(Hooks):
    """An interceptor that removes every fetched record."""

    def on_records(self, topic: str, partition: int, records: list[Record]) -> list[Record]:
        return []


async def test_records_that_a_hook_removes_are_not_in_flight() -> None:
    settings = replace(QUICK, hooks=DropAll())
    async with group(TEN, settings=settings) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        poll = asyncio.create_task(anext(aiter(consumer)))
        await it.broker.until(lambda: len(it.log.fetches) > 1)
        await it.owner.revoke([P0], FAR)
        assert it.coordinator.committed == [{P0: 10}]
        poll.cancel()
        await asyncio.wait([poll])


async def test_partitions_lost_during_revocation_are_not_committed() -> None:
    notices: list[Any] = []
    async with (
        group(TEN) as it,
        it.consumer(
            on_revoked=lambda partitions: notices.append(("revoked", partitions)),
            on_lost=lambda partitions: notices.append(("lost", partitions)),
        ) as consumer,
    ):
        await it.owner.assign([P0])
        await take(aiter(consumer), 3)
        revoking = asyncio.create_task(it.owner.revoke([P0], FAR))
        await asyncio.sleep(0)
        assert it.owner.owned_partitions() == [P0]
        revoking.cancel()  # the member cancels the callback when it is fenced
        await asyncio.wait([revoking])
        await consumer.commit()
        with pytest.raises(CommitFailedError, match="not assigned"):
            await consumer.commit({P0: 2})
        assert it.owner.owned_partitions() == [P0]
        await it.owner.on_partitions_lost([P0])
        assert it.owner.owned_partitions() == []
        assert notices == [("lost", [P0])]
        assert it.coordinator.commits == []


async def test_on_lost_skips_partitions_that_on_revoked_has_received() -> None:
    notices: list[Any] = []

    async def on_revoked(partitions: object) -> None:
        notices.append(("revoked", partitions))
        await asyncio.sleep(100)

    async with (
        group(TEN) as it,
        it.consumer(
            on_revoked=on_revoked, on_lost=lambda partitions: notices.append(("lost", partitions))
        ) as consumer,
    ):
        await it.owner.assign([P0, ("t", 5)])
        revoking = asyncio.create_task(it.owner.revoke([P0], FAR))
        await asyncio.sleep(0.01)
        revoking.cancel()
        await asyncio.wait([revoking])
        await it.owner.on_partitions_lost(it.owner.owned_partitions())
        assert notices == [("revoked", [P0]), ("lost", [("t", 5)])]
        assert consumer.assignment == frozenset()


async def test_fetch_from_before_a_reassignment_is_dropped() -> None:
    async with group(TEN) as it, it.consumer(max_wait_ms=5_000) as consumer:
        released = asyncio.Event()

        async def delayed_fetch(request: Any) -> Any:
            answer = await it.log.fetch(request)
            await released.wait()
            return answer

        it.broker.answers[FetchRequest] = delayed_fetch
        await it.owner.assign([P0])
        records = aiter(consumer)
        poll = asyncio.create_task(anext(records))
        await it.broker.until(lambda: bool(it.log.fetches))
        await it.owner.revoke([P0], FAR)
        it.coordinator.offsets[P0] = (6, -1, "")
        await it.owner.assign([P0])
        released.set()
        assert (await poll).offset == 6
        assert await take(records, 3) == [(0, 7), (0, 8), (0, 9)]


async def test_new_partition_is_fetched_while_another_fetch_waits_at_the_broker() -> None:
    async with group([b"x"], THREE) as it, it.consumer(max_wait_ms=60_000) as consumer:
        never = asyncio.Event()

        async def delayed_fetch(request: Any) -> Any:
            answer = await it.log.fetch(request)
            if not any(part.records for topic in answer.responses for part in topic.partitions):
                await never.wait()
            return answer

        it.broker.answers[FetchRequest] = delayed_fetch
        await it.owner.assign([P0])
        records = aiter(consumer)
        assert await take(records, 1) == [(0, 0)]
        poll = asyncio.create_task(anext(records))
        await it.broker.until(lambda: len(it.log.fetches) == 2)
        await it.owner.assign([P1])
        assert (await poll).offset == 0
        assert await take(records, 2) == [(1, 1), (1, 2)]


async def test_reassigned_partition_starts_at_the_commit_despite_a_record_in_flight() -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        records = aiter(consumer)
        await take(records, 4)
        await it.owner.on_partitions_lost([P0])
        it.coordinator.offsets[P0] = (1, -1, "")
        await it.owner.assign([P0])
        assert await consumer.position(P0) == 1
        await consumer.commit()
        assert it.coordinator.committed == []  # no record is processed since the commit of 1
        assert await take(records, 2) == [(0, 1), (0, 2)]


# The `async with` block


async def test_record_in_flight_is_committed_when_the_block_ends() -> None:
    async with group(TEN) as it:
        async with it.consumer() as consumer:
            await it.owner.assign([P0])
            await take(aiter(consumer), 4)
        assert it.coordinator.committed == [{P0: 4}]
        assert it.member.calls[-2:] == [("leave", True), "close"]


async def test_record_in_flight_is_not_committed_when_the_block_raises() -> None:
    async with group(TEN) as it:
        with contextlib.suppress(ZeroDivisionError):
            async with it.consumer() as consumer:
                await it.owner.assign([P0])
                await take(aiter(consumer), 4)
                raise ZeroDivisionError
        assert it.coordinator.committed == [{P0: 3}]


async def test_record_in_flight_is_not_committed_when_its_task_is_cancelled() -> None:
    async with group(TEN) as it:
        handling = asyncio.Event()

        async def work() -> None:
            async with it.consumer() as consumer:
                await it.owner.assign([P0])
                async for record in consumer:
                    if record.offset == 3:
                        handling.set()
                        await asyncio.sleep(100)

        task = asyncio.create_task(work())
        await handling.wait()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert it.coordinator.committed == [{P0: 3}]
        assert it.member.calls[-2:] == [("leave", True), "close"]


async def test_cancelled_poll_leaves_the_previous_record_processed() -> None:
    async with group(THREE) as it:
        with contextlib.suppress(TimeoutError):
            async with it.consumer() as consumer:
                await it.owner.assign([P0])
                records = aiter(consumer)
                await take(records, 3)
                await asyncio.wait_for(anext(records), 0.05)
        assert it.coordinator.committed == [{P0: 3}]


async def test_record_in_flight_is_not_committed_by_close_inside_the_block() -> None:
    async with group(TEN) as it:
        async with it.consumer() as consumer:
            await it.owner.assign([P0])
            async for record in consumer:
                if record.offset == 4:
                    await consumer.close(leave=False)
        assert it.coordinator.committed == [{P0: 4}]
        assert it.member.calls[-3:] == [("leave", False), "close", "close"]


async def test_pending_poll_ends_when_the_consumer_is_closed() -> None:
    async with group([]) as it:
        consumer = await it.consumer().__aenter__()
        await it.owner.assign([P0])
        records = aiter(consumer)
        poll = asyncio.create_task(anext(records))
        await asyncio.sleep(0.02)
        await consumer.close()
        with pytest.raises(StopAsyncIteration):
            await poll
        with pytest.raises(ConfigurationError, match="closed"):
            await anext(aiter(consumer))


async def test_closed_consumer_ignores_assignments() -> None:
    async with group(TEN) as it:
        async with it.consumer() as consumer:
            await it.owner.assign([P0])
        await it.owner.assign([P0])
        assert consumer.assignment == frozenset()


async def test_each_poll_raises_the_error_of_a_failed_member() -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        records = aiter(consumer)
        poll = asyncio.create_task(anext(records))
        await asyncio.sleep(0)
        it.owner.on_member_failed(ConfigurationError("no assignor that all members share"))
        with pytest.raises(ConfigurationError, match="share"):
            await poll
        for iterate in (aiter, GroupConsumer.record_lists):
            with pytest.raises(ConfigurationError, match="share"):
                await anext(iterate(consumer))


async def test_cancelled_close_leaves_no_fetch_in_flight() -> None:
    settings = replace(QUICK, error_flush_ms=20, cancelled_close_ms=0)
    async with group([], settings=settings) as it:
        consumer = await it.consumer(max_wait_ms=60_000).__aenter__()
        await it.owner.assign([P0])
        poll = asyncio.create_task(anext(aiter(consumer)))
        await it.broker.until(lambda: len(it.log.fetches) > 0)
        poll.cancel()
        it.member.closes = asyncio.Event()
        closing = asyncio.create_task(consumer.close())
        await it.broker.until(lambda: "close" in it.member.calls)
        closing.cancel()
        await asyncio.wait([closing, poll])
        assert closing.cancelled()
        assert consumer._in_flight.fetches == {}


async def test_poll_raises_an_unexpected_error_of_auto_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with group(TEN) as it, it.consumer(auto_commit_interval_ms=1) as consumer:

        async def commit(*arguments: Any) -> None:
            raise ValueError("a fault of ours")

        monkeypatch.setattr(consumer._committer, "commit", commit)
        with pytest.raises(ValueError, match="a fault of ours"):
            await anext(aiter(consumer))
        monkeypatch.undo()


async def test_failed_member_ends_polling_and_loses_partitions() -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        records = aiter(consumer)
        await take(records, 2)
        it.owner.on_member_failed(ConfigurationError("a fault of ours"))
        with pytest.raises(ConfigurationError, match="a fault of ours"):
            await anext(records)
        assert consumer.assignment == frozenset()


async def test_subscribe_and_unsubscribe_reach_the_member() -> None:
    async with group(TEN) as it, it.consumer(["t", "t", "u"]) as consumer:
        wanted = [it.member.wanted]
        consumer.subscribe("v")
        wanted.append(it.member.wanted)
        consumer.unsubscribe()
        assert [*wanted, it.member.wanted] == [
            Subscription.to(["t", "u"]),
            Subscription.to("v"),
            None,
        ]
        consumer.enforce_rebalance("for a test")
        assert it.member.calls[-1] == ("rejoin", "for a test")
        with pytest.raises(ConfigurationError, match="subscribe needs topics"):
            consumer.subscribe([P0])  # type: ignore[list-item]  # that is the fault


async def test_mix_of_topics_and_partitions_is_refused() -> None:
    async with group(TEN) as it:
        with pytest.raises(ConfigurationError, match="either subscribes"):
            it.consumer(["t", P0])


async def grown(it: Group) -> None:
    it.broker.topics["t"] = 2
    await it.client.refresh(["t"])


async def test_member_is_notified_of_new_partitions() -> None:
    async with group(THREE) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        records = aiter(consumer)
        await take(records, 1)
        await grown(it)
        await take(records, 2)
        await quiet(records)
        assert "topics changed" in it.member.calls


@pytest.mark.slow
async def test_event_loop_runs_between_records_of_a_blocking_caller() -> None:
    """Heartbeats and commits need the event loop, even if all records are in one batch."""
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    def make(offset: int, value: bytes) -> bytes:
        return batch(0, [b"%d" % at for at in range(40)])

    async with group([b""], make=make) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        task = asyncio.create_task(count_turns())
        seen = []
        async for record in consumer:
            hold_up(0.03)
            seen.append(turns)
            if record.offset == 20:
                break
        task.cancel()
        # The loop runs after records 0, 4 and 5 at least, and then after each record.
        assert all(after - before >= 10 for before, after in itertools.pairwise(seen[5:]))
        assert seen[1] - seen[0] >= 10
