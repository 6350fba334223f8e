"""Where partitions begin of which a group has committed nothing, and what lookups run into."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kproto import BrokerResponseError, ConfigurationError
from kproto.client.commits.errors import NoCommittedOffsetError
from kproto.client.fetch.start_options import start_time_ms
from kproto.messages import ListOffsetsRequest, MetadataRequest, OffsetFetchRequest
from kproto.testing.clock import ManualClock
from tests.unit.client.consumer.grouped import FAR, group
from tests.unit.client.consumer.test_group_reading import P0, P1, TEN, THREE, quiet, take
from tests.unit.client.scripted_broker import quick
from tests.unit.client.scripted_log import batch

BY_HAND: dict[str, Any] = {"auto_commit": False}

PATIENT = quick(metadata_wait_ms=100, delivery_timeout_ms=1_000)

LOADING = ["COORDINATOR_LOAD_IN_PROGRESS"] * 9_999


def times_asked(it: Any) -> list[int]:
    return [
        part.timestamp
        for asked in it.broker.asked
        if isinstance(asked.message, ListOffsetsRequest)
        for topic in asked.message.topics
        for part in topic.partitions
    ]


async def test_the_latest_is_not_read_and_is_committed() -> None:
    """So that who has the partition next misses nothing of what comes meanwhile."""
    async with group(TEN) as it:
        async with it.consumer(start="latest") as consumer:
            await it.owner.assign([P0])
            await quiet(aiter(consumer))
        assert it.coordinator.committed == [{P0: 10}]


@pytest.mark.parametrize("auto_commit", [True, False])
@pytest.mark.parametrize("start", ["latest", timedelta(seconds=1)])
async def test_where_another_would_begin_further_on_is_committed_at_once(
    start: Any, auto_commit: bool
) -> None:
    clock = ManualClock()
    async with (
        group(TEN, clock=clock) as it,
        it.consumer(start=start, auto_commit=auto_commit) as consumer,
    ):
        await it.owner.assign([P0])
        if start == "latest":
            await quiet(aiter(consumer))
        else:
            await take(aiter(consumer), 1)
        await it.broker.until(lambda: bool(it.coordinator.commits))  # no time passes
        assert it.coordinator.committed == [{P0: 10 if start == "latest" else 0}]


async def test_who_only_asks_for_the_position_commits_it_too() -> None:
    async with group(TEN) as it, it.consumer(start="latest", **BY_HAND) as consumer:
        await it.owner.assign([P0])
        assert await consumer.position(P0) == 10
        await it.broker.until(lambda: bool(it.coordinator.offsets))
        assert it.coordinator.committed == [{P0: 10}]


async def test_what_the_user_commits_by_himself_is_not_committed_for_him() -> None:
    """But for where it began: behind that, it is what he says."""
    async with group(TEN) as it:
        async with it.consumer(start=timedelta(seconds=1), **BY_HAND) as consumer:
            await it.owner.assign([P0])
            await take(aiter(consumer), 4)
        assert it.coordinator.committed == [{P0: 0}]


@pytest.mark.parametrize("start", ["earliest", datetime(2020, 1, 1, tzinfo=UTC)])
@pytest.mark.parametrize("auto_commit", [True, False])
async def test_where_another_begins_as_well_nothing_is_committed_before_it_is_done(
    start: Any, auto_commit: bool
) -> None:
    async with group(TEN) as it:
        async with it.consumer(start=start, auto_commit=auto_commit) as consumer:
            await it.owner.assign([P0])
            assert await consumer.position(P0) == 0
        assert it.coordinator.commits == []


@pytest.mark.parametrize("how", ["revoked", "closed", "cancelled"])
async def test_what_is_given_up_at_once_has_its_place_committed(how: str) -> None:
    """The commit that was under way is not answered well."""
    async with group(TEN) as it:
        it.coordinator.commit_errors = ["COORDINATOR_LOAD_IN_PROGRESS"]
        it.coordinator.answers.clear()
        consumer = await it.consumer(start="latest", **BY_HAND).__aenter__()
        await it.owner.assign([P0])
        assert await consumer.position(P0) == 10
        if how == "revoked":
            await it.broker.until(lambda: bool(it.coordinator.commits))
            going = asyncio.create_task(it.owner.revoke([P0], FAR))
        elif how == "closed":
            going = asyncio.create_task(consumer.__aexit__(None, None, None))
        else:
            await it.broker.until(lambda: bool(it.coordinator.commits))
            fault = asyncio.CancelledError()
            going = asyncio.create_task(consumer.__aexit__(type(fault), fault, None))
        await asyncio.wait([going], timeout=0.03)
        assert not going.done()
        it.coordinator.answers.set()
        await going
        assert it.coordinator.offsets == {P0: (10, -1, "")}
        await consumer.close()


async def test_where_it_began_is_committed_also_where_on_revoked_fails() -> None:
    def on_revoked(places: list[tuple[str, int]]) -> None:
        it.coordinator.refused.clear()
        raise ValueError("not flushed")

    async with group(TEN) as it:
        it.coordinator.refused[P0] = "COORDINATOR_LOAD_IN_PROGRESS"
        consumer = await it.consumer(start=timedelta(seconds=1), on_revoked=on_revoked).__aenter__()
        await it.owner.assign([P0])
        await take(aiter(consumer), 4)
        with pytest.raises(ValueError, match="not flushed"):
            await consumer.close()
        assert it.coordinator.offsets[P0][0] == 0


@pytest.mark.parametrize("is_placed", [True, False])
async def test_where_it_began_is_not_committed_over_what_the_user_did(is_placed: bool) -> None:
    async with group(TEN) as it:
        async with it.consumer(start="latest", **BY_HAND) as consumer:
            await it.owner.assign([P0])
            if is_placed:
                it.coordinator.answers.clear()
                assert await consumer.position(P0) == 10
                await it.broker.until(lambda: bool(it.coordinator.commits))
            committing = asyncio.create_task(consumer.commit({P0: 4}))
            await asyncio.sleep(0)
            it.coordinator.answers.set()
            await committing
            await quiet(aiter(consumer))
        expected = [{P0: 10}, {P0: 4}] if is_placed else [{P0: 4}]
        assert it.coordinator.committed == expected


async def test_where_it_began_is_committed_later_where_it_cannot_be_now() -> None:
    clock = ManualClock()
    async with (
        group(TEN, clock=clock) as it,
        it.consumer(start="latest", **BY_HAND) as consumer,
    ):
        it.coordinator.commit_errors = ["UNKNOWN_MEMBER_ID"]
        await it.owner.assign([P0])
        assert await consumer.position(P0) == 10
        await it.broker.until(lambda: bool(it.member.refused))
        assert it.coordinator.offsets == {}
        await clock.advance(5_001)
        await it.broker.until(lambda: bool(it.coordinator.offsets))
        await clock.advance(3_600_001)
        assert it.coordinator.committed == [{P0: 10}, {P0: 10}]


async def test_none_is_an_error_for_what_has_no_commit_and_others_go_on() -> None:
    async with group(TEN, THREE) as it, it.consumer(start="none") as consumer:
        it.coordinator.offsets[P1] = (1, -1, "")
        await it.owner.assign([P0, P1])
        records = aiter(consumer)
        found = []
        for _ in range(2):
            with pytest.raises(NoCommittedOffsetError, match=r"no commit for t\[0\]") as told:
                found += await take(records, 3)
            assert told.value.partitions == [P0]
        assert await take_some(records) == [(1, 1), (1, 2)]
        with pytest.raises(NoCommittedOffsetError):
            await consumer.position(P0)
        consumer.seek(P0, 9)
        assert await take(records, 1) == [(0, 9)]


@pytest.mark.parametrize("who", ["the user", "another"])
async def test_who_has_no_commit_goes_on_when_somebody_commits(who: str) -> None:
    async with group(TEN) as it, it.consumer(start="none") as consumer:
        await it.owner.assign([P0])
        records = aiter(consumer)
        with pytest.raises(NoCommittedOffsetError):
            await anext(records)
        if who == "another":
            it.coordinator.offsets[P0] = (8, -1, "")
        else:
            await consumer.commit({P0: 8})
        assert await take_some(records) == [(0, 8), (0, 9)]


async def test_a_position_that_is_known_is_no_matter_of_one_that_is_not() -> None:
    async with group(TEN, THREE) as it, it.consumer(start="none") as consumer:
        it.coordinator.offsets[P0] = (4, -1, "")
        await it.owner.assign([P0, P1])
        assert await consumer.position(P0) == 4


async def take_some(records: Any) -> list[tuple[int, int]]:
    """What is there behind each error."""
    found: list[tuple[int, int]] = []
    for _ in range(20):
        try:
            record = await asyncio.wait_for(anext(records), 0.2)
        except NoCommittedOffsetError:
            continue
        except TimeoutError:
            break
        found.append((record.partition, record.offset))
    return found


async def test_a_time_and_a_duration_are_asked_for() -> None:
    clock = ManualClock(start_ms=1_000_000)
    for start, wanted in (
        (datetime.fromtimestamp(900, UTC), 900_000),
        (timedelta(seconds=40), 960_000),
        (timedelta(days=99), 0),
    ):
        async with group(TEN, clock=clock) as it, it.consumer(start=start) as consumer:
            await it.owner.assign([P0])
            position = await consumer.position(P0)
            assert times_asked(it)[0] == wanted
            assert position in (0, 10)


async def test_where_no_record_is_that_late_it_begins_at_the_end() -> None:
    async with group(TEN) as it:

        def listed(asked: Any) -> Any:
            answer = it.log.list_offsets(asked)
            for topic, wanted in zip(answer.topics, asked.message.topics, strict=True):
                for part, its in zip(topic.partitions, wanted.partitions, strict=True):
                    if its.timestamp >= 0:
                        part.offset = -1
            return answer

        it.broker.answers[ListOffsetsRequest] = listed
        async with it.consumer(start=timedelta(seconds=1)) as consumer:
            await it.owner.assign([P0])
            assert await consumer.position(P0) == 10
            assert await consumer.offsets_for_times({P0: 5}) == {P0: None}


async def test_partitions_that_a_topic_got_since_are_read_from_their_start() -> None:
    async with group(TEN) as it, it.consumer(start="latest") as consumer:
        await it.client.refresh(["t"])
        await it.owner.assign([P0])
        assert await consumer.position(P0) == 10
        it.broker.topics["t"] = 2
        for at in range(3):
            it.log.append(batch(at, [b"new"]), partition=1)
        await it.client.refresh(["t"])
        await it.owner.assign([P1])
        assert await consumer.position(P1) == 0
        await it.broker.until(lambda: P1 in it.coordinator.offsets)  # another would pass them over
        assert it.coordinator.offsets == {P0: (10, -1, ""), P1: (0, -1, "")}
        assert await take(aiter(consumer), 3) == [(1, 0), (1, 1), (1, 2)]


@pytest.mark.parametrize(
    ("start", "matches"),
    [
        ("middle", "start is 'middle'"),
        (None, "start is None"),
        (7, "start is 7"),
        ({("t", 0): 1}, "with a group it is"),
        (datetime(2026, 1, 1), "no time zone"),  # noqa: DTZ001 - that is the fault
        (datetime(1969, 1, 1, tzinfo=UTC), "before 1970"),
        (timedelta(seconds=-1), "not negative"),
    ],
)
async def test_what_is_no_start_is_refused(start: Any, matches: str) -> None:
    async with group(TEN) as it:
        with pytest.raises(ConfigurationError, match=matches):
            it.consumer(start=start)


def test_a_duration_ends_at_1970() -> None:
    assert start_time_ms(timedelta(milliseconds=1), 5) == 4
    assert start_time_ms(timedelta(days=1), 5) == 0


async def test_a_log_that_lost_what_is_committed_is_told_where_start_is_none() -> None:
    async with group(TEN) as it, it.consumer(start="none") as consumer:
        it.coordinator.offsets[P0] = (99, -1, "")
        await it.owner.assign([P0])
        with pytest.raises(BrokerResponseError, match="OFFSET_OUT_OF_RANGE"):
            await take(aiter(consumer), 1)


@pytest.mark.parametrize(("start", "first"), [("earliest", 0), ("latest", None)])
async def test_who_stands_behind_the_end_goes_where_it_would_have_begun(
    start: Any, first: int | None
) -> None:
    async with group(TEN) as it, it.consumer(start=start) as consumer:
        it.coordinator.offsets[P0] = (99, -1, "")
        await it.owner.assign([P0])
        records = aiter(consumer)
        if first is None:
            await quiet(records)
            assert consumer.positions == {P0: 10}
        else:
            assert await take(records, 1) == [(0, first)]


@pytest.mark.parametrize(
    "error",
    [
        "COORDINATOR_LOAD_IN_PROGRESS",
        "NOT_COORDINATOR",
        "UNSTABLE_OFFSET_COMMIT",
        "UNKNOWN_TOPIC_ID",
    ],
)
async def test_commits_are_asked_for_again(error: str) -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        it.coordinator.offsets[P0] = (5, -1, "")
        it.coordinator.fetch_errors = [error, error]
        await it.owner.assign([P0])
        assert await take(aiter(consumer), 1) == [(0, 5)]
        asked = asked_for_commits(it)
        assert [each.message.require_stable for each in asked] == [True] * 3


async def test_what_a_member_gets_has_its_own_time_for_commits() -> None:
    """The coordinator loads, all is lost meanwhile, and the member gets something else."""
    clock = ManualClock()
    async with group(TEN, THREE, settings=PATIENT, clock=clock) as it, it.consumer() as consumer:
        it.coordinator.fetch_errors = list(LOADING)
        await it.owner.assign([P0])
        coming = asyncio.create_task(anext(aiter(consumer)))
        await it.broker.until(lambda: bool(asked_for_commits(it)))
        await passes(clock, 800)
        await it.owner.on_partitions_lost([P0])
        await it.owner.assign([P1])
        await passes(clock, 500)  # the time of the first is over
        it.coordinator.fetch_errors = []
        while not coming.done():
            await passes(clock, 100)
        assert (await coming).partition == 1


async def test_commits_are_not_asked_for_any_longer_where_a_seek_says_where_to_begin() -> None:
    clock = ManualClock()
    async with group(TEN, settings=PATIENT, clock=clock) as it, it.consumer(**BY_HAND) as consumer:
        it.coordinator.fetch_errors = list(LOADING)
        await it.owner.assign([P0])
        records = aiter(consumer)
        coming = asyncio.create_task(anext(records))
        await it.broker.until(lambda: bool(asked_for_commits(it)))
        consumer.seek(P0, 8)
        assert (await coming).offset == 8
        await passes(clock, 1_500)
        assert (await anext(records)).offset == 9  # and no error of a search that is for nothing
        assert len(asked_for_commits(it)) <= 2


async def passes(clock: ManualClock, ms: int) -> None:
    """Let time pass, while brokers and clients have their turns."""
    for _ in range(0, ms, 50):
        await clock.advance(50)
        await asyncio.sleep(0.002)


def asked_for_commits(it: Any) -> list[Any]:
    return [each for each in it.broker.asked if isinstance(each.message, OffsetFetchRequest)]


async def test_who_may_not_read_commits_is_told_at_each_ask() -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        it.coordinator.fetch_errors = ["GROUP_AUTHORIZATION_FAILED"] * 3
        await it.owner.assign([P0])
        records = aiter(consumer)
        for _ in range(2):
            with pytest.raises(BrokerResponseError, match="GROUP_AUTHORIZATION_FAILED"):
                await anext(records)
        with pytest.raises(BrokerResponseError, match="GROUP_AUTHORIZATION_FAILED"):
            await consumer.committed()
        assert await take(records, 1) == [(0, 0)]


async def test_committed_can_be_asked_of_any_partition() -> None:
    async with group(TEN, THREE) as it, it.consumer() as consumer:
        it.coordinator.offsets[P1] = (2, 4, "m")
        assert await consumer.committed() == {}
        found = await consumer.committed(P0, P1)
        assert found == {P0: None, P1: (2, 4, "m")}
        known = found[P1]
        assert known is not None
        assert (known.offset, known.leader_epoch, known.metadata) == (2, 4, "m")
        with pytest.raises(ConfigurationError, match="is no partition"):
            await consumer.committed("t")  # type: ignore[arg-type]  # that is the fault


def raise_epoch(it: Any, epoch: int) -> None:
    """The leader is one of that epoch, and says so."""

    def metadata(asked: Any) -> Any:
        answer = it.broker.metadata(asked)
        for topic in answer.topics:
            for part in topic.partitions:
                part.leader_epoch = epoch
        return answer

    it.broker.answers[MetadataRequest] = metadata


async def test_a_log_that_lost_what_was_committed_is_read_from_where_it_was_cut(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with group(TEN) as it:
        raise_epoch(it, 4)
        it.log.epochs[P0] = (3, 6)  # epoch 3 ends at offset 6
        it.coordinator.offsets[P0] = (8, 3, "")
        async with it.consumer() as consumer:
            await it.owner.assign([P0])
            with caplog.at_level(logging.WARNING):
                assert await take(aiter(consumer), 2) == [(0, 6), (0, 7)]
            assert "t[0]: the log was truncated: offsets 6 to 7" in caplog.text
        assert it.log.asked_for_epochs
        assert it.coordinator.offsets[P0][0] == 8


async def test_what_the_user_said_is_done_is_not_where_the_log_was_cut() -> None:
    async with group(TEN) as it:
        raise_epoch(it, 3)
        async with it.consumer(auto_commit=False) as consumer:
            it.coordinator.offsets[P0] = (2, 3, "")
            await it.owner.assign([P0])
            assert await consumer.position(P0) == 2
            await consumer.commit({P0: 8})
            raise_epoch(it, 4)
            it.log.epochs[P0] = (3, 1)
            await it.client.refresh(["t"])
            assert await take(aiter(consumer), 1) == [(0, 1)]
            await consumer.commit()
            assert it.coordinator.offsets[P0][0] == 1


async def test_a_log_that_has_what_was_committed_is_read_on() -> None:
    async with group(TEN) as it:
        raise_epoch(it, 4)
        it.log.epochs[P0] = (3, 9)
        it.coordinator.offsets[P0] = (8, 3, "")
        async with it.consumer() as consumer:
            await it.owner.assign([P0])
            assert await take(aiter(consumer), 1) == [(0, 8)]
        assert it.log.asked_for_epochs
