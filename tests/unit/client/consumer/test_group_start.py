"""Tests the positions at which a group's partitions start, and errors of OffsetFetch.

A partition may have no committed offset, or an offset that is out of range or truncated.
"""

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

NO_AUTO_COMMIT: dict[str, Any] = {"auto_commit": False}

PATIENT = quick(metadata_wait_ms=100, delivery_timeout_ms=1_000)

LOADING = ["COORDINATOR_LOAD_IN_PROGRESS"] * 9_999


def timestamps_requested(it: Any) -> list[int]:
    return [
        part.timestamp
        for request in it.broker.asked
        if isinstance(request.message, ListOffsetsRequest)
        for topic in request.message.topics
        for part in topic.partitions
    ]


async def test_start_at_latest_is_committed() -> None:
    """The next owner starts at the committed offset, and misses no record produced since then."""
    async with group(TEN) as it:
        async with it.consumer(start="latest") as consumer:
            await it.owner.assign([P0])
            await quiet(aiter(consumer))
        assert it.coordinator.committed == [{P0: 10}]


@pytest.mark.parametrize("auto_commit", [True, False])
@pytest.mark.parametrize("start", ["latest", timedelta(seconds=1)])
async def test_start_that_depends_on_time_is_committed_at_once(
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


async def test_position_lookup_commits_the_start() -> None:
    async with group(TEN) as it, it.consumer(start="latest", **NO_AUTO_COMMIT) as consumer:
        await it.owner.assign([P0])
        assert await consumer.position(P0) == 10
        await it.broker.until(lambda: bool(it.coordinator.offsets))
        assert it.coordinator.committed == [{P0: 10}]


async def test_without_auto_commit_only_the_start_is_committed() -> None:
    """The consumer commits the start position; only the caller commits later offsets."""
    async with group(TEN) as it:
        async with it.consumer(start=timedelta(seconds=1), **NO_AUTO_COMMIT) as consumer:
            await it.owner.assign([P0])
            await take(aiter(consumer), 4)
        assert it.coordinator.committed == [{P0: 0}]


@pytest.mark.parametrize("start", ["earliest", datetime(2020, 1, 1, tzinfo=UTC)])
@pytest.mark.parametrize("auto_commit", [True, False])
async def test_start_that_every_member_finds_again_is_not_committed(
    start: Any, auto_commit: bool
) -> None:
    async with group(TEN) as it:
        async with it.consumer(start=start, auto_commit=auto_commit) as consumer:
            await it.owner.assign([P0])
            assert await consumer.position(P0) == 0
        assert it.coordinator.commits == []


@pytest.mark.parametrize("how", ["revoked", "closed", "cancelled"])
async def test_start_is_committed_before_the_partition_is_released(how: str) -> None:
    """The first commit of the start position fails with a retriable error."""
    async with group(TEN) as it:
        it.coordinator.commit_errors = ["COORDINATOR_LOAD_IN_PROGRESS"]
        it.coordinator.answers.clear()
        consumer = await it.consumer(start="latest", **NO_AUTO_COMMIT).__aenter__()
        await it.owner.assign([P0])
        assert await consumer.position(P0) == 10
        if how == "revoked":
            await it.broker.until(lambda: bool(it.coordinator.commits))
            ending = asyncio.create_task(it.owner.revoke([P0], FAR))
        elif how == "closed":
            ending = asyncio.create_task(consumer.__aexit__(None, None, None))
        else:
            await it.broker.until(lambda: bool(it.coordinator.commits))
            fault = asyncio.CancelledError()
            ending = asyncio.create_task(consumer.__aexit__(type(fault), fault, None))
        await asyncio.wait([ending], timeout=0.03)
        assert not ending.done()
        it.coordinator.answers.set()
        await ending
        assert it.coordinator.offsets == {P0: (10, -1, "")}
        await consumer.close()


async def test_start_is_committed_although_on_revoked_fails() -> None:
    def on_revoked(partitions: list[tuple[str, int]]) -> None:
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
async def test_start_does_not_overwrite_a_commit_of_the_user(is_placed: bool) -> None:
    async with group(TEN) as it:
        async with it.consumer(start="latest", **NO_AUTO_COMMIT) as consumer:
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


async def test_start_is_committed_again_after_a_refused_commit() -> None:
    clock = ManualClock()
    async with (
        group(TEN, clock=clock) as it,
        it.consumer(start="latest", **NO_AUTO_COMMIT) as consumer,
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


@pytest.mark.slow
async def test_start_none_raises_for_one_partition_and_others_are_read() -> None:
    async with group(TEN, THREE) as it, it.consumer(start="none") as consumer:
        it.coordinator.offsets[P1] = (1, -1, "")
        await it.owner.assign([P0, P1])
        records = aiter(consumer)
        found = []
        for _ in range(2):
            with pytest.raises(NoCommittedOffsetError, match=r"no commit for t\[0\]") as raised:
                found += await take(records, 3)
            assert raised.value.partitions == [P0]
        assert await take_some(records) == [(1, 1), (1, 2)]
        with pytest.raises(NoCommittedOffsetError):
            await consumer.position(P0)
        consumer.seek(P0, 9)
        assert await take(records, 1) == [(0, 9)]


@pytest.mark.parametrize("who", ["the user", "another"])
async def test_start_none_continues_after_a_commit(who: str) -> None:
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


async def test_position_ignores_another_partition_without_a_commit() -> None:
    async with group(TEN, THREE) as it, it.consumer(start="none") as consumer:
        it.coordinator.offsets[P0] = (4, -1, "")
        await it.owner.assign([P0, P1])
        assert await consumer.position(P0) == 4


async def take_some(records: Any) -> list[tuple[int, int]]:
    """Returns (partition, offset) of each record that arrives.

    Polls until no record arrives for 0.2 s, at most 20 times; ignores NoCommittedOffsetError.
    """
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


async def test_start_at_a_time_or_duration_sends_its_timestamp() -> None:
    clock = ManualClock(start_ms=1_000_000)
    for start, wanted in (
        (datetime.fromtimestamp(900, UTC), 900_000),
        (timedelta(seconds=40), 960_000),
        (timedelta(days=99), 0),
    ):
        async with group(TEN, clock=clock) as it, it.consumer(start=start) as consumer:
            await it.owner.assign([P0])
            position = await consumer.position(P0)
            assert timestamps_requested(it)[0] == wanted
            assert position in (0, 10)


async def test_start_after_the_last_timestamp_is_the_end() -> None:
    async with group(TEN) as it:

        def listed(request: Any) -> Any:
            answer = it.log.list_offsets(request)
            for topic, wanted in zip(answer.topics, request.message.topics, strict=True):
                for part, its in zip(topic.partitions, wanted.partitions, strict=True):
                    if its.timestamp >= 0:
                        part.offset = -1
            return answer

        it.broker.answers[ListOffsetsRequest] = listed
        async with it.consumer(start=timedelta(seconds=1)) as consumer:
            await it.owner.assign([P0])
            assert await consumer.position(P0) == 10
            assert await consumer.offsets_for_times({P0: 5}) == {P0: None}


async def test_partitions_added_later_are_read_from_their_start() -> None:
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
        await it.broker.until(
            lambda: P1 in it.coordinator.offsets
        )  # otherwise the next owner would skip these records
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
async def test_invalid_start_is_refused(start: Any, matches: str) -> None:
    async with group(TEN) as it:
        with pytest.raises(ConfigurationError, match=matches):
            it.consumer(start=start)


def test_duration_before_1970_starts_at_time_zero() -> None:
    assert start_time_ms(timedelta(milliseconds=1), 5) == 4
    assert start_time_ms(timedelta(days=1), 5) == 0


async def test_committed_offset_out_of_range_raises_with_start_none() -> None:
    async with group(TEN) as it, it.consumer(start="none") as consumer:
        it.coordinator.offsets[P0] = (99, -1, "")
        await it.owner.assign([P0])
        match = r"OFFSET_OUT_OF_RANGE .* from offset 99, which the group has committed"
        with pytest.raises(BrokerResponseError, match=match):
            await take(aiter(consumer), 1)


@pytest.mark.parametrize(("start", "first"), [("earliest", 0), ("latest", None)])
async def test_committed_offset_after_the_log_end_is_reset_to_start(
    start: Any, first: int | None, caplog: pytest.LogCaptureFixture
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
    continues_at = 10 if first is None else first
    expected = (
        "t[0]: offset 99, which the group has committed, is not in the log; the consumer "
        f"continues at offset {continues_at}, by start={start!r}"
    )
    assert [each.levelname for each in caplog.records if each.message == expected] == ["WARNING"]


async def test_committed_offset_before_the_log_start_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        it.log.starts[P0] = 7
        it.coordinator.offsets[P0] = (3, -1, "")
        await it.owner.assign([P0])
        assert await take(aiter(consumer), 1) == [(0, 7)]
    assert (
        "t[0]: the log no longer has offsets 3 to 6; they are skipped, although the group has "
        "committed offset 3"
    ) in caplog.text


@pytest.mark.parametrize(
    "error",
    [
        "COORDINATOR_LOAD_IN_PROGRESS",
        "NOT_COORDINATOR",
        "UNSTABLE_OFFSET_COMMIT",
        "UNKNOWN_TOPIC_ID",
    ],
)
async def test_offset_fetch_is_retried(error: str) -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        it.coordinator.offsets[P0] = (5, -1, "")
        it.coordinator.fetch_errors = [error, error]
        await it.owner.assign([P0])
        assert await take(aiter(consumer), 1) == [(0, 5)]
        requests = offset_fetches(it)
        assert [each.message.require_stable for each in requests] == [True] * 3


@pytest.mark.slow
async def test_each_assigned_partition_has_its_own_offset_fetch_timeout() -> None:
    """The member loses one partition and gets another while the coordinator is loading."""
    clock = ManualClock()
    async with group(TEN, THREE, settings=PATIENT, clock=clock) as it, it.consumer() as consumer:
        it.coordinator.fetch_errors = list(LOADING)
        await it.owner.assign([P0])
        poll = asyncio.create_task(anext(aiter(consumer)))
        await it.broker.until(lambda: bool(offset_fetches(it)))
        await passes(clock, 800)
        await it.owner.on_partitions_lost([P0])
        await it.owner.assign([P1])
        await passes(clock, 500)  # the deadline of the first lookup has passed
        it.coordinator.fetch_errors = []
        while not poll.done():
            await passes(clock, 100)
        assert (await poll).partition == 1


async def test_seek_ends_the_retries_of_offset_fetch() -> None:
    clock = ManualClock()
    async with (
        group(TEN, settings=PATIENT, clock=clock) as it,
        it.consumer(**NO_AUTO_COMMIT) as consumer,
    ):
        it.coordinator.fetch_errors = list(LOADING)
        await it.owner.assign([P0])
        records = aiter(consumer)
        poll = asyncio.create_task(anext(records))
        await it.broker.until(lambda: bool(offset_fetches(it)))
        consumer.seek(P0, 8)
        assert (await poll).offset == 8
        await passes(clock, 1_500)
        assert (await anext(records)).offset == 9  # the abandoned lookup raises no error
        assert len(offset_fetches(it)) <= 2


async def passes(clock: ManualClock, ms: int) -> None:
    """Advances the clock in steps of 50 ms, so that brokers and clients run in between."""
    for _ in range(0, ms, 50):
        await clock.advance(50)
        await asyncio.sleep(0.002)


def offset_fetches(it: Any) -> list[Any]:
    return [each for each in it.broker.asked if isinstance(each.message, OffsetFetchRequest)]


async def test_unauthorized_offset_fetch_raises_at_each_poll() -> None:
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


async def test_committed_returns_offsets_of_unassigned_partitions() -> None:
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
    """Sets the leader epoch of the Metadata responses."""

    def metadata(request: Any) -> Any:
        answer = it.broker.metadata(request)
        for topic in answer.topics:
            for part in topic.partitions:
                part.leader_epoch = epoch
        return answer

    it.broker.answers[MetadataRequest] = metadata


async def test_truncated_log_is_read_from_the_truncation_offset(
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


async def test_commit_after_truncation_uses_the_position_and_not_the_earlier_commit() -> None:
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


async def test_log_that_still_has_the_committed_offset_is_read_on() -> None:
    async with group(TEN) as it:
        raise_epoch(it, 4)
        it.log.epochs[P0] = (3, 9)
        it.coordinator.offsets[P0] = (8, 3, "")
        async with it.consumer() as consumer:
            await it.owner.assign([P0])
            assert await take(aiter(consumer), 1) == [(0, 8)]
        assert it.log.asked_for_epochs
