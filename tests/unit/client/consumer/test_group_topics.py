"""Topics that change under who reads them in a group: gone, made anew, or only known better."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any

import pytest

from kproto import BrokerResponseError, Client, ClientSettings, NewTopic
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
    """Lets topic `t` have an id, which a test changes."""

    def __init__(self, it: Group, topic_id: Uuid) -> None:
        self.it = it
        self.now = topic_id
        it.log.names = it.coordinator.names = {A: "t", B: "t"}
        it.broker.answers[MetadataRequest] = self.metadata

    def metadata(self, asked: Any) -> Any:
        answer = self.it.broker.metadata(asked)
        for topic in answer.topics:
            topic.topic_id = self.now
        return answer

    async def change(self, topic_id: Uuid) -> None:
        self.now = topic_id
        await self.it.client.refresh(["t"])


async def test_a_topic_that_is_deleted_is_no_error_and_others_go_on() -> None:
    """The leader notices when metadata has grown old; who reads it until then waits."""
    clock = ManualClock()
    settings = ClientSettings(api_timeout_ms=10_000, metadata_max_age_ms=20_000)
    async with (
        Broker(clock=clock) as broker,
        Client(broker.bootstrap, settings, clock=clock) as client,
        client.consumer(["stays", "goes"], group="g", group_protocol="classic") as consumer,
    ):
        await client.create_topics(NewTopic("stays"), NewTopic("goes"))
        asked = asyncio.create_task(anext(aiter(consumer)))
        while len(consumer.assignment) < 2:
            await clock.advance(100)
            await asyncio.sleep(0.001)
        begun = clock.monotonic()
        await client.delete_topics("goes")
        while len(consumer.assignment) > 1:
            await clock.advance(100)  # little, as bytes move in real time
            await asyncio.sleep(0.001)
            assert not asked.done()
        assert clock.monotonic() - begun > settings.api_timeout_ms / 1000
        async with client.producer() as producer:
            await producer.send("stays", b"one")
        while not asked.done():
            await clock.advance(100)
            await asyncio.sleep(0.001)
        assert (await asked).value == b"one"
        closing = asyncio.create_task(consumer.close())  # tries to commit what is gone
        while not closing.done():
            await clock.advance(100)
            await asyncio.sleep(0.001)
        await closing


@pytest.mark.parametrize("others", [[], ["t"]])
async def test_a_topic_that_will_never_be_read_is_told_to_who_does_not_lead_too(
    others: list[str],
) -> None:
    clock = ManualClock()

    async def passes(condition: Any) -> None:
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
        await passes(lambda: leading.assignment)
        await following.__aenter__()
        asked = asyncio.create_task(anext(aiter(following)))
        await passes(asked.done)
        with pytest.raises(BrokerResponseError, match="subscribing to topic 'no topic!'"):
            await asked
        for consumer in (leading, following):
            closing = asyncio.create_task(consumer.close())
            await passes(closing.done)
            await closing


@pytest.mark.parametrize("group_protocol", ["classic", "consumer"])
async def test_a_topic_that_is_not_there_is_told_once_after_a_fresh_one_would_be_known(
    group_protocol: Any, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock()

    async def passes(condition: Any, ms: int = 100) -> None:
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
        await passes(lambda: first.assignment)
        begun = clock.monotonic()
        second = other.consumer(["ordres", "t", "late"], **given)
        await second.__aenter__()
        asked = asyncio.create_task(anext(aiter(second)))
        await passes(lambda: clock.monotonic() > begun + 4)
        await client.create_topics(NewTopic("late"))
        assert "not there" not in caplog.text
        await passes(lambda: clock.monotonic() > begun + 60, 250)
        told = [each.getMessage() for each in caplog.records if "not there" in each.getMessage()]
        assert told == [
            "group billing: topic ordres, which it subscribes to, is not there: it is waited for"
        ]
        assert not asked.done()
        for consumer in (first, second):
            closing = asyncio.create_task(consumer.close())
            await passes(closing.done)
            await closing
        asked.cancel()


async def test_who_reads_by_hand_is_told_that_a_topic_is_gone() -> None:
    async with group(TEN) as it:
        it.log.failing[P0] = 3
        it.broker.answers[MetadataRequest] = it.broker.metadata
        async with it.consumer([P0]) as consumer:
            del it.broker.topics["t"]
            with pytest.raises(BrokerResponseError, match="UNKNOWN_TOPIC_OR_PARTITION"):
                await anext(aiter(consumer))


async def test_a_topic_made_anew_is_read_from_its_start(caplog: pytest.LogCaptureFixture) -> None:
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
            assert "topic t was made anew; it is read from its start" in caplog.text
            it.coordinator.refused.clear()
            with pytest.raises(
                CommitFailedError, match=r"t\[0\]: .* or of a topic that was recreated"
            ):
                await committing  # it was of the old one
            await consumer.commit()
            assert it.coordinator.offsets == {P0: (0, -1, "")}


async def test_what_was_handed_out_of_the_old_topic_is_not_committed_of_the_new_one() -> None:
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
            with pytest.raises(CommitFailedError, match=r"t\[0\]: .* since that was handed out"):
                await consumer.commit(old)
            new = await anext(records)
            await consumer.commit(new)
            assert it.coordinator.committed == [{P0: 2}]


async def test_where_the_old_topic_was_begun_with_is_not_committed_of_the_new_one() -> None:
    """But its start is at once: it would be passed over by who has no commit of it."""
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


async def test_a_commit_of_the_old_topic_is_not_made_again_of_the_new_one() -> None:
    """Up to v9 a commit names its topic: one that the coordinator did not know was the old one."""
    async with group(TEN) as it:
        ids = Ids(it, A)
        await it.client.refresh(["t"])
        async with it.consumer(auto_commit=False) as consumer:
            await it.owner.assign([P0])
            await take(aiter(consumer), 3)
            it.coordinator.commit_errors = ["UNKNOWN_TOPIC_OR_PARTITION"]
            committing = asyncio.create_task(consumer.commit())
            await it.broker.until(lambda: bool(it.coordinator.commits))
            ids.now = B  # nobody has heard of it yet
            with pytest.raises(CommitFailedError, match="of a topic that was recreated"):
                await committing
            assert it.coordinator.offsets == {}


async def test_a_topic_made_anew_is_read_once_it_is_assigned() -> None:
    """KIP-848: brokers assign by ids, and may give the new topic to somebody else."""
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
            commits = len(it.coordinator.commits)
            await it.owner.revoke([P0], until=float("inf"))
            assert len(it.coordinator.commits) == commits  # nothing is done of the new one
            await it.owner.assign([P0])
            assert await take(records, 2) == [(0, 0), (0, 1)]


async def test_a_broker_that_lags_behind_a_topic_made_anew_does_not_end_the_reading() -> None:
    """It tells of the topic that was; that of the assigned id goes on when it is heard of again."""
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
            assert await take(records, 1) == [(0, len(TEN) - 1)]  # which was in hand then


async def test_a_topic_made_anew_is_noticed_before_the_last_commit() -> None:
    """Metadata that came since nobody asked for records counts, too."""
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
async def test_who_asks_for_commits_at_an_old_epoch_asks_again(error: str) -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        it.coordinator.offsets[P0] = (7, -1, "")
        it.member.identity = who = MemberIdentity("g", "m", 7, None, has_epoch=True)
        it.coordinator.fetch_errors = [error]
        await it.owner.assign([P0])
        assert await take(aiter(consumer), 1) == [(0, 7)]
        assert it.member.refused == [(error, who)]


@pytest.mark.parametrize(("before", "after"), [(ZERO_UUID, A), (A, ZERO_UUID)])
@pytest.mark.parametrize("is_in_group", [True, False])
async def test_a_topic_that_has_got_an_id_is_the_same(
    before: Uuid, after: Uuid, is_in_group: bool
) -> None:
    """As brokers that know of ids take over from older ones, in a cluster that runs."""
    async with group(TEN) as it:
        ids = Ids(it, before)
        await it.client.refresh(["t"])
        consumer = it.consumer() if is_in_group else it.client.consumer("t", max_wait_ms=20)
        async with consumer:
            if is_in_group:
                await it.owner.assign([P0])
            records = aiter(consumer)
            await take(records, 10)
            await ids.change(after)
            it.log.append(batch(10, [b"new"]))
            assert await take(records, 1) == [(0, 10)]


async def test_what_becomes_of_a_fetch_is_no_matter_of_who_has_come_back() -> None:
    retried = []

    class Told(Hooks):
        def on_retry(self, event: RetryEvent) -> None:
            retried.append((event.topic, event.partition))

    settings = replace(QUICK, hooks=Told())
    async with group(TEN, THREE, settings=settings) as it, it.consumer() as consumer:
        holds = asyncio.Event()

        async def fetched(asked: Any) -> Any:
            await holds.wait()
            it.broker.answers[FetchRequest] = it.log.fetch
            return HANG_UP

        it.broker.answers[FetchRequest] = fetched
        await it.owner.assign([P0, P1])
        reading = asyncio.create_task(take(aiter(consumer), 1))
        await it.broker.until(lambda: it.broker.count(FetchRequest) > 0)
        consumer.seek(P0, 2)
        holds.set()
        await reading
        assert retried == [P1]


@pytest.mark.parametrize(("partitions", "lag"), [(1, {P0: 0}), (0, {})])
async def test_the_lag_is_told_of_partitions_that_are_there(
    partitions: int, lag: dict[Any, int]
) -> None:
    """Until the group agrees anew, some are assigned that the topic made anew has no more."""
    settings = ClientSettings(metadata_wait_ms=50, api_timeout_ms=1_000)
    async with (
        Broker() as broker,
        Client(broker.bootstrap) as admin,
        Client(broker.bootstrap, settings) as client,
    ):
        await admin.create_topics(NewTopic("t", partitions=2))
        async with client.consumer("t", group="g", group_protocol="classic") as consumer:
            asked = asyncio.create_task(anext(aiter(consumer)))
            while len(consumer.assignment) < 2:  # noqa: ASYNC110 - it is no event of this loop
                await asyncio.sleep(0.002)
            assert await consumer.lag() == {P0: 0, P1: 0}
            await admin.delete_topics("t")
            if partitions:
                await admin.create_topics(NewTopic("t", partitions=partitions))
            client._view.cluster.forget(["t"])
            assert await consumer.lag() == lag
            asked.cancel()
