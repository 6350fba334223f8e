"""Tests that connections and requests grow with the used brokers, not with the cluster.

The cluster has 100 embedded brokers; each leads three of the 300 partitions of the topic `t`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from typing import Literal

import pytest

from kproto import Client
from kproto.broker import Cluster
from kproto.client.metadata.cluster import TopicPartition
from kproto.client.producer.producer import Producer
from kproto.protocol.connection import ReceivedRequest
from tests.support.patience import until

BROKERS = 100
PARTITIONS = 300
#: The nodes that lead the used partitions; `BOOTSTRAP` and the coordinator are other nodes.
LEADERS = (10, 20, 30)
BOOTSTRAP = 1


class LargeCluster:
    """A cluster that counts the requests on each node."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.requests: Counter[tuple[str, int]] = Counter()
        for node in cluster.nodes:
            cluster.control(partial(self._count, node), node=node)
        cluster.create_topic("t", partitions=PARTITIONS, replication_factor=3)
        self.bootstrap = cluster.broker(BOOTSTRAP).bootstrap

    def _count(self, node: int, request: ReceivedRequest) -> None:
        self.requests[request.name.removesuffix("Request"), node] += 1

    def led_by(self, *nodes: int) -> list[TopicPartition]:
        """Returns the partitions of the topic `t` that the nodes lead."""
        return [("t", at) for at in range(PARTITIONS) if self.cluster.leader("t", at) in nodes]

    def nodes_of(self, name: str) -> dict[int, int]:
        """Returns the number of requests `name` by node; ApiVersions counts connections."""
        return {node: count for (each, node), count in self.requests.items() if each == name}

    def counts(self) -> Counter[str]:
        """Returns the number of requests by name, without those of connections and records."""
        found: Counter[str] = Counter()
        for (name, _), count in self.requests.items():
            if name not in ("ApiVersions", "Fetch", "Produce"):
                found[name] += count
        return found

    def connected(self) -> set[int]:
        """Returns the nodes to which clients are connected."""
        return {node for node in self.cluster.nodes if self.cluster.broker(node).connections}

    def move(self, tp: TopicPartition) -> int:
        """Moves the leadership of a partition to its next replica; returns the new leader."""
        leader = self.cluster.leader(*tp)
        replica = next(node for node in self.cluster.in_sync(*tp) if node != leader)
        self.cluster.move_leader(*tp, replica)
        return replica

    async def write(self) -> None:
        """Writes a record to each partition; waits until the writing client is disconnected."""
        async with Client(self.bootstrap) as client, client.producer() as producer:
            await send(producer, self.led_by(*self.cluster.nodes))
        await until(lambda: not self.cluster.connections)
        self.requests.clear()


@pytest.fixture
async def large() -> AsyncIterator[LargeCluster]:
    async with Cluster(BROKERS) as cluster:
        yield LargeCluster(cluster)


async def send(producer: Producer, tps: list[TopicPartition]) -> None:
    await asyncio.gather(*(producer.send(topic, b"", partition=at) for topic, at in tps))


async def test_producer_connects_to_the_leaders_of_its_partitions(large: LargeCluster) -> None:
    async with Client(large.bootstrap) as client, client.producer() as producer:
        for _ in range(3):
            await send(producer, large.led_by(*LEADERS))
        assert large.connected() == {BOOTSTRAP, *LEADERS}
        assert large.nodes_of("ApiVersions") == dict.fromkeys((BOOTSTRAP, *LEADERS), 1)
        assert large.nodes_of("Produce").keys() == set(LEADERS)
        assert large.counts() == {"Metadata": 2, "InitProducerId": 1}


async def test_producer_to_all_leaders_needs_no_more_metadata(large: LargeCluster) -> None:
    async with Client(large.bootstrap) as client, client.producer() as producer:
        await send(producer, large.led_by(*large.cluster.nodes))
        assert set(large.nodes_of("ApiVersions").values()) == {1}
        assert len(large.nodes_of("Produce")) == BROKERS
        assert large.counts() == {"Metadata": 2, "InitProducerId": 1}


async def test_producer_connects_only_to_the_new_leader_after_a_move(large: LargeCluster) -> None:
    async with Client(large.bootstrap) as client, client.producer() as producer:
        tps = large.led_by(*LEADERS)
        await send(producer, tps)
        moved_to = large.move(tps[0])
        large.requests.clear()
        await send(producer, tps)
        assert large.nodes_of("ApiVersions") == {moved_to: 1}
        # The former leader names the new leader (KIP-951).
        assert large.counts() == {}


async def test_producer_requests_metadata_once_after_a_leader_stops(large: LargeCluster) -> None:
    async with Client(large.bootstrap) as client, client.producer() as producer:
        tps = large.led_by(*LEADERS)
        await send(producer, tps)
        stopped, *others = LEADERS
        orphans = large.led_by(stopped)
        await large.cluster.stop_broker(stopped)
        leaders = {large.cluster.leader(*tp) for tp in orphans}
        large.requests.clear()
        await send(producer, tps)
        assert large.nodes_of("ApiVersions") == dict.fromkeys(leaders - set(others), 1)
        assert large.counts() == {"Metadata": 1}


async def test_consumer_connects_to_the_leaders_of_its_partitions(large: LargeCluster) -> None:
    await large.write()
    tps = large.led_by(*LEADERS)
    async with Client(large.bootstrap) as client, client.consumer(tps) as consumer:
        left = set(tps)
        async for record in consumer:
            left.discard((record.topic, record.partition))
            if not left:
                break
        assert large.connected() == {BOOTSTRAP, *LEADERS}
        # A leader has the shared connection, for ListOffsets, and the connection for fetches.
        assert large.nodes_of("ApiVersions") == {BOOTSTRAP: 1} | dict.fromkeys(LEADERS, 2)
        assert large.nodes_of("Fetch").keys() == set(LEADERS)
        assert large.counts() == {"Metadata": 2, "ListOffsets": len(LEADERS)}


async def test_consumer_asks_only_the_new_leader_after_a_move(large: LargeCluster) -> None:
    await large.write()
    tps = large.led_by(*LEADERS)
    async with (
        Client(large.bootstrap) as writing,
        writing.producer() as producer,
        Client(large.bootstrap) as client,
        client.consumer(tps, start="latest", max_wait_ms=50) as consumer,
    ):
        reading = asyncio.create_task(anext(aiter(consumer)))
        await until(lambda: len(large.nodes_of("Fetch")) == len(LEADERS))
        moved_to = large.move(tps[0])
        await until(lambda: moved_to in large.nodes_of("Fetch"))
        large.requests.clear()
        await producer.send(*tps[0][:1], b"", partition=tps[0][1])
        assert (await reading).partition == tps[0][1]
        assert large.nodes_of("Fetch").keys() <= {*LEADERS, moved_to}
        assert large.nodes_of("OffsetForLeaderEpoch").keys() <= {moved_to}
        assert large.counts()["ListOffsets"] == 0


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_member_connects_to_its_leaders_and_coordinator(
    large: LargeCluster, protocol: Literal["classic", "consumer"]
) -> None:
    large.cluster.create_topic("few", partitions=3, replication_factor=3)
    leaders = {large.cluster.leader("few", at) for at in range(3)}
    coordinator = large.cluster.coordinator("group")
    async with Client(large.bootstrap) as writing, writing.producer() as producer:
        await send(producer, [("few", at) for at in range(3)])
    large.requests.clear()
    async with (
        Client(large.bootstrap) as client,
        client.consumer("few", group="group", group_protocol=protocol) as consumer,
    ):
        left = {0, 1, 2}
        async for record in consumer:
            left.discard(record.partition)
            if not left:
                break
        await consumer.commit()
        assert large.connected() <= {BOOTSTRAP, coordinator, *leaders}
        assert max(large.nodes_of("ApiVersions").values()) <= 2
        assert large.nodes_of("Fetch").keys() == leaders
        counts = large.counts()
        assert counts["Metadata"] == 2
        assert counts["FindCoordinator"] == 1
        assert counts["OffsetFetch"] == 1
        assert counts["OffsetCommit"] == 1
        assert counts["ListOffsets"] == len(leaders)


async def test_idle_consumer_and_producer_request_only_fetches(large: LargeCluster) -> None:
    await large.write()
    tps = large.led_by(*LEADERS)
    async with Client(large.bootstrap) as client, client.producer() as producer:
        await send(producer, tps)
        async with client.consumer(tps, start="latest", max_wait_ms=10) as consumer:
            reading = asyncio.create_task(anext(aiter(consumer)))
            await until(lambda: len(large.nodes_of("Fetch")) == len(LEADERS))
            large.requests.clear()
            await until(lambda: sum(large.nodes_of("Fetch").values()) >= 10 * len(LEADERS))
            assert large.nodes_of("Fetch").keys() == set(LEADERS)
            assert large.counts() == {}
            assert large.nodes_of("ApiVersions") == {}
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading
