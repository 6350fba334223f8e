"""Uses the client on an embedded cluster while its leaders move and its brokers stop."""

from __future__ import annotations

import pytest

from kproto import BrokerConnectionError, Client
from kproto.broker import Cluster
from kproto.messages import ListOffsetsRequest, MetadataRequest
from kproto.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsTopic
from kproto.protocol.connection import ReceivedRequest
from tests.unit.client.scripted_broker import quick

QUICK = quick(metadata_wait_ms=2_000, delivery_timeout_ms=10_000)
PARTITIONS = list(range(6))


def ends() -> ListOffsetsRequest:
    parts = [ListOffsetsPartition(partition_index=at, timestamp=-1) for at in PARTITIONS]
    return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=parts)])


async def codes(client: Client) -> list[tuple[int, int]]:
    (topic,) = (await client.request(ends())).topics
    return [(part.partition_index, part.error_code) for part in topic.partitions]


async def test_requests_follow_leaders_that_move_and_brokers_that_stop() -> None:
    async with Cluster(brokers=3) as cluster:
        cluster.create_topic("t", partitions=len(PARTITIONS), replication_factor=3)
        async with Client(cluster.bootstrap, QUICK) as client:
            fine = [(at, 0) for at in PARTITIONS]
            assert await codes(client) == fine
            before = cluster.leader("t", 0)
            after = next(node for node in cluster.nodes if node != before)
            cluster.move_leader("t", 0, after)
            assert await codes(client) == [(0, 6), *fine[1:]]
            assert await codes(client) == fine
            await cluster.stop_broker(after)
            with pytest.raises(BrokerConnectionError) as failed:
                await codes(client)
            assert (
                f"the error is of broker {after}; 2 of 3 brokers answered"
                in failed.value.__notes__[0]
            )
            assert await client.retrying(lambda: codes(client)) == fine
            await cluster.start_broker(after)
            assert await codes(client) == fine


async def test_a_producer_follows_its_leader_by_the_hint() -> None:
    async with Cluster(brokers=3) as cluster:
        cluster.create_topic("t", partitions=1, replication_factor=3)
        asked: list[ReceivedRequest] = []
        cluster.control(asked.append, request=MetadataRequest)
        asked_first = 0
        async with Client(cluster.bootstrap, QUICK) as client, client.producer() as producer:
            for at in range(6):
                assert (await producer.send("t", b"%d" % at)).offset == at
                asked_first = asked_first or len(asked)
                node = cluster.nodes[(cluster.nodes.index(cluster.leader("t", 0)) + 1) % 3]
                cluster.move_leader("t", 0, node)
            assert client.cluster.topics["t"].partitions[0].leader_epoch >= 5
        assert [record.value for record in cluster.records("t")] == [b"%d" % at for at in range(6)]
        assert len(asked) == asked_first, "the hints are enough"


async def test_all_brokers_stop_and_come_back() -> None:
    async with Cluster(brokers=3) as cluster:
        cluster.create_topic("t", partitions=len(PARTITIONS), replication_factor=3)
        async with Client(cluster.bootstrap, QUICK) as client:
            await codes(client)
            for node in cluster.nodes:
                await cluster.stop_broker(node)
            with pytest.raises(BrokerConnectionError):
                await client.refresh(["t"])
            for node in cluster.nodes:
                await cluster.start_broker(node)
            await client.retrying(lambda: client.refresh(["t"]))
            assert await client.retrying(lambda: codes(client)) == [(at, 0) for at in PARTITIONS]
