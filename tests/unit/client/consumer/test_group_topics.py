"""Tests a group whose topics are missing, invalid, deleted, recreated, or given a topic id."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any

import pytest

from kproto import (
    BrokerResponseError,
    Client,
    ClientSettings,
    ConfigurationError,
    Consumer,
    GroupConsumer,
    NewTopic,
)
from kproto.broker import Broker
from kproto.client.commits.errors import CommitFailedError
from kproto.client.groups.effects import MemberIdentity
from kproto.client.observing.hooks import Hooks, RetryEvent
from kproto.messages import FetchRequest, MetadataRequest
from kproto.testing.clock import ManualClock
from kproto.wire.uuid import ZERO_UUID, Uuid
from tests.unit.client.consumer.grouped import QUICK, Group, group
from tests.unit.client.consumer.test_group_reading import P0, P1, TEN, THREE, quiet, take
from tests.unit.client.scripted_broker import HANG_UP
from tests.unit.client.scripted_log import batch

A, B = Uuid(bytes(15) + b"a"), Uuid(bytes(15) + b"b")


class Ids:
    """Gives topic `t` an id, which the test changes to recreate the topic."""

    def __init__(self, it: Group, topic_id: Uuid) -> None:
        self.it = it
        self.now = topic_id
        it.log.names = it.coordinator.names = {A: "t", B: "t"}
        it.broker.answers[MetadataRequest] = self.metadata

    def metadata(self, request: Any) -> Any:
        answer = self.it.broker.metadata(request)
        for topic in answer.topics:
            topic.topic_id = self.now
        return answer

    async def change(self, topic_id: Uuid) -> None:
        self.now = topic_id
        await self.it.client.refresh(["t"])


async def test_deleted_topic_raises_no_error_and_others_are_read() -> None:
    """The group leader notices the deletion when its metadata expires; until then polls wait."""
    clock = ManualClock()
    settings = ClientSettings(api_timeout_ms=10_000, metadata_max_age_ms=20_000)
    async with (
        Broker(clock=clock) as broker,
        Client(broker.bootstrap, settings, clock=clock) as client,
        client.consumer(["stays", "goes"], group="g", group_protocol="classic") as consumer,
    ):
        await client.create_topics(NewTopic("stays"), NewTopic("goes"))
        poll = asyncio.create_task(anext(aiter(consumer)))
        while len(consumer.assignment) < 2:
            await clock.advance(100)
            await asyncio.sleep(0.001)
        begun = clock.monotonic()
        await client.delete_topics("goes")
        while len(consumer.assignment) > 1:
            await clock.advance(100)  # small steps, because network I/O needs real time
            await asyncio.sleep(0.001)
            assert not poll.done()
        assert clock.monotonic() - begun > settings.api_timeout_ms / 1000
        async with client.producer() as producer:
            await producer.send("stays", b"one")
        while not poll.done():
            await clock.advance(100)
            await asyncio.sleep(0.001)
        assert (await poll).value == b"one"
        closing = asyncio.create_task(consumer.close())  # commits the deleted topic
        while not closing.done():
            await clock.advance(100)
            await asyncio.sleep(0.001)
        await closing


@pytest.mark.parametrize("others", [[], ["t"]])
async def test_invalid_topic_raises_for_a_follower_of_the_group(
    others: list[str],
) -> None:
    clock = ManualClock()

    async def advance_until(condition: Any) -> None:
        while not condition():
            await clock.advance(100)
            await asyncio.sleep(0.001)

    async with (
        Broker(clock=clock) as broker,
        Client(broker.bootstrap, clock=clock) as client,
        Client(broker.bootstrap, clock=clock) as other,
    ):
        await client.create_topics(NewTopic("t", partitions=2))
        leading = client.consumer("t", group="g", group_protocol="classic")
        topics = [*others, "no topic!"]
        following = other.consumer(topics, group="g", group_protocol="classic")
        await leading.__aenter__()
        await advance_until(lambda: leading.assignment)
        await following.__aenter__()
        poll = asyncio.create_task(anext(aiter(following)))
        await advance_until(poll.done)
        with pytest.raises(BrokerResponseError, match="subscribing to topic 'no topic!'"):
            await poll
        for consumer in (leading, following):
            closing = asyncio.create_task(consumer.close())
            await advance_until(closing.done)
            await closing


@pytest.mark.parametrize("group_protocol", ["classic", "consumer"])
@pytest.mark.slow
async def test_missing_topic_is_logged_once_after_a_grace_period(
    group_protocol: Any, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock()

    async def advance_until(condition: Any, ms: int = 100) -> None:
        while not condition():
            await clock.advance(ms)
            await asyncio.sleep(0.001)

    settings = ClientSettings(metadata_max_age_ms=10_000)
    async with (
        Broker(clock=clock) as broker,
        Client(broker.bootstrap, settings, clock=clock) as client,
        Client(broker.bootstrap, settings, clock=clock) as other,
    ):
        await client.create_topics(NewTopic("t"))
        given: Any = {"group": "billing", "group_protocol": group_protocol}
        first = client.consumer("t", **given)
        await first.__aenter__()
        await advance_until(lambda: first.assignment)
        begun = clock.monotonic()
        second = other.consumer(["ordres", "t", "late"], **given)
        await second.__aenter__()
        poll = asyncio.create_task(anext(aiter(second)))
        await advance_until(lambda: clock.monotonic() > begun + 4)
        await client.create_topics(NewTopic("late"))
        assert "does not exist yet" not in caplog.text
        await advance_until(lambda: clock.monotonic() > begun + 60, 250)
        warnings = [
            each.getMessage()
            for each in caplog.records
            if "does not exist yet" in each.getMessage()
        ]
        assert warnings == ["group billing: the subscribed topic ordres does not exist yet"]
        assert not poll.done()
        for consumer in (first, second):
            closing = asyncio.create_task(consumer.close())
            await advance_until(closing.done)
            await closing
        poll.cancel()


@pytest.mark.slow
async def test_manual_assignment_raises_for_a_deleted_topic() -> None:
    async with group(TEN) as it:
        it.log.failing[P0] = 3
        it.broker.answers[MetadataRequest] = it.broker.metadata
        async with it.consumer([P0]) as consumer:
            del it.broker.topics["t"]
            with pytest.raises(BrokerResponseError, match="UNKNOWN_TOPIC_OR_PARTITION"):
                await anext(aiter(consumer))


async def test_recreated_topic_is_read_from_its_start(caplog: pytest.LogCaptureFixture) -> None:
    async with group(TEN) as it:
        ids = Ids(it, A)
        it.coordinator.offsets[P0] = (7, -1, "")
        await it.client.refresh(["t"])
        async with it.consumer(auto_commit=False) as consumer:
            await it.owner.assign([P0])
            records = aiter(consumer)
            assert await take(records, 2) == [(0, 7), (0, 8)]
            it.coordinator.refused[P0] = "COORDINATOR_LOAD_IN_PROGRESS"
            committing = asyncio.create_task(consumer.commit({P0: 8}))
            await it.broker.until(lambda: bool(it.coordinator.commits))
            with caplog.at_level(logging.WARNING):
                await ids.change(B)
                while await take(records, 1) != [(0, 0)]:
                    pass
            assert "topic t was recreated; it is read from its start" in caplog.text
            it.coordinator.refused.clear()
            with pytest.raises(
                CommitFailedError, match=r"t\[0\]: .* or of a topic that was recreated"
            ):
                await committing  # the commit was for the old topic
            await consumer.commit()
            assert it.coordinator.offsets == {P0: (0, -1, "")}


async def test_record_of_a_deleted_topic_cannot_be_committed() -> None:
    async with group(TEN) as it:
        ids = Ids(it, A)
        await it.client.refresh(["t"])
        async with it.consumer(auto_commit=False) as consumer:
            await it.owner.assign([P0])
            records = aiter(consumer)
            old = [await anext(records) for _ in TEN][-1]
            await quiet(records)
            await ids.change(B)
            assert await take(records, 1) == [(0, 0)]
            with pytest.raises(
                CommitFailedError, match=r"t\[0\]: .* since the record was returned"
            ):
                await consumer.commit(old)
            new = await anext(records)
            await consumer.commit(new)
            assert it.coordinator.committed == [{P0: 2}]


async def test_start_of_a_deleted_topic_is_not_committed() -> None:
    """Only the start position in the recreated topic is committed, and it is committed at once.

    Otherwise the next owner would skip the first records of that topic.
    """
    async with group(TEN) as it:
        ids = Ids(it, A)
        await it.client.refresh(["t"])
        it.coordinator.refused[P0] = "COORDINATOR_LOAD_IN_PROGRESS"
        async with it.consumer(start="latest", auto_commit=False) as consumer:
            await it.owner.assign([P0])
            assert await consumer.position(P0) == 10
            await it.broker.until(lambda: bool(it.coordinator.commits))
            records = aiter(consumer)
            await quiet(records)
            await ids.change(B)
            assert await take(records, 1) == [(0, 0)]
            before = len(it.coordinator.commits)
            it.coordinator.refused.clear()
            await it.broker.until(lambda: bool(it.coordinator.offsets))
            assert it.coordinator.offsets == {P0: (0, -1, "")}
            new = {
                topic.topic_id for each in it.coordinator.commits[before:] for topic in each.topics
            }
            assert new == {B}


async def test_commit_of_a_deleted_topic_is_not_retried() -> None:
    """OffsetCommit up to v9 has only the topic name: a retry could commit for a recreated topic."""
    async with group(TEN) as it:
        ids = Ids(it, A)
        await it.client.refresh(["t"])
        async with it.consumer(auto_commit=False) as consumer:
            await it.owner.assign([P0])
            await take(aiter(consumer), 3)
            it.coordinator.commit_errors = ["UNKNOWN_TOPIC_OR_PARTITION"]
            committing = asyncio.create_task(consumer.commit())
            await it.broker.until(lambda: bool(it.coordinator.commits))
            ids.now = B  # the client has not refreshed its metadata yet
            with pytest.raises(CommitFailedError, match="of a topic that was recreated"):
                await committing
            assert it.coordinator.offsets == {}


@pytest.mark.slow
async def test_recreated_topic_is_read_after_its_assignment() -> None:
    """KIP-848 assigns topics by id; the broker may assign the new topic to another member."""
    async with group(TEN) as it:
        ids = Ids(it, A)
        await it.client.refresh(["t"])
        async with it.consumer(auto_commit=False, start="latest") as consumer:
            it.member.identity = MemberIdentity("g", "m", 7, None, has_epoch=True)
            await it.owner.assign([P0])
            consumer.seek(P0, 0)
            records = aiter(consumer)
            await take(records, len(TEN))
            await ids.change(B)
            await quiet(records)
            with pytest.raises(ConfigurationError, match="has not assigned the new topic yet"):
                await consumer.position(P0)
            assert await consumer.lag() == {}
            commits = len(it.coordinator.commits)
            await it.owner.revoke([P0], until=float("inf"))
            assert len(it.coordinator.commits) == commits  # no record of the new topic is processed
            await it.owner.assign([P0])
            assert await take(records, 2) == [(0, 0), (0, 1)]


async def test_stale_metadata_of_a_recreated_topic_pauses_reading() -> None:
    """A broker with old metadata reports the old topic id.

    Reading resumes when metadata has the assigned topic id again.
    """
    async with group(TEN) as it:
        ids = Ids(it, B)
        await it.client.refresh(["t"])
        async with it.consumer(auto_commit=False) as consumer:
            it.member.identity = MemberIdentity("g", "m", 7, None, has_epoch=True)
            it.member.assigned_ids = {(P0, B)}
            await it.owner.assign([P0])
            records = aiter(consumer)
            await take(records, len(TEN))
            await consumer.commit()
            await ids.change(A)
            await quiet(records)
            await ids.change(B)
            assert await take(records, 1) == [(0, len(TEN) - 1)]  # was in flight


async def test_last_commit_skips_a_recreated_topic() -> None:
    """The last commit also checks metadata that arrived after the last poll."""
    async with group(TEN) as it:
        ids = Ids(it, A)
        await it.client.refresh(["t"])
        async with it.consumer() as consumer:
            it.member.identity = MemberIdentity("g", "m", 7, None, has_epoch=True)
            await it.owner.assign([P0])
            await take(aiter(consumer), 3)
            await consumer.commit()
            commits = len(it.coordinator.commits)
            await ids.change(B)
            await it.owner.revoke([P0], until=0.0)
            assert len(it.coordinator.commits) == commits


@pytest.mark.parametrize("error", ["STALE_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID"])
async def test_offset_fetch_at_a_stale_epoch_is_retried(error: str) -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        it.coordinator.offsets[P0] = (7, -1, "")
        it.member.identity = identity = MemberIdentity("g", "m", 7, None, has_epoch=True)
        it.coordinator.fetch_errors = [error]
        await it.owner.assign([P0])
        assert await take(aiter(consumer), 1) == [(0, 7)]
        assert it.member.refused == [(error, identity)]


@pytest.mark.parametrize(("before", "after"), [(ZERO_UUID, A), (A, ZERO_UUID)])
@pytest.mark.parametrize("is_in_group", [True, False])
async def test_topic_that_gets_an_id_keeps_its_position(
    before: Uuid, after: Uuid, is_in_group: bool
) -> None:
    """Topics get ids during the rolling upgrade of a cluster."""
    async with group(TEN) as it:
        ids = Ids(it, before)
        await it.client.refresh(["t"])
        consumer: Consumer | GroupConsumer
        consumer = it.consumer() if is_in_group else it.client.consumer("t", max_wait_ms=20)
        async with consumer:
            if is_in_group:
                await it.owner.assign([P0])
            records = aiter(consumer)
            await take(records, 10)
            await ids.change(after)
            it.log.append(batch(10, [b"new"]))
            assert await take(records, 1) == [(0, 10)]


async def test_failed_fetch_does_not_retry_a_partition_that_was_moved() -> None:
    retried = []

    class RetryHooks(Hooks):
        def on_retry(self, event: RetryEvent) -> None:
            retried.append((event.topic, event.partition))

    settings = replace(QUICK, hooks=RetryHooks())
    async with group(TEN, THREE, settings=settings) as it, it.consumer() as consumer:
        released = asyncio.Event()

        async def hang_up(request: Any) -> Any:
            await released.wait()
            it.broker.answers[FetchRequest] = it.log.fetch
            return HANG_UP

        it.broker.answers[FetchRequest] = hang_up
        await it.owner.assign([P0, P1])
        reading = asyncio.create_task(take(aiter(consumer), 1))
        await it.broker.until(lambda: it.broker.count(FetchRequest) > 0)
        consumer.seek(P0, 2)
        released.set()
        await reading
        assert retried == [P1]


@pytest.mark.parametrize(("partitions", "lag"), [(1, {P0: 0}), (0, {})])
async def test_lag_covers_only_partitions_that_exist(partitions: int, lag: dict[Any, int]) -> None:
    """The topic is deleted, and recreated with fewer partitions or not at all.

    The missing partitions stay assigned until the next rebalance.
    """
    settings = ClientSettings(metadata_wait_ms=50, api_timeout_ms=1_000)
    async with (
        Broker() as broker,
        Client(broker.bootstrap) as admin,
        Client(broker.bootstrap, settings) as client,
    ):
        await admin.create_topics(NewTopic("t", partitions=2))
        async with client.consumer("t", group="g", group_protocol="classic") as consumer:
            poll = asyncio.create_task(anext(aiter(consumer)))
            while len(consumer.assignment) < 2:  # noqa: ASYNC110 - it is no event of this loop
                await asyncio.sleep(0.002)
            assert await consumer.lag() == {P0: 0, P1: 0}
            await admin.delete_topics("t")
            if partitions:
                await admin.create_topics(NewTopic("t", partitions=partitions))
            client._view.cluster.forget(["t"])
            assert await consumer.lag() == lag
            poll.cancel()
