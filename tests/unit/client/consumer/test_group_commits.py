"""Tests offset commits: their contents, order and retries, and the effect of each error."""

from __future__ import annotations

import asyncio
import logging
import pickle
from typing import Any

import pytest

from kproto import BrokerResponseError, ConfigurationError
from kproto.client.commits.errors import CommitFailedError
from kproto.client.fetch.completed_fetch import FetchedRecords
from kproto.testing.clock import ManualClock
from tests.support.selection import rest_slow
from tests.unit.client.consumer.grouped import FAR, GenerationIdentity, group
from tests.unit.client.consumer.test_group_reading import P0, P1, TEN, THREE, quiet, take
from tests.unit.client.scripted_broker import quick
from tests.unit.client.scripted_log import batch

NO_AUTO_COMMIT: dict[str, Any] = {"auto_commit": False}


async def test_commit_has_the_member_and_the_leader_epoch_of_the_last_record() -> None:
    def make(offset: int, value: bytes) -> bytes:
        return batch(offset, [value], partition_leader_epoch=3 + offset // 2)

    async with group(TEN, make=make) as it, it.consumer(**NO_AUTO_COMMIT) as consumer:
        await it.owner.assign([P0])
        await take(aiter(consumer), 4)
        await consumer.commit(metadata="m")
        assert it.coordinator.offsets == {P0: (3, 4, "m")}  # the leader epoch of offset 2
        await consumer.commit({P0: 2})
        assert it.coordinator.offsets == {P0: (2, 3, "")}
        await consumer.commit({P0: 99})
        assert it.coordinator.offsets == {P0: (99, -1, "")}  # the epoch of offset 98 is unknown
        (first, *_) = it.coordinator.commits
        committed_by = (first.group_id, first.member_id, first.generation_id_or_member_epoch)
        assert committed_by == ("g", "m", 7)


async def test_committed_leader_epoch_is_kept_by_the_next_commit() -> None:
    async with group(TEN) as it, it.consumer(**NO_AUTO_COMMIT) as consumer:
        it.coordinator.offsets[P0] = (4, 5, "")
        await it.owner.assign([P0])
        assert await consumer.position(P0) == 4
        await consumer.commit(metadata="again")
        assert it.coordinator.offsets[P0] == (4, 5, "again")
        committed = await consumer.committed()
        assert committed == {P0: (4, 5, "again")}


async def test_unchanged_offsets_are_not_committed_again() -> None:
    async with group(TEN, THREE) as it, it.consumer(**NO_AUTO_COMMIT) as consumer:
        await it.owner.assign([P0])
        await take(aiter(consumer), 3)
        await consumer.commit()
        await consumer.commit()
        await it.owner.assign([P1])
        assert await consumer.position(P1) == 0
        await consumer.commit()
        assert it.coordinator.committed == [{P0: 2}, {P1: 0}]


async def test_without_auto_commit_revocation_and_close_commit_nothing() -> None:
    async with group(TEN) as it:
        async with it.consumer(**NO_AUTO_COMMIT) as consumer:
            await it.owner.assign([P0])
            await take(aiter(consumer), 3)
            revoking = asyncio.create_task(it.owner.revoke([P0], FAR))
            await quiet(aiter(consumer))
            await revoking
        assert it.coordinator.commits == []


async def test_commit_accepts_records_lists_values_and_batches() -> None:
    async with group(TEN) as it, it.consumer(**NO_AUTO_COMMIT) as consumer:
        await it.owner.assign([P0])
        records = aiter(consumer)
        record = await anext(records)
        await consumer.commit(record)
        await consumer.commit()  # the committed record stays processed
        fetched = await anext(consumer.raw_batches())
        await consumer.commit(fetched)
        values = await anext(consumer.values())
        await consumer.commit(values)
        assert it.coordinator.committed == [{P0: 1}, {P0: 2}, {P0: 10}]
        consumer.seek(P0, 4)
        await consumer.commit(await anext(consumer.record_lists()))
        await consumer.commit()
        assert it.coordinator.committed[3:] == [{P0: 10}]


async def test_committed_record_does_not_block_revocation() -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        record = await anext(aiter(consumer))
        revoking = asyncio.create_task(it.owner.revoke([P0], FAR))
        await asyncio.wait([revoking], timeout=0.03)
        assert not revoking.done()
        await consumer.commit(record)
        await revoking
        assert it.coordinator.offsets[P0] == (1, -1, "")


async def test_auto_commit_commits_processed_records_at_each_interval() -> None:
    clock = ManualClock()
    async with group(TEN, clock=clock) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        records = aiter(consumer)
        await take(records, 3)
        await clock.advance(4_999)
        assert it.coordinator.commits == []
        await clock.advance(2)
        await it.broker.until(lambda: len(it.coordinator.commits) == 1)
        await take(records, 2)
        await asyncio.sleep(0.02)  # time for the response to arrive
        await clock.advance(5_001)
        await it.broker.until(lambda: len(it.coordinator.commits) == 2)
        assert it.coordinator.committed == [{P0: 2}, {P0: 4}]


async def test_unchanged_offset_is_committed_again_after_an_hour() -> None:
    clock = ManualClock()
    async with group(TEN, clock=clock) as it, it.consumer(**NO_AUTO_COMMIT) as consumer:
        await it.owner.assign([P0])
        await take(aiter(consumer), 3)
        await consumer.commit()
        await clock.advance(3_599_000)
        await consumer.commit()
        await clock.advance(1_001)
        await consumer.commit()
        assert it.coordinator.committed == [{P0: 2}, {P0: 2}]


async def test_repeated_commit_keeps_the_metadata() -> None:
    clock = ManualClock()
    async with group(TEN, clock=clock) as it, it.consumer(**NO_AUTO_COMMIT) as consumer:
        it.coordinator.offsets[P0] = (7, -1, "of an earlier member")
        await it.owner.assign([P0])
        assert await consumer.position(P0) == 7
        await clock.advance(3_600_001)
        await consumer.commit()
        assert it.coordinator.committed == [{P0: 7}]
        assert it.coordinator.offsets[P0] == (7, -1, "of an earlier member")


async def test_commits_are_sent_one_after_another() -> None:
    async with group(TEN) as it, it.consumer(**NO_AUTO_COMMIT) as consumer:
        await it.owner.assign([P0])
        records = aiter(consumer)
        it.coordinator.answers.clear()
        await take(records, 2)
        first = asyncio.create_task(consumer.commit())
        await it.broker.until(lambda: bool(it.coordinator.commits))
        await take(records, 2)
        second = asyncio.create_task(consumer.commit())
        await asyncio.wait([second], timeout=0.03)
        assert it.coordinator.committed == [{P0: 1}]
        it.coordinator.answers.set()
        await asyncio.gather(first, second)
        assert it.coordinator.committed == [{P0: 1}, {P0: 3}]


async def test_commit_with_cancelled_caller_still_precedes_the_next() -> None:
    async with group(TEN) as it, it.consumer(**NO_AUTO_COMMIT) as consumer:
        await it.owner.assign([P0])
        records = aiter(consumer)
        it.coordinator.answers.clear()
        await take(records, 2)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(consumer.commit(), 0.05)
        await take(records, 2)
        second = asyncio.create_task(consumer.commit())
        await asyncio.wait([second], timeout=0.03)
        assert it.coordinator.committed == [{P0: 1}]
        it.coordinator.answers.set()
        await second
        assert it.coordinator.committed == [{P0: 1}, {P0: 3}]


@pytest.mark.parametrize(
    "error",
    [
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR",
        "REQUEST_TIMED_OUT",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "UNKNOWN_TOPIC_ID",
    ],
)
async def test_retriable_commit_error_is_retried(error: str) -> None:
    async with group(TEN) as it, it.consumer(**NO_AUTO_COMMIT) as consumer:
        await it.owner.assign([P0])
        await take(aiter(consumer), 3)
        it.coordinator.commit_errors = [error, error]
        await consumer.commit()
        assert it.coordinator.committed == [{P0: 2}] * 3
        assert it.coordinator.offsets[P0] == (2, -1, "")


async def test_unknown_topic_does_not_block_the_commit_of_others() -> None:
    async with group(TEN, THREE) as it, it.consumer(**NO_AUTO_COMMIT) as consumer:
        await it.owner.assign([P0, P1])
        records = aiter(consumer)
        await take(records, 4)
        it.coordinator.refused[P1] = "UNKNOWN_TOPIC_OR_PARTITION"
        with pytest.raises(BrokerResponseError, match=r"UNKNOWN_TOPIC_OR_PARTITION.*t\[1\]"):
            await consumer.commit({P0: 3, P1: 0})
        assert it.coordinator.offsets == {P0: (3, -1, "")}
        assert it.coordinator.committed[0] == {P0: 3, P1: 0}
        assert set(map(tuple, it.coordinator.committed[1:])) == {(P1,)}


async def test_commit_raises_the_last_error_at_its_timeout() -> None:
    settings = quick(metadata_wait_ms=50, delivery_timeout_ms=100)
    async with group(TEN, settings=settings) as it, it.consumer(**NO_AUTO_COMMIT) as consumer:
        await it.owner.assign([P0])
        await take(aiter(consumer), 3)
        it.coordinator.refused[P0] = "COORDINATOR_LOAD_IN_PROGRESS"
        with pytest.raises(BrokerResponseError, match="COORDINATOR_LOAD_IN_PROGRESS"):
            await consumer.commit()


@pytest.mark.parametrize("error", ["UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID"])
async def test_fenced_commit_fails_and_reaches_the_member(error: str) -> None:
    async with group(TEN) as it, it.consumer(**NO_AUTO_COMMIT) as consumer:
        await it.owner.assign([P0])
        await take(aiter(consumer), 3)
        identity = it.member.identity
        it.coordinator.commit_errors = [error]
        with pytest.raises(CommitFailedError, match=rf"{error}: t\[0\]: not assigned") as raised:
            await consumer.commit()
        assert not raised.value.retriable
        assert it.member.refused == [(error, identity)]
        assert len(it.coordinator.commits) == 1


@pytest.mark.parametrize("error", ["ILLEGAL_GENERATION", "STALE_MEMBER_EPOCH"])
async def test_commit_of_a_stale_generation_is_retried_until_partitions_are_lost(
    error: str,
) -> None:
    """After the member joins a new generation, it commits the partitions that it still owns."""
    async with group(TEN) as it, it.consumer(**NO_AUTO_COMMIT) as consumer:
        await it.owner.assign([P0])
        records = aiter(consumer)
        await take(records, 3)
        it.coordinator.commit_errors = [error]
        committing = asyncio.create_task(consumer.commit())
        await it.broker.until(lambda: bool(it.member.refused))
        it.member.identity = GenerationIdentity("m", 8)
        await committing
        assert [commit.generation_id_or_member_epoch for commit in it.coordinator.commits] == [7, 8]
        await take(records, 1)
        it.coordinator.commit_errors = [error] * 99
        committing = asyncio.create_task(consumer.commit())
        await it.broker.until(lambda: len(it.member.refused) >= 2)
        await it.owner.on_partitions_lost([P0])
        with pytest.raises(CommitFailedError, match=rf"{error}: t\[0\]: not") as raised:
            await committing
        assert not raised.value.retriable
        it.coordinator.commit_errors = []


async def test_commit_waits_for_the_end_of_a_rebalance() -> None:
    async with group(TEN) as it, it.consumer(**NO_AUTO_COMMIT) as consumer:
        await it.owner.assign([P0])
        records = aiter(consumer)
        await take(records, 3)
        it.coordinator.commit_errors = ["REBALANCE_IN_PROGRESS"]
        await consumer.commit()
        assert [name for name, _ in it.member.refused] == ["REBALANCE_IN_PROGRESS"]
        assert it.coordinator.committed == [{P0: 2}, {P0: 2}]
        await take(records, 1)
        it.member.identity, identity = None, it.member.identity
        committing = asyncio.create_task(consumer.commit())
        await asyncio.wait([committing], timeout=0.03)
        assert not committing.done()
        assert len(it.coordinator.commits) == 2  # no further commit was sent
        it.member.identity = identity
        await committing
        assert it.coordinator.committed[2:] == [{P0: 3}]


async def test_commit_fails_retriably_when_a_rebalance_takes_too_long() -> None:
    settings = quick(metadata_wait_ms=50, delivery_timeout_ms=60)
    async with group(TEN, settings=settings) as it, it.consumer(**NO_AUTO_COMMIT) as consumer:
        await it.owner.assign([P0])
        await take(aiter(consumer), 3)
        it.member.identity = None
        with pytest.raises(CommitFailedError, match="in no generation") as raised:
            await consumer.commit()
        assert raised.value.retriable
        again = pickle.loads(pickle.dumps(raised.value))
        assert (str(again), again.retriable) == (str(raised.value), True)
        it.member.identity = GenerationIdentity("m", 7)
        it.coordinator.refused[P0] = "REBALANCE_IN_PROGRESS"
        with pytest.raises(CommitFailedError, match="REBALANCE_IN_PROGRESS") as raised:
            await consumer.commit()
        assert raised.value.retriable


async def test_last_commit_waits_for_the_end_of_a_rebalance() -> None:
    async with group(TEN) as it:
        consumer = await it.consumer().__aenter__()
        await it.owner.assign([P0])
        await take(aiter(consumer), 3)
        it.member.identity, identity = None, it.member.identity
        closing = asyncio.create_task(consumer.__aexit__(None, None, None))
        await asyncio.wait([closing], timeout=0.03)
        assert not closing.done()
        it.member.identity = identity
        await closing
        assert it.coordinator.committed == [{P0: 3}]


async def test_failed_auto_commit_is_logged_and_not_raised(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ManualClock()
    async with group(TEN, clock=clock) as it:
        async with it.consumer() as consumer:
            await it.owner.assign([P0])
            records = aiter(consumer)
            await take(records, 3)
            it.coordinator.commit_errors = ["UNKNOWN_MEMBER_ID"]
            with caplog.at_level(logging.WARNING):
                await clock.advance(5_001)
                await it.broker.until(lambda: "not committed" in caplog.text)
            assert await take(records, 1) == [(0, 3)]
        assert it.coordinator.committed == [{P0: 2}, {P0: 4}]


async def test_auto_commit_pauses_without_a_generation() -> None:
    clock = ManualClock()
    async with group(TEN, clock=clock) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        await take(aiter(consumer), 3)
        it.member.identity, identity = None, it.member.identity
        await clock.advance(20_000)
        assert it.coordinator.commits == []
        it.member.identity = identity
        await clock.advance(5_001)
        await it.broker.until(lambda: len(it.coordinator.commits) == 1)


async def test_partition_lost_during_retries_is_not_committed() -> None:
    async with group(TEN) as it, it.consumer(**NO_AUTO_COMMIT) as consumer:
        await it.owner.assign([P0])
        await take(aiter(consumer), 3)
        it.coordinator.refused[P0] = "COORDINATOR_LOAD_IN_PROGRESS"
        committing = asyncio.create_task(consumer.commit())
        await it.broker.until(lambda: len(it.coordinator.commits) > 1)
        await it.owner.on_partitions_lost([P0])
        it.coordinator.refused.clear()
        await it.owner.assign([P0])
        with pytest.raises(CommitFailedError, match="not assigned to this consumer any more"):
            await committing
        assert it.coordinator.offsets == {}


@pytest.mark.parametrize(
    "error",
    [
        "OFFSET_METADATA_TOO_LARGE",
        "INVALID_COMMIT_OFFSET_SIZE",
        "TOPIC_AUTHORIZATION_FAILED",
        "GROUP_AUTHORIZATION_FAILED",
    ],
)
async def test_permanent_commit_error_is_raised_at_once(error: str) -> None:
    async with group(TEN, THREE) as it, it.consumer(**NO_AUTO_COMMIT) as consumer:
        await it.owner.assign([P0, P1])
        it.coordinator.refused[P1] = error
        with pytest.raises(BrokerResponseError, match=rf"{error}.*t\[1\]"):
            await consumer.commit({P0: 3, P1: 1})
        assert it.coordinator.offsets == {P0: (3, -1, "")}  # the other partition is committed
        assert len(it.coordinator.commits) == 1


@pytest.mark.parametrize(
    ("offsets", "matches"),
    [
        ({P0: -1}, "offset of .*is -1"),
        ({P0: 1.5}, "whole number"),
        ({P0: True}, "whole number"),
        ({"t": 1}, "no partition"),
        ({("t", "0"): 1}, "no partition"),
        ([P0], "neither a mapping from partitions"),
        (7, "neither a mapping from partitions"),
        (FetchedRecords("t", 0, [], 10), "no records to commit"),
    ],
)
async def test_invalid_offsets_are_refused_at_once(offsets: Any, matches: str) -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        with pytest.raises(ConfigurationError, match=matches):
            await consumer.commit(offsets)
        with pytest.raises(ConfigurationError, match="metadata is 7"):
            await consumer.commit(metadata=7)  # type: ignore[arg-type]  # that is the fault


async def test_commit_of_unassigned_partitions_is_refused_at_once() -> None:
    async with group(TEN, THREE) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        with pytest.raises(CommitFailedError, match=r"t\[1\], u\[3\]: not assigned"):
            await consumer.commit({P0: 1, P1: 2, ("u", 3): 1})
        record = await anext(aiter(consumer))
        await it.owner.on_partitions_lost([P0])
        with pytest.raises(CommitFailedError, match=r"t\[0\]: not assigned"):
            await consumer.commit(record)
        assert it.coordinator.commits == []


@pytest.mark.parametrize("has_position", [True, False])
async def test_record_from_before_a_reassignment_cannot_be_committed(
    has_position: bool,
) -> None:
    async with group(TEN) as it, it.consumer(**NO_AUTO_COMMIT) as consumer:
        await it.owner.assign([P0])
        record = await anext(aiter(consumer))
        await it.owner.on_partitions_lost([P0])
        it.coordinator.offsets[P0] = (5, -1, "")  # by the owner meanwhile
        await it.owner.assign([P0])
        if has_position:
            assert await consumer.position(P0) == 5
        with pytest.raises(CommitFailedError, match=r"t\[0\]: .* was revoked and assigned again"):
            await consumer.commit(record)
        assert it.coordinator.commits == []
        consumer.seek(P0, 0)  # the user rewinds on purpose
        await consumer.commit(record)
        assert it.coordinator.committed == [{P0: 1}]


async def test_closed_consumer_refuses_commits() -> None:
    async with group(TEN) as it:
        async with it.consumer() as consumer:
            await it.owner.assign([P0])
        with pytest.raises(ConfigurationError, match="closed"):
            await consumer.commit()


async def test_last_commit_ends_at_its_timeout(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = quick(metadata_wait_ms=50, delivery_timeout_ms=100)
    async with group(TEN, settings=settings) as it:
        it.coordinator.refused[P0] = "COORDINATOR_LOAD_IN_PROGRESS"
        with caplog.at_level(logging.WARNING):
            async with it.consumer() as consumer:
                await it.owner.assign([P0])
                await take(aiter(consumer), 3)
        assert "processed offsets were not committed" in caplog.text
        assert it.member.calls[-2:] == [("leave", True), "close"]


@pytest.mark.parametrize("is_manual", [True, False])
@pytest.mark.parametrize("has_position", rest_slow([False, True], 1))
async def test_commit_of_the_user_stays_without_later_records(
    is_manual: bool, has_position: bool
) -> None:
    """A caller may commit an earlier offset on purpose, to move the start of the group."""
    clock = ManualClock()
    async with group(TEN, clock=clock) as it:
        it.coordinator.offsets[P0] = (10, -1, "")
        async with it.consumer([P0] if is_manual else "t") as consumer:
            if not is_manual:
                await it.owner.assign([P0])
            if has_position:
                assert await consumer.position(P0) == 10
            await consumer.commit({P0: 4}, "back")
            assert await consumer.position(P0) in (4, 10)
            await clock.advance(6_000)
            await clock.advance(3_600_000)
            await it.broker.until(lambda: len(it.coordinator.commits) == 2)
            if not is_manual:
                await it.owner.revoke([P0], FAR)
        assert it.coordinator.committed == [{P0: 4}, {P0: 4}]
        assert it.coordinator.offsets[P0] == (4, -1, "back")


async def test_records_processed_after_a_user_commit_are_committed() -> None:
    async with group(TEN) as it:
        async with it.consumer() as consumer:
            await it.owner.assign([P0])
            records = aiter(consumer)
            await take(records, 5)
            await consumer.commit({P0: 1})
            assert it.coordinator.offsets[P0][0] == 1
            await take(records, 1)
        assert it.coordinator.committed == [{P0: 1}, {P0: 6}]


async def test_records_processed_during_a_user_commit_are_committed() -> None:
    async with group(TEN) as it:
        async with it.consumer() as consumer:
            await it.owner.assign([P0])
            records = aiter(consumer)
            await take(records, 3)
            it.coordinator.answers.clear()
            committing = asyncio.create_task(consumer.commit({P0: 1}))
            await it.broker.until(lambda: bool(it.coordinator.commits))
            await take(records, 3)
            it.coordinator.answers.set()
            await committing
        assert it.coordinator.committed == [{P0: 1}, {P0: 6}]


async def test_seek_after_a_commit_is_committed() -> None:
    async with group(TEN) as it:
        it.coordinator.offsets[P0] = (7, -1, "")
        async with it.consumer() as consumer:
            await it.owner.assign([P0])
            assert await consumer.position(P0) == 7
            await consumer.commit({P0: 4})
            consumer.seek(P0, 7)
        assert it.coordinator.committed == [{P0: 4}, {P0: 7}]


async def test_failed_user_commit_does_not_change_the_last_commit() -> None:
    async with group(TEN) as it:
        async with it.consumer() as consumer:
            await it.owner.assign([P0])
            await take(aiter(consumer), 3)
            it.coordinator.commit_errors = ["OFFSET_METADATA_TOO_LARGE"]
            with pytest.raises(BrokerResponseError, match="OFFSET_METADATA_TOO_LARGE"):
                await consumer.commit({P0: 1})
        assert it.coordinator.offsets[P0][0] == 3


async def test_warning_names_only_uncommitted_partitions(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = quick(metadata_wait_ms=50, delivery_timeout_ms=100)
    async with group(TEN, THREE, settings=settings) as it:
        it.coordinator.refused[P1] = "UNKNOWN_TOPIC_ID"
        with caplog.at_level(logging.WARNING):
            async with it.consumer() as consumer:
                await it.owner.assign([P0, P1])
                await take(aiter(consumer), 13)
        assert "t[1]: processed offsets were not committed: UNKNOWN_TOPIC_ID" in caplog.text
        assert "t[0]" not in caplog.text
        assert it.coordinator.offsets == {P0: (10, -1, "")}
