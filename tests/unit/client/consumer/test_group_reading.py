"""Partitions that come and go while somebody reads: what is handed out, waited for and dropped."""

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
    """Partition and offset of the next records."""
    found = []
    for _ in range(count):
        record = await anext(records)
        found.append((record.partition, record.offset))
    return found


async def quiet(records: Any) -> None:
    """Nothing is handed out, for as long as a broker that has nothing is asked some times.

    A task made just before has its first turn first: from Python 3.12 on `wait_for` starts at once.
    """
    await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(records), 0.1)


async def test_what_is_assigned_is_read_from_its_commit_or_the_start() -> None:
    async with group(TEN, THREE) as it:
        it.coordinator.offsets[P0] = (7, -1, "")
        async with it.consumer() as consumer:
            assert consumer.assignment == frozenset()
            await it.owner.assign([P0, P1])
            assert consumer.assignment == {P0, P1}
            found = await take(aiter(consumer), 6)
            assert sorted(found) == [(0, 7), (0, 8), (0, 9), (1, 0), (1, 1), (1, 2)]
        assert it.member.told == ["start", ("leave", True), "close"]


async def test_who_waits_for_records_gets_those_of_what_is_assigned_later() -> None:
    async with group(THREE) as it, it.consumer() as consumer:
        asked = asyncio.create_task(anext(aiter(consumer)))
        await asyncio.wait([asked], timeout=0.05)
        assert not asked.done()
        assert it.member.asks == 1
        await it.owner.assign([P0])
        assert (await asked).value == b"b0"


async def test_what_waits_of_a_partition_that_goes_is_never_handed_out() -> None:
    async with group(TEN, THREE) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        records = aiter(consumer)
        await take(records, 2)
        await it.owner.assign([P1])
        going = asyncio.create_task(it.owner.revoke([P0], FAR))
        await asyncio.sleep(0)
        assert consumer.assignment == {P1}
        assert await take(records, 3) == [(1, 0), (1, 1), (1, 2)]
        await going
        await quiet(records)
        assert it.coordinator.committed[-1] == {P0: 2}


async def test_a_partition_goes_when_the_record_in_hand_is_done() -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        records = aiter(consumer)
        await take(records, 3)
        going = asyncio.create_task(it.owner.revoke([P0], FAR))
        await asyncio.wait([going], timeout=0.05)
        assert not going.done()
        assert it.coordinator.commits == []
        await quiet(records)  # it asks for the next
        await going
        assert it.coordinator.committed == [{P0: 3}]


@pytest.mark.parametrize("kind", ["record_lists", "values", "raw_batches"])
async def test_all_of_a_list_is_in_hand(kind: str) -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        lists = getattr(consumer, kind)()
        fetched = await anext(lists)
        going = asyncio.create_task(it.owner.revoke([P0], FAR))
        await asyncio.wait([going], timeout=0.05)
        assert not going.done()
        await quiet(lists)
        await going
        behind = {"record_lists": 10, "values": 10, "raw_batches": 1}[kind]
        assert it.coordinator.committed == [{P0: behind}]
        assert (fetched.topic, fetched.partition) == P0


async def test_a_list_that_is_not_done_is_not_committed() -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        await take(aiter(consumer), 2)
        await anext(consumer.record_lists())
        await consumer.commit()
        assert it.coordinator.committed == [{P0: 2}]


async def test_who_is_too_slow_loses_the_record_and_is_told_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ManualClock()
    async with (
        group(TEN, clock=clock) as it,
        it.consumer(max_poll_interval_ms=1_000, auto_commit_interval_ms=10**8) as consumer,
    ):
        await it.owner.assign([P0])
        await take(aiter(consumer), 3)
        assert not it.owner.poll_interval_exceeded(
            clock.monotonic()
        )  # that is when it is looked at first
        await clock.advance(900)
        assert not it.owner.poll_interval_exceeded(clock.monotonic())
        going = asyncio.create_task(it.owner.revoke([P0], FAR))
        await clock.advance(99)
        assert not going.done()
        with caplog.at_level(logging.WARNING):
            await clock.advance(2)
            await going
        assert it.owner.poll_interval_exceeded(clock.monotonic())
        assert it.coordinator.committed == [{P0: 2}]
        assert "t[0]: given up with a record in the user's hands" in caplog.text


async def test_the_member_says_until_when_a_record_is_waited_for() -> None:
    clock = ManualClock()
    async with group(TEN, clock=clock) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        await take(aiter(consumer), 3)
        going = asyncio.create_task(it.owner.revoke([P0], clock.monotonic() + 5))
        await clock.advance(4_999)
        assert not going.done()
        await clock.advance(2)
        await going
        assert it.coordinator.committed[-1] == {P0: 2}


async def test_who_waits_for_records_is_not_slow() -> None:
    clock = ManualClock()
    async with (
        group([], clock=clock) as it,
        it.consumer(max_poll_interval_ms=1_000) as consumer,
    ):
        asked = asyncio.create_task(anext(aiter(consumer)))
        await asyncio.sleep(0)
        for _ in range(3):
            await clock.advance(999)
            assert not it.owner.poll_interval_exceeded(clock.monotonic())
        asked.cancel()
        await asyncio.wait([asked])
        assert not it.owner.poll_interval_exceeded(clock.monotonic())
        await clock.advance(1_001)
        assert it.owner.poll_interval_exceeded(clock.monotonic())  # nobody asks


async def test_what_is_lost_is_neither_handed_out_nor_committed() -> None:
    async with group(TEN) as it:
        async with it.consumer() as consumer:
            await it.owner.assign([P0])
            records = aiter(consumer)
            await take(records, 3)
            await it.owner.on_partitions_lost([P0])
            assert consumer.assignment == frozenset()
            await quiet(records)
        assert it.coordinator.commits == []


async def test_nothing_is_handed_out_when_the_session_may_be_over() -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        lists = consumer.raw_batches()
        await anext(lists)
        it.member.assignment_valid_until = 0.0  # the machine was asleep
        asked = asyncio.create_task(anext(lists))
        await asyncio.wait([asked], timeout=0.03)
        assert not asked.done()
        await it.owner.on_partitions_lost([P0])
        it.coordinator.offsets[P0] = (7, -1, "")  # as others have read on
        it.member.assignment_valid_until = float("inf")
        await it.owner.assign([P0])
        assert (await asked).batch.base_offset == 7


async def test_what_came_before_the_machine_was_asleep_waits_for_the_member_too() -> None:
    async with group([b"a"]) as it, it.consumer(max_wait_ms=50) as consumer:
        await it.owner.assign([P0])
        records = aiter(consumer)
        await take(records, 1)
        asked = asyncio.create_task(anext(records))
        await it.broker.until(lambda: len(it.log.fetches) > 1)
        it.member.assignment_valid_until = 0.0
        it.log.append(batch(1, [b"b"]))
        await asyncio.wait([asked], timeout=0.2)
        assert not asked.done()
        it.member.assignment_valid_until = float("inf")  # it is one
        assert (await asked).offset == 1


async def test_a_list_of_which_a_part_is_said_to_be_done_is_in_hand() -> None:
    async with group(TEN) as it, it.consumer(auto_commit=False) as consumer:
        await it.owner.assign([P0])
        fetched = await anext(consumer.record_lists())
        await consumer.commit(fetched.records[2])
        going = asyncio.create_task(it.owner.revoke([P0], FAR))
        await asyncio.wait([going], timeout=0.05)
        assert not going.done()
        await consumer.commit(fetched)
        await going
        assert it.coordinator.committed == [{P0: 3}, {P0: 10}]


class Nothing(Hooks):
    """Leaves nothing of what comes."""

    def on_records(self, topic: str, partition: int, records: list[Record]) -> list[Record]:
        return []


async def test_what_a_hook_leaves_out_is_in_no_hand() -> None:
    settings = replace(QUICK, hooks=Nothing())
    async with group(TEN, settings=settings) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        asked = asyncio.create_task(anext(aiter(consumer)))
        await it.broker.until(lambda: len(it.log.fetches) > 1)
        await it.owner.revoke([P0], FAR)
        assert it.coordinator.committed == [{P0: 10}]
        asked.cancel()
        await asyncio.wait([asked])


async def test_what_is_lost_while_it_is_given_up_is_waited_for_no_longer() -> None:
    told: list[Any] = []
    async with (
        group(TEN) as it,
        it.consumer(
            on_revoked=lambda places: told.append(("revoked", places)),
            on_lost=lambda places: told.append(("lost", places)),
        ) as consumer,
    ):
        await it.owner.assign([P0])
        await take(aiter(consumer), 3)
        going = asyncio.create_task(it.owner.revoke([P0], FAR))
        await asyncio.sleep(0)
        assert it.owner.owned_partitions() == [P0]
        going.cancel()  # as the member does
        await asyncio.wait([going])
        await consumer.commit()
        with pytest.raises(CommitFailedError, match="not assigned"):
            await consumer.commit({P0: 2})
        assert it.owner.owned_partitions() == [P0]
        await it.owner.on_partitions_lost([P0])
        assert it.owner.owned_partitions() == []
        assert told == [("lost", [P0])]
        assert it.coordinator.commits == []


async def test_who_was_told_that_it_goes_is_not_told_that_it_is_lost() -> None:
    told: list[Any] = []

    async def on_revoked(places: object) -> None:
        told.append(("revoked", places))
        await asyncio.sleep(100)

    async with (
        group(TEN) as it,
        it.consumer(
            on_revoked=on_revoked, on_lost=lambda places: told.append(("lost", places))
        ) as consumer,
    ):
        await it.owner.assign([P0, ("t", 5)])
        going = asyncio.create_task(it.owner.revoke([P0], FAR))
        await asyncio.sleep(0.01)
        going.cancel()
        await asyncio.wait([going])
        await it.owner.on_partitions_lost(it.owner.owned_partitions())
        assert told == [("revoked", [P0]), ("lost", [("t", 5)])]
        assert consumer.assignment == frozenset()


async def test_a_fetch_under_way_brings_nothing_of_what_has_gone_and_come_back() -> None:
    async with group(TEN) as it, it.consumer(max_wait_ms=5_000) as consumer:
        held = asyncio.Event()

        async def hold(asked: Any) -> Any:
            answer = await it.log.fetch(asked)
            await held.wait()
            return answer

        it.broker.answers[FetchRequest] = hold
        await it.owner.assign([P0])
        records = aiter(consumer)
        asked = asyncio.create_task(anext(records))
        await it.broker.until(lambda: bool(it.log.fetches))
        await it.owner.revoke([P0], FAR)
        it.coordinator.offsets[P0] = (6, -1, "")
        await it.owner.assign([P0])
        held.set()
        assert (await asked).offset == 6
        assert await take(records, 3) == [(0, 7), (0, 8), (0, 9)]


async def test_what_comes_waits_for_no_fetch_that_a_broker_holds() -> None:
    async with group([b"x"], THREE) as it, it.consumer(max_wait_ms=60_000) as consumer:
        never = asyncio.Event()

        async def hold(asked: Any) -> Any:
            answer = await it.log.fetch(asked)
            if not any(part.records for topic in answer.responses for part in topic.partitions):
                await never.wait()
            return answer

        it.broker.answers[FetchRequest] = hold
        await it.owner.assign([P0])
        records = aiter(consumer)
        assert await take(records, 1) == [(0, 0)]
        asked = asyncio.create_task(anext(records))
        await it.broker.until(lambda: len(it.log.fetches) == 2)
        await it.owner.assign([P1])
        assert (await asked).offset == 0
        assert await take(records, 2) == [(1, 1), (1, 2)]


async def test_what_comes_back_begins_at_the_commit_also_with_its_record_in_hand() -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        records = aiter(consumer)
        await take(records, 4)
        await it.owner.on_partitions_lost([P0])
        it.coordinator.offsets[P0] = (1, -1, "")
        await it.owner.assign([P0])
        assert await consumer.position(P0) == 1
        await consumer.commit()
        assert it.coordinator.committed == []  # 1 is what is committed, and nothing is done since
        assert await take(records, 2) == [(0, 1), (0, 2)]


# The block


async def test_the_record_in_hand_is_done_when_the_block_ends() -> None:
    async with group(TEN) as it:
        async with it.consumer() as consumer:
            await it.owner.assign([P0])
            await take(aiter(consumer), 4)
        assert it.coordinator.committed == [{P0: 4}]
        assert it.member.told[-2:] == [("leave", True), "close"]


async def test_it_is_not_done_where_the_block_ends_with_an_exception() -> None:
    async with group(TEN) as it:
        with contextlib.suppress(ZeroDivisionError):
            async with it.consumer() as consumer:
                await it.owner.assign([P0])
                await take(aiter(consumer), 4)
                raise ZeroDivisionError
        assert it.coordinator.committed == [{P0: 3}]


async def test_it_is_not_done_where_its_handler_is_cancelled() -> None:
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
        assert it.member.told[-2:] == [("leave", True), "close"]


async def test_a_wait_for_the_next_that_is_cancelled_leaves_the_one_before_done() -> None:
    async with group(THREE) as it:
        with contextlib.suppress(TimeoutError):
            async with it.consumer() as consumer:
                await it.owner.assign([P0])
                records = aiter(consumer)
                await take(records, 3)
                await asyncio.wait_for(anext(records), 0.05)
        assert it.coordinator.committed == [{P0: 3}]


async def test_a_record_in_hand_is_not_done_when_it_is_closed_within_the_block() -> None:
    async with group(TEN) as it:
        async with it.consumer() as consumer:
            await it.owner.assign([P0])
            async for record in consumer:
                if record.offset == 4:
                    await consumer.close(leave=False)
        assert it.coordinator.committed == [{P0: 4}]
        assert it.member.told[-3:] == [("leave", False), "close", "close"]


async def test_who_waits_for_records_is_at_the_end_when_it_is_closed() -> None:
    async with group([]) as it:
        consumer = await it.consumer().__aenter__()
        await it.owner.assign([P0])
        records = aiter(consumer)
        asked = asyncio.create_task(anext(records))
        await asyncio.sleep(0.02)
        await consumer.close()
        with pytest.raises(StopAsyncIteration):
            await asked
        with pytest.raises(ConfigurationError, match="closed"):
            await anext(aiter(consumer))


async def test_nothing_is_assigned_any_more_to_who_is_closed() -> None:
    async with group(TEN) as it:
        async with it.consumer() as consumer:
            await it.owner.assign([P0])
        await it.owner.assign([P0])
        assert consumer.assignment == frozenset()


async def test_what_made_the_member_fail_is_raised_at_each_ask() -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        records = aiter(consumer)
        asked = asyncio.create_task(anext(records))
        await asyncio.sleep(0)
        it.owner.on_member_failed(ConfigurationError("no assignor that all members share"))
        with pytest.raises(ConfigurationError, match="share"):
            await asked
        for iterate in (aiter, GroupConsumer.record_lists):
            with pytest.raises(ConfigurationError, match="share"):
                await anext(iterate(consumer))


async def test_closing_that_is_cancelled_at_its_end_leaves_nothing() -> None:
    async with group([]) as it:
        consumer = await it.consumer(max_wait_ms=60_000).__aenter__()
        await it.owner.assign([P0])
        asked = asyncio.create_task(anext(aiter(consumer)))
        await it.broker.until(lambda: len(it.log.fetches) > 0)
        asked.cancel()
        it.member.closes = asyncio.Event()
        closing = asyncio.create_task(consumer.close())
        await it.broker.until(lambda: "close" in it.member.told)
        closing.cancel()
        await asyncio.wait([closing, asked])
        assert closing.cancelled()
        assert consumer._in_flight.fetches == {}


async def test_auto_commits_do_not_end_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    async with group(TEN) as it, it.consumer(auto_commit_interval_ms=1) as consumer:

        async def commit(*arguments: Any) -> None:
            raise ValueError("a fault of ours")

        monkeypatch.setattr(consumer._committer, "commit", commit)
        with pytest.raises(ValueError, match="a fault of ours"):
            await anext(aiter(consumer))
        monkeypatch.undo()


async def test_who_has_no_member_any_more_hands_out_nothing_more() -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        records = aiter(consumer)
        await take(records, 2)
        it.owner.on_member_failed(ConfigurationError("a fault of ours"))
        with pytest.raises(ConfigurationError, match="a fault of ours"):
            await anext(records)
        assert consumer.assignment == frozenset()


async def test_subscriptions_go_to_the_member() -> None:
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
        assert it.member.told[-1] == ("rejoin", "for a test")
        with pytest.raises(ConfigurationError, match="topics are subscribed to"):
            consumer.subscribe([P0])  # type: ignore[list-item]  # that is the fault


async def test_topics_and_partitions_cannot_be_mixed() -> None:
    async with group(TEN) as it:
        with pytest.raises(ConfigurationError, match="either topics"):
            it.consumer(["t", P0])


async def grown(it: Group) -> None:
    it.broker.topics["t"] = 2
    await it.client.refresh(["t"])


async def test_the_member_hears_of_new_partitions() -> None:
    async with group(THREE) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        records = aiter(consumer)
        await take(records, 1)
        await grown(it)
        await take(records, 2)
        await quiet(records)
        assert "topics changed" in it.member.told


async def test_a_handler_that_holds_up_the_loop_lets_it_turn_between_records() -> None:
    """So that heartbeats and commits go on: one batch has them all."""
    turns = 0

    async def turning() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    def make(offset: int, value: bytes) -> bytes:
        return batch(0, [b"%d" % at for at in range(40)])

    async with group([b""], make=make) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        task = asyncio.create_task(turning())
        seen = []
        async for record in consumer:
            hold_up(0.03)
            seen.append(turns)
            if record.offset == 20:
                break
        task.cancel()
        # At least where the list goes on behind records 0, 4 and 5, and then at each.
        assert all(after - before >= 10 for before, after in itertools.pairwise(seen[5:]))
        assert seen[1] - seen[0] >= 10
