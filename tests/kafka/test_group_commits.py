"""Tests offsets that a group commits for manually assigned partitions, on real brokers."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

import kproto
from kproto.client.commits.offset_requests import (
    OffsetAndMetadata,
    commit_answers,
    commit_requests,
    committed_in,
    committed_requests,
)
from kproto.client.fetch.start_options import GroupStart
from kproto.messages import OffsetCommitRequest, OffsetFetchRequest
from kproto.wire.uuid import ZERO_UUID
from tests.support.brokers import versions

pytestmark = pytest.mark.parametrize("broker_version", versions())


async def fill(client: kproto.Client, topic: str, count: int, partition: int = 0) -> None:
    async with client.producer() as producer:
        records = [kproto.ProducerRecord(b"%d" % at, partition=partition) for at in range(count)]
        await producer.send_many(topic, records)


async def take(consumer: kproto.GroupConsumer, count: int) -> list[int]:
    offsets: list[int] = []
    async for record in consumer:
        offsets.append(record.offset)
        if len(offsets) == count:
            break
    return offsets


async def test_consumer_resumes_at_the_committed_offset(client: kproto.Client, topic: str) -> None:
    await fill(client, topic, 10)
    tp = (topic, 0)
    async with client.consumer([tp], group=topic) as consumer:
        assert await consumer.committed() == {tp: None}
        assert await take(consumer, 4) == [0, 1, 2, 3]
        assert await consumer.lag() == {tp: 6}
    async with client.consumer([tp], group=topic) as consumer:
        committed = (await consumer.committed())[tp]
        assert committed is not None
        assert (committed.offset, committed.metadata) == (4, "")
        assert committed.leader_epoch >= 0
        assert await consumer.position(tp) == 4
        assert await take(consumer, 2) == [4, 5]
        await consumer.commit(metadata="five is in flight")
        assert (await consumer.committed(tp))[tp] == (
            5,
            committed.leader_epoch,
            "five is in flight",
        )
        consumer.seek(tp, 9)
        assert await take(consumer, 1) == [9]


async def test_partition_without_a_commit_starts_as_configured(
    client: kproto.Client, topic: str
) -> None:
    now = time.time_ns() // 1_000_000
    times = [now - 7_200_000, now - 3_700_000, now - 3_500_000, now - 1_000]
    async with client.producer() as producer:
        for time_ms in times:
            await producer.send(topic, b"", partition=0, timestamp=time_ms)
    tp = (topic, 0)
    starts: list[tuple[GroupStart, int]] = [
        ("earliest", 0),
        ("latest", 4),
        (datetime.fromtimestamp(times[1] / 1000, UTC), 1),
        (datetime.fromtimestamp(now / 1000 + 3_600, UTC), 4),
        (timedelta(hours=1), 2),
        (timedelta(days=99), 0),
        (timedelta(), 4),
    ]
    for number, (start, begins) in enumerate(starts):  # one group each
        group = f"{topic}-{number}"
        async with client.consumer([tp], group=group, start=start, auto_commit=False) as it:
            assert await it.position(tp) == begins
    async with client.consumer([tp], group=topic, start="none") as consumer:
        with pytest.raises(kproto.NoCommittedOffsetError, match="has no commit"):
            await take(consumer, 1)


async def test_offsets_for_times_returns_the_first_later_offset(
    client: kproto.Client, topic: str
) -> None:
    await fill(client, topic, 3)
    async with client.consumer([(topic, 0)], group=topic) as consumer:
        later = time.time_ns() // 1_000_000 + 3_600_000
        found = await consumer.offsets_for_times({(topic, 0): 0, (topic, 1): 0})
        assert found == {(topic, 0): 0, (topic, 1): None}
        assert await consumer.offsets_for_times({(topic, 0): later}) == {(topic, 0): None}


async def test_commits_are_fetched_equally_in_every_version(
    client: kproto.Client, topic: str
) -> None:
    """Tries every pair of OffsetCommit and OffsetFetch versions from v1 on, by topic name or id."""
    connection = await client.connection()
    info = await client.topic(topic)
    tp = (topic, 2)
    offset = 0
    tried = []
    for version in OffsetCommitRequest.VALID_VERSIONS[1:]:  # v0 stores offsets in ZooKeeper
        takes = connection.ranges[OffsetCommitRequest.API_KEY]
        if not takes.lowest <= version <= min(takes.highest, OffsetCommitRequest.LATEST_STABLE):
            continue
        offset += 1
        commits = {tp: OffsetAndMetadata(offset, 0, info.topic_id, f"v{version}")}
        by_id, by_name = commit_requests(topic, None, commits, lambda its: its.metadata)
        request = by_id if version >= 10 else by_name

        async def commit(
            request: OffsetCommitRequest = request,
            version: int = version,
            commits: dict[tuple[str, int], OffsetAndMetadata] = commits,
        ) -> None:
            answer = await client.request(request, version=version)
            for error in commit_answers(answer, commits).values():
                if error is not None:
                    raise error

        await client.retrying(commit)
        for reading in OffsetFetchRequest.VALID_VERSIONS[1:]:
            takes = connection.ranges[OffsetFetchRequest.API_KEY]
            if not takes.lowest <= reading <= min(takes.highest, OffsetFetchRequest.LATEST_STABLE):
                continue

            def id_of(name: str, reading: int = reading) -> kproto.Uuid:
                return info.topic_id if reading >= 10 else ZERO_UUID

            shapes = list(committed_requests(topic, [tp, (topic, 1)], id_of))
            shape = shapes[0 if reading >= 8 else 1 if reading == 7 else 2]
            found = await client.request(shape, version=reading)
            epoch = 0 if version >= 6 and reading >= 5 else -1
            assert committed_in(found, topic, [tp, (topic, 1)], id_of) == {
                tp: (offset, epoch, f"v{version}"),
                (topic, 1): None,
            }
            tried.append((version, reading))
    assert len(tried) >= 64


async def test_too_large_metadata_and_unassigned_partitions_fail_the_commit(
    client: kproto.Client, topic: str
) -> None:
    async with client.consumer([(topic, 0)], group=topic) as consumer:
        with pytest.raises(kproto.BrokerResponseError, match="OFFSET_METADATA_TOO_LARGE"):
            await consumer.commit({(topic, 0): 0}, "x" * 5_000)
        with pytest.raises(kproto.CommitFailedError, match="not assigned"):
            await consumer.commit({(topic, 1): 0})


async def test_recreated_topic_has_no_commit(client: kproto.Client) -> None:
    """A consumer with the deleted topic's offsets would skip records of the new topic."""
    name = f"anew-{time.time_ns()}"
    await client.create_topics(name)
    await client.topic(name)
    await fill(client, name, 5)
    async with client.consumer([(name, 0)], group=name) as consumer:
        assert await take(consumer, 3) == [0, 1, 2]
        await client.delete_topics(name)
        while True:
            try:
                await client.create_topics(name)
                break
            except kproto.BrokerResponseError:
                continue  # the broker still deletes the former topic
        while (await client.refresh([name]))[0].error_code:
            pass
        await fill(client, name, 2)
        while (await consumer.committed((name, 0)))[name, 0] is not None:
            pass
        consumer.seek((name, 0), "earliest")
        offsets = await take(consumer, 2)
        assert offsets == [0, 1]
    await client.delete_topics(name)
