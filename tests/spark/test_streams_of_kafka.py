"""Tests streams on real Kafka: topics grow, shrink or are deleted; offsets are committed."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from kproto.client import Client, NewTopic, ProducerRecord
from kproto.messages import (
    CreatePartitionsRequest,
    DeleteRecordsRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from kproto.messages.create_partitions_request import CreatePartitionsTopic
from kproto.messages.delete_records_request import DeleteRecordsPartition, DeleteRecordsTopic
from kproto.messages.join_group_request import JoinGroupRequestProtocol
from kproto.messages.leave_group_request import MemberIdentity
from kproto.messages.sync_group_request import SyncGroupRequestAssignment
from tests.spark.conftest import Topics
from tests.spark.streams import options, read_all, rows_of, send, start

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.exhaustive,
    pytest.mark.filterwarnings("ignore:::pyspark"),
]


async def _send_all(topics: Topics, *requests: Any) -> list[Any]:
    async with Client(topics.bootstrap) as client:
        return [await client.request(each) for each in requests]


def send_all(topics: Topics, *requests: Any) -> list[Any]:
    return asyncio.run(_send_all(topics, *requests))


def cut(topic: str, offset: int) -> DeleteRecordsRequest:
    part = DeleteRecordsPartition(partition_index=0, offset=offset)
    return DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=[part])], timeout_ms=30_000
    )


def values(spark: Any, folder: Path) -> list[int]:
    return [int(row["value"]) for row in rows_of(spark, folder)]


def add_partitions(topics: Topics, topic: str, count: int) -> None:
    """Adds partitions, and waits until the broker's metadata has them."""
    wanted = CreatePartitionsTopic(name=topic, count=count, assignments=None)
    (answer,) = send_all(topics, CreatePartitionsRequest(topics=[wanted], timeout_ms=30_000))
    assert not answer.results[0].error_code, answer

    async def wait_for_metadata() -> None:
        async with Client(topics.bootstrap) as client, asyncio.timeout(30):
            while len((await client.refresh([topic]))[0].partitions) < count:  # noqa: ASYNC110
                await asyncio.sleep(0.1)

    asyncio.run(wait_for_metadata())


def test_added_partitions_are_read_from_earliest(
    spark: Any, topics: Topics, topic_name: str, tmp_path: Path
) -> None:
    topics.fill(topic_name, [ProducerRecord(b"0")])
    query = start(spark, options(topics, topic_name), tmp_path, processingTime="0 seconds")
    try:
        query.processAllAvailable()
        add_partitions(topics, topic_name, 3)
        for partition in (1, 2):
            send(topics, topic_name, [partition], partition)
        query.processAllAvailable()
        send(topics, topic_name, [3], 2)
        query.processAllAvailable()
    finally:
        query.stop()
    assert values(spark, tmp_path) == [0, 1, 2, 3]


@pytest.mark.parametrize("fails", ["true", "false"])
def test_truncated_log_is_data_loss(
    spark: Any, topics: Topics, topic_name: str, tmp_path: Path, fails: str
) -> None:
    """Between two runs, records that the stream has not read yet are deleted."""
    topics.fill(topic_name, [ProducerRecord(b"%d" % n) for n in range(10)])
    wanted = options(topics, topic_name, failOnDataLoss=fails)
    read_all(spark, wanted, tmp_path)
    send(topics, topic_name, range(10, 30))
    send_all(topics, cut(topic_name, 20))
    if fails == "true":
        with pytest.raises(Exception, match="the log now begins at 20, after the start 10"):
            read_all(spark, wanted, tmp_path)
        wanted["failOnDataLoss"] = "false"
    read_all(spark, wanted, tmp_path)
    assert values(spark, tmp_path) == [*range(10), *range(20, 30)]


async def recreate(topics: Topics, topic: str) -> None:
    """Deletes a topic, and creates it again as soon as the broker accepts the creation."""
    async with Client(topics.bootstrap) as client:
        await client.delete_topics(topic)
        while True:
            try:
                await client.create_topics(NewTopic(topic))
                return
            except Exception:
                await asyncio.sleep(0.1)


@pytest.mark.parametrize("fails", ["true", "false"])
def test_deleted_or_recreated_topic_is_data_loss(
    spark: Any, topics: Topics, topic_name: str, tmp_path: Path, fails: str
) -> None:
    topics.fill(topic_name, [ProducerRecord(b"%d" % n) for n in range(3)])
    wanted = options(topics, topic_name, failOnDataLoss=fails)
    query = start(spark, wanted, tmp_path, processingTime="0 seconds")

    try:
        query.processAllAvailable()
        asyncio.run(recreate(topics, topic_name))
        send(topics, topic_name, range(10, 16))
        if fails == "true":
            with pytest.raises(Exception, match=r"the topic was recreated|is gone"):
                query.processAllAvailable()
        else:
            query.processAllAvailable()
            assert sorted(values(spark, tmp_path)) == [0, 1, 2, *range(10, 16)]
    finally:
        query.stop()


@pytest.mark.parametrize("fails", ["true", "false"])
def test_topic_recreated_between_two_runs_is_data_loss(
    spark: Any, topics: Topics, topic_name: str, tmp_path: Path, fails: str
) -> None:
    """The log of the recreated topic ends before the offset at which the stream would continue.

    With `failOnDataLoss` the stream fails. Without this option the stream continues at the end of
    the log.
    """
    topics.fill(topic_name, [ProducerRecord(b"%d" % n) for n in range(5)])
    wanted = options(topics, topic_name, failOnDataLoss=fails)
    read_all(spark, wanted, tmp_path)
    asyncio.run(recreate(topics, topic_name))
    send(topics, topic_name, range(10, 12))
    if fails == "true":
        with pytest.raises(Exception, match="the log was truncated from 5 to 2"):
            read_all(spark, wanted, tmp_path)
        wanted["failOnDataLoss"] = "false"
    read_all(spark, wanted, tmp_path)
    send(topics, topic_name, range(12, 15))
    read_all(spark, wanted, tmp_path)
    assert sorted(values(spark, tmp_path)) == [*range(5), *range(12, 15)]


def committed(topics: Topics, group: str, topic: str) -> list[int | None]:
    """Returns the committed offsets of partitions 0 and 1; waits for the group's coordinator."""
    tps = [(topic, number) for number in range(2)]

    async def fetch() -> list[int | None]:
        async with (
            Client(topics.bootstrap) as client,
            client.consumer(tps, group=group) as consumer,
        ):
            found = await consumer.committed()
        return [None if (each := found[tp]) is None else each.offset for tp in tps]

    return asyncio.run(fetch())


def test_offsets_of_a_query_are_committed_for_its_group(
    spark: Any, topics: Topics, topic_name: str, tmp_path: Path
) -> None:
    topics.fill(
        topic_name, [ProducerRecord(b"%d" % n, partition=n % 2) for n in range(10)], partitions=2
    )
    group = {"commitOffsets": "true", "kafka.group.id": topic_name}
    # The query commits within a limited time: the coordinator must have loaded the group before.
    assert committed(topics, topic_name, topic_name) == [None, None]
    read_all(spark, options(topics, topic_name, **group), tmp_path)
    assert committed(topics, topic_name, topic_name) == [5, 5]
    send(topics, topic_name, range(10, 13), 1)
    read_all(spark, options(topics, topic_name, **group), tmp_path)
    assert committed(topics, topic_name, topic_name) == [5, 8]
    send(topics, topic_name, range(13, 17), 0)
    spark.sparkContext.addJobTag("tag")  # PySpark 4.3.0 cannot convert the start of such a query
    try:
        query = start(spark, options(topics, topic_name, **group), tmp_path, once=True)
    finally:
        spark.sparkContext.removeJobTag("tag")
    query.awaitTermination(120)
    # Spark tells its listeners of the end of a query soon after the query has ended.
    deadline = time.monotonic() + 20
    while committed(topics, topic_name, topic_name) != [9, 8]:
        assert time.monotonic() < deadline, "the offsets of the only batch are not committed"
        time.sleep(0.05)


async def join(topics: Topics, group: str) -> str:
    """Joins a member with a session timeout of a minute; returns the member id."""
    protocol = JoinGroupRequestProtocol(name="any", metadata=b"")
    async with Client(topics.bootstrap) as client:
        member, answer = "", None
        for _ in range(2):  # the first response contains the member id (KIP-394)
            answer = await client.request(
                JoinGroupRequest(
                    group_id=group,
                    session_timeout_ms=60_000,
                    rebalance_timeout_ms=60_000,
                    member_id=member,
                    protocol_type="consumer",
                    protocols=[protocol],
                )
            )
            member = answer.member_id
        assert answer is not None
        synced = await client.request(
            SyncGroupRequest(
                group_id=group,
                generation_id=answer.generation_id,
                member_id=member,
                protocol_type="consumer",
                protocol_name="any",
                assignments=[SyncGroupRequestAssignment(member_id=member, assignment=b"")],
            )
        )
        assert (answer.error_code, synced.error_code) == (0, 0)
    return member


def test_no_commit_for_a_group_with_a_live_member(
    spark: Any, topics: Topics, topic_name: str, tmp_path: Path
) -> None:
    topics.fill(
        topic_name, [ProducerRecord(b"%d" % n, partition=n % 2) for n in range(10)], partitions=2
    )
    group = {"commitOffsets": "true", "kafka.group.id": topic_name}
    # `join` retries nothing: the coordinator must have loaded the group before.
    assert committed(topics, topic_name, topic_name) == [None, None]
    member = asyncio.run(join(topics, topic_name))
    read_all(spark, options(topics, topic_name, **group), tmp_path)
    assert sorted(values(spark, tmp_path)) == list(range(10))
    assert committed(topics, topic_name, topic_name) == [None, None]

    leaving = LeaveGroupRequest(group_id=topic_name, members=[MemberIdentity(member_id=member)])
    (answer,) = send_all(topics, leaving)
    assert not answer.error_code
    send(topics, topic_name, range(10, 13), 1)
    read_all(spark, options(topics, topic_name, **group), tmp_path)
    assert committed(topics, topic_name, topic_name) == [5, 8]
