"""Tests a cluster in one process: nodes that stop and start, leaders, coordinators and ports.

In one test, a client writes and reads while nodes stop and start.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
from functools import partial

import pytest

from kproto import BrokerConnectionError, BrokerResponseError, Client, ConfigurationError
from kproto.broker import Broker, BrokerSettings, Cluster, Delay, Listener
from kproto.messages.api_versions_request import ApiVersionsRequest
from kproto.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.metadata_request import MetadataRequest
from kproto.protocol.connection import ReceivedRequest
from kproto.protocol.error_codes import error_code
from tests.support.patience import until


def can_connect(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with socket.socket() as tried:
        tried.settimeout(60)
        return tried.connect_ex((host, int(port))) == 0


def numbers(cluster: Cluster, topic: str, partitions: int) -> list[int]:
    return [
        int(record.value or b"")
        for partition in range(partitions)
        for record in cluster.records(topic, partition)
    ]


async def test_nodes_have_addresses_racks_and_one_state() -> None:
    async with Cluster(brokers=3, racks=("a", "b", "c")) as cluster:
        assert cluster.nodes == (1, 2, 3)
        members = [cluster.broker(node) for node in cluster.nodes]
        assert cluster.bootstrap == ",".join(member.bootstrap for member in members)
        assert cluster.bootstrap_of("PLAINTEXT") == cluster.bootstrap
        assert len({member.bootstrap for member in members}) == 3
        assert [(member.node_id, member.rack) for member in members] == [
            (1, "a"),
            (2, "b"),
            (3, "c"),
        ]
        cluster.create_topic("t", partitions=6, replication_factor=3)
        assert [cluster.leader("t", index) for index in range(6)] == [1, 2, 3, 1, 2, 3]
        assert cluster.in_sync("t", 1) == (2, 3, 1)
        async with Client(cluster.broker(2).bootstrap) as client:
            answer = await client.request(MetadataRequest(topics=[]))
        assert answer.cluster_id == cluster.cluster_id
        assert [(node.node_id, node.rack) for node in answer.brokers] == [
            (1, "a"),
            (2, "b"),
            (3, "c"),
        ]
    with pytest.raises(ConfigurationError, match="does not listen"):
        _ = cluster.bootstrap


async def test_nothing_is_lost_or_doubled_while_nodes_stop_and_start() -> None:
    async with Cluster() as cluster, Client(cluster.bootstrap) as client:
        cluster.create_topic("t", partitions=3, configs={"min.insync.replicas": "2"})
        done = False
        written = 0
        read: list[int] = []

        async def write() -> None:
            nonlocal written
            async with client.producer() as producer:
                while not done:
                    await producer.send("t", str(written).encode())
                    written += 1

        async def consume() -> None:
            async for record in client.consumer("t", start="earliest"):
                read.append(int(record.value or b""))  # noqa: PERF401 - it never ends

        def enough(count: int) -> bool:
            return written >= count

        async with asyncio.TaskGroup() as tasks:
            writing = tasks.create_task(write())
            reading = tasks.create_task(consume())
            for node in (1, 2, 3):
                await asyncio.sleep(0.05)
                await cluster.stop_broker(node)
                await until(partial(enough, written + 20))
                await cluster.start_broker(node)
                for index in range(3):
                    cluster.move_leader("t", index, node)
            done = True
            await writing
            await until(lambda: len(read) >= written)
            reading.cancel()
        assert sorted(numbers(cluster, "t", 3)) == list(range(written))
        assert sorted(read) == list(range(written))
        assert cluster.leader_epoch("t", 0) >= 3


async def test_stopped_node_keeps_port_and_rejects_clients() -> None:
    async with Cluster(brokers=2) as cluster:
        address = cluster.broker(1).bootstrap
        assert can_connect(address)
        await cluster.stop_broker(1)
        await cluster.stop_broker(1)
        assert not can_connect(address)
        assert cluster.broker(1).bootstrap == address
        assert not cluster.broker(1).is_listening
        assert cluster.controller == 2
        await cluster.start_broker(1)
        await cluster.start_broker(1)
        assert can_connect(address)
        await cluster.stop_broker(1)
    assert not can_connect(address)


async def test_node_starts_only_while_cluster_listens() -> None:
    cluster = Cluster(brokers=2)
    with pytest.raises(ConfigurationError, match="the cluster does not listen"):
        await cluster.start_broker(1)
    async with cluster:
        await cluster.stop_broker(1)
        address = cluster.broker(2).bootstrap
        with pytest.raises(ConfigurationError, match="already"):
            await cluster.start()
        await cluster.start_broker(1)
        await cluster.stop_broker(2)
    with pytest.raises(ConfigurationError, match="the cluster does not listen"):
        await cluster.start_broker(2)
    assert not can_connect(address), "a node of a stopped cluster would never stop"
    async with cluster:
        assert can_connect(cluster.broker(2).bootstrap)


async def test_taken_port_raises_and_is_retried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kproto.broker.node.reserve_port", lambda host, port: None)
    async with Cluster(brokers=2) as cluster:
        address = cluster.broker(2).bootstrap
        await cluster.stop_broker(2)
        with socket.create_server(("127.0.0.1", int(address.rpartition(":")[2]))):
            with pytest.raises(BrokerConnectionError, match=address):
                await cluster.start_broker(2)
            assert cluster.controller == 1
        await cluster.start_broker(2)
        assert cluster.broker(2).bootstrap == address
        assert can_connect(address)


async def test_waiting_fetch_is_answered_when_leader_moves() -> None:
    async with Cluster() as cluster, Client(cluster.bootstrap) as client:
        topic = cluster.create_topic("t")
        wanted = FetchPartition(partition=0, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=60_000,
            min_bytes=1,
            session_epoch=-1,
            topics=[FetchTopic(topic="t", partitions=[wanted])],
        )
        # From v11 on, the old leader would answer as a follower.
        pending = asyncio.create_task(client.request(request, broker=1, version=10))
        log = topic.partition(0).log
        await until(lambda: log.watchers)
        cluster.move_leader("t", 0, 2)
        async with asyncio.timeout(60):
            answer = await pending
        (part,) = answer.responses[0].partitions
        assert error_code(part.error_code).name == "NOT_LEADER_OR_FOLLOWER"


async def test_a_control_applies_to_one_node_or_to_all() -> None:
    seen: list[int] = []
    async with Cluster(brokers=2) as cluster, Client(cluster.bootstrap) as client:

        def observe(request: ReceivedRequest) -> Delay:
            seen.append(request.api_key)
            return Delay(0)

        at_two = cluster.control(observe, request=MetadataRequest, node=2)
        for node in (1, 2, 1):
            await client.request(MetadataRequest(topics=[]), broker=node)
        assert seen == [3]
        cluster.remove_control(at_two)
        seen.clear()
        cluster.control(observe, request=MetadataRequest, times=2)
        for node in (1, 2, 2, 1):
            await client.request(MetadataRequest(topics=[]), broker=node)
        assert seen == [3, 3], "`times` counts the requests to all nodes"
        with pytest.raises(ConfigurationError, match="there is no broker 3"):
            cluster.control(observe, node=3)


async def test_coordinators_controller_and_truncation_are_controlled() -> None:
    async with Cluster() as cluster, Client(cluster.bootstrap) as client:
        assert cluster.controller == 1
        cluster.move_controller(3)
        answer = await client.request(MetadataRequest(topics=[]))
        assert answer.controller_id == cluster.controller == 3
        coordinators = {cluster.coordinator(f"g{number}") for number in range(30)}
        assert coordinators == {1, 2, 3}
        assert cluster.coordinator("tx", "transaction") in coordinators
        with pytest.raises(ConfigurationError, match="take one of group, transaction, share"):
            cluster.coordinator("g", "consumer")
        cluster.create_topic("t")
        async with client.producer() as producer:
            for number in range(3):
                await producer.send("t", b"%d" % number)
        assert cluster.truncate("t", 0, 1) == 1
        assert cluster.end_offset("t") == 1
        assert [record.value for record in cluster.records("t")] == [b"0"]
        assert cluster.leader_epoch("t") == 1


def two_free_ports() -> int:
    """Returns the first of two free, adjacent ports, below the system's ephemeral ports."""
    while True:
        port = random.randrange(20_000, 32_000)
        with (
            contextlib.suppress(OSError),
            socket.create_server(("127.0.0.1", port)),
            socket.create_server(("127.0.0.1", port + 1)),
        ):
            return port


async def test_ports_count_up_and_are_released_if_one_is_taken() -> None:
    port = two_free_ports()
    cluster = Cluster(brokers=2, settings=BrokerSettings(port=port, node_id=5))
    assert cluster.nodes == (5, 6)
    with socket.create_server(("127.0.0.1", port + 1)):
        with pytest.raises(BrokerConnectionError, match=f"127.0.0.1:{port + 1}"):
            await cluster.start()
        assert not can_connect(f"127.0.0.1:{port}"), "no node listens"
    async with cluster:
        assert cluster.bootstrap == f"127.0.0.1:{port},127.0.0.1:{port + 1}"
        with pytest.raises(ConfigurationError, match="already"):
            await cluster.start()
        assert can_connect(f"127.0.0.1:{port + 1}"), "the running nodes still listen"


async def test_each_node_has_its_listeners() -> None:
    listeners = (Listener(), Listener("inside", advertised_host="localhost", advertised_port=7001))
    async with Cluster(brokers=2, settings=BrokerSettings(listeners=listeners)) as cluster:
        assert cluster.bootstrap_of("inside") == "localhost:7001,localhost:7002"
        assert cluster.connections == 0


async def test_nodes_of_an_old_release_have_its_versions() -> None:
    async with Cluster(brokers=2, release="2.0") as cluster, Client(cluster.bootstrap) as client:
        for node in cluster.nodes:
            versions = await client.request(ApiVersionsRequest(), broker=node)
            fetch = versions.api_keys.find(api_key=FetchRequest.API_KEY)
            assert fetch is not None
            assert fetch.max_version == 8


@pytest.mark.parametrize(
    ("brokers", "racks", "expected"),
    [(0, None, "brokers is 0"), (2, ("a",), "racks is"), (1, "a", "racks is")],
)
def test_invalid_cluster_settings_raise(
    brokers: int, racks: tuple[str, ...] | str | None, expected: str
) -> None:
    with pytest.raises(ConfigurationError, match=expected):
        Cluster(brokers, racks=racks)


def test_conflicting_releases_raise() -> None:
    with pytest.raises(ConfigurationError, match=r"release is '2.8', and in settings '3.9.2'"):
        Cluster(release="2.8", settings=BrokerSettings(release="3.9.2"))
    assert Cluster(release="2.8", settings=BrokerSettings(release="2.8")).nodes == (1, 2, 3)


async def test_a_broker_is_a_cluster_of_one_node() -> None:
    async with Broker() as broker:
        topic = broker.create_topic("t")
        assert topic.partition(0).leader_and_isr.replicas == (1,)
        assert (broker.leader("t"), broker.leader_epoch("t"), broker.in_sync("t")) == (1, 0, (1,))
        assert broker.truncate("t", 0, 0) == 0
        assert broker.leader_epoch("t") == 0, "no batch is lost"
        with pytest.raises(BrokerResponseError, match="INVALID_REPLICATION_FACTOR"):
            broker.create_topic("u", replication_factor=2)


async def test_coordinators_exist_under_small_max_partitions() -> None:
    async with Cluster(2, settings=BrokerSettings(max_partitions=10)) as cluster:
        assert {cluster.coordinator(f"g{number}") for number in range(30)} == {1, 2}


async def test_no_coordinator_if_all_brokers_are_stopped() -> None:
    async with Cluster(2) as cluster:
        for node in cluster.nodes:
            await cluster.stop_broker(node)
        assert cluster.coordinator("g") == -1
        await cluster.start_broker(2)
        assert cluster.coordinator("g") == 2
