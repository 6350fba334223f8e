"""Tests consumers on a real cluster whose leaders move, are killed, or lose records."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest

import kproto
from kproto.client.fetch.fetcher import fetch_from
from kproto.messages import (
    AlterPartitionReassignmentsRequest,
    CreateTopicsRequest,
    ElectLeadersRequest,
)
from kproto.messages.alter_partition_reassignments_request import (
    ReassignablePartition,
    ReassignableTopic,
)
from kproto.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
)
from kproto.messages.elect_leaders_request import TopicPartitions
from tests.support.brokers import StartCluster
from tools.kafka import VERSIONS, KafkaCluster

QUICK = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "500"}
SETTINGS = kproto.ClientSettings(retry_backoff_ms=20, retry_backoff_max_ms=200)
PREFERRED, UNCLEAN = 0, 1

pytestmark = [pytest.mark.exhaustive, pytest.mark.parametrize("version", VERSIONS)]


async def create(
    client: kproto.Client, name: str, assignments: dict[int, list[int]], **configs: str
) -> None:
    """Creates a topic with these replicas of each partition; the first replica is the leader."""
    topic = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)
    for partition, nodes in assignments.items():
        topic.assignments.append(
            CreatableReplicaAssignment(partition_index=partition, broker_ids=nodes)
        )
    for key, value in configs.items():
        topic.configs.append(CreatableTopicConfig(name=key.replace("_", "."), value=value))
    answer = await client.request(CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
    assert [each.error_code for each in answer.topics] == [0]
    await client.topic(name)


async def move(client: kproto.Client, name: str, nodes: list[int]) -> None:
    """Makes `nodes` the replicas of partition 0, and the first node of `nodes` the leader."""
    part = ReassignablePartition(partition_index=0, replicas=nodes)
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=name, partitions=[part])]
    )
    answer = await client.request(request)
    assert not answer.error_code
    await elect(client, name, PREFERRED)


async def elect(client: kproto.Client, name: str, kind: int) -> None:
    request = ElectLeadersRequest(
        election_type=kind,
        topic_partitions=[TopicPartitions(topic=name, partitions=[0])],
        timeout_ms=10_000,
    )
    await client.request(request)


async def test_consumer_fetches_from_the_replica_in_its_rack(
    start_cluster: StartCluster, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = start_cluster(version, racks=("a", "b", "c"), config=QUICK)
    fetched_nodes: list[int] = []

    async def noting(view: Any, node: int, *others: Any, **more: Any) -> Any:
        fetched_nodes.append(node)
        return await fetch_from(view, node, *others, **more)

    monkeypatch.setattr("kproto.client.fetch.fetcher.fetch_from", noting)
    settings = kproto.ClientSettings(rack="c", retry_backoff_ms=20, retry_backoff_max_ms=200)
    async with kproto.Client(cluster.bootstrap, settings) as client:
        await create(client, "near", {0: [1, 3]}, min_insync_replicas="1")
        async with (
            client.producer() as producer,
            client.consumer("near", max_wait_ms=200) as consumer,
        ):
            records = aiter(consumer)
            for number in range(50):
                await producer.send("near", b"%d" % number, partition=0)
                assert (await anext(records)).value == b"%d" % number
            assert fetched_nodes[0] == 1
            assert Counter(fetched_nodes)[3] > 40
            cluster.node(3).kill()
            for number in range(20):
                await producer.send("near", b"more", partition=0)
                assert (await anext(records)).offset == 50 + number
            assert fetched_nodes[-1] == 1


async def test_each_record_is_read_once_while_leaders_move_and_die(
    start_cluster: StartCluster, version: str
) -> None:
    cluster = start_cluster(version, config=QUICK)
    async with kproto.Client(cluster.bootstrap, SETTINGS) as client:
        await create(client, "moving", {0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]})
        seen: dict[int, list[int]] = {0: [], 1: [], 2: []}
        sent = 0

        async def read() -> None:
            async with client.consumer("moving", max_wait_ms=100) as consumer:
                async for record in consumer:
                    seen[record.partition].append(int(record.value or b""))

        async def write(producer: kproto.Producer) -> None:
            nonlocal sent
            while True:
                for partition in seen:
                    await producer.send("moving", b"%d" % sent, partition=partition)
                sent += 1

        async def more() -> None:
            """Waits until five more rounds of sent records are acknowledged."""
            goal = sent + 5
            while sent < goal:  # noqa: ASYNC110 - no event
                await asyncio.sleep(0.01)

        reading = asyncio.ensure_future(read())
        async with client.producer() as producer:
            writing = asyncio.ensure_future(write(producer))
            await more()
            for nodes in ([2, 3, 1], [3, 1, 2], [1, 2, 3]):
                await move(client, "moving", nodes)
                await more()
            cluster.node(2).kill()
            await more()
            cluster.node(2).start()
            cluster.wait_for_all()
            await elect(client, "moving", PREFERRED)
            await more()
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
        async with asyncio.timeout(20):
            ends = await client.list_offsets({("moving", at): "latest" for at in seen})
            while any(len(seen[at]) < ends["moving", at] for at in seen):  # noqa: ASYNC110 - no event
                await asyncio.sleep(0.05)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        for at, found in seen.items():
            assert found == list(range(ends["moving", at]))


async def test_consumers_detect_log_truncation(
    start_cluster: StartCluster, version: str, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = start_cluster(version, config=QUICK)
    async with kproto.Client(cluster.bootstrap, SETTINGS) as client:
        await create(client, "cut", {0: [2, 3]}, min_insync_replicas="1")
        async with (
            client.consumer("cut", max_wait_ms=100) as resuming,
            client.consumer("cut", max_wait_ms=100, start={("cut", 0): 0}) as raising,
        ):
            async with client.producer() as producer:
                for number in range(5):
                    await producer.send("cut", b"kept %d" % number, partition=0)
                await _down(client, cluster, 3)
                for number in range(5):
                    await producer.send("cut", b"lost %d" % number, partition=0)
            readers = [aiter(resuming), aiter(raising)]
            for reader in readers:
                values = [(await anext(reader)).value for _ in range(10)]
                assert values[-1] == b"lost 4"
            cluster.node(2).kill()
            cluster.node(3).start()
            async with asyncio.timeout(60):
                while client.cluster.leader("cut", 0) != 3:
                    await asyncio.sleep(0.5)
                    with suppress(kproto.KprotoError):
                        await elect(client, "cut", UNCLEAN)
                        await client.refresh(["cut"])
            async with client.producer() as producer:
                await producer.send("cut", b"new", partition=0)
            with caplog.at_level(logging.WARNING, "kproto.client"):
                record = await anext(readers[0])
            assert (record.offset, record.value) == (5, b"new")
            assert "offsets 5 to 9, which were returned, are gone" in caplog.text
            with pytest.raises(kproto.LogTruncatedError) as raised:
                await anext(readers[1])
            assert (raised.value.position, raised.value.diverging_offset) == (10, 5)


async def _down(client: kproto.Client, cluster: KafkaCluster, node: int) -> None:
    """Kills a node and waits until it is no longer an in-sync replica."""
    cluster.node(node).kill()
    async with asyncio.timeout(30):
        while True:
            await client.retrying(lambda: client.refresh(["cut"]))  # may reach the killed node
            if node not in client.cluster.topics["cut"].partitions[0].in_sync:
                return
            await asyncio.sleep(0.2)
