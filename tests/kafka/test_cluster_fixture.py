"""Tests the cluster fixture: nodes find each other, have racks, and restart after a kill."""

from __future__ import annotations

import pytest

import kproto
from kproto.messages import DescribeConfigsRequest
from kproto.messages.describe_configs_request import DescribeConfigsResource
from tests.support.brokers import StartCluster, kafka_command
from tools.kafka import VERSIONS, KafkaCluster, KafkaStartError
from tools.kafka.__main__ import main
from tools.kafka.probe import known_brokers
from tools.kafka.properties import RACK_SELECTOR, Ports, cluster_properties

A_BROKER = 4
QUICK = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "500"}


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", VERSIONS)
async def test_three_nodes_with_racks(start_cluster: StartCluster, version: str) -> None:
    cluster = start_cluster(version, racks=("a", "b", "c"), config=QUICK)
    async with kproto.Client(cluster.bootstrap) as client:
        assert client.cluster.racks == {1: "a", 2: "b", 3: "c"}
        await client.create_topics(kproto.NewTopic("t", 3, 3))
        for node in cluster.nodes:
            resource = DescribeConfigsResource(
                resource_type=A_BROKER,
                resource_name=str(node),
                configuration_keys=["replica.selector.class", "min.insync.replicas"],
            )
            answer = await client.request(DescribeConfigsRequest(resources=[resource]), broker=node)
            values = {config.name: config.value for config in answer.results[0].configs}
            assert values == {"replica.selector.class": RACK_SELECTOR, "min.insync.replicas": "2"}
        info = await client.topic("t")
        assert {partition.leader for partition in info.partitions.values()} == {1, 2, 3}
        leader = info.partitions[0].leader
        cluster.node(leader).kill()
        async with client.producer() as producer:
            ack = await producer.send("t", b"without its leader", partition=0)
        assert ack.offset == 0
        cluster.node(leader).start()
        cluster.wait_for_all()
        found = [record.value async for record in client.consumer("t", stop_at_end=True)]
    assert found == [b"without its leader"]


@pytest.mark.exhaustive
@pytest.mark.usefixtures("kafka_jars")
def test_a_detached_cluster_is_stopped_whole_by_any_of_its_ports() -> None:
    nodes = kafka_command("start", "--nodes", "2", "--racks", "a,b").strip().split(",")
    ports = [int(node.rpartition(":")[2]) for node in nodes]
    told = ""
    try:
        assert len(ports) == 2
        assert known_brokers("127.0.0.1", ports[0], 20.0) == 2
    finally:
        told = kafka_command("stop", "--port", str(ports[1]))
    for node in nodes:
        assert f"stopped Kafka 4.4.0 at {node}" in told
    status = kafka_command("status")
    assert not any(node in status for node in nodes)


def test_racks_are_as_many_as_nodes() -> None:
    with pytest.raises(KafkaStartError, match="2 racks for 3 nodes"):
        KafkaCluster("4.4.0", nodes=3, racks=("a", "b"))
    with pytest.raises(KafkaStartError, match="name at least one"):
        KafkaCluster("4.4.0", nodes=0)


@pytest.mark.parametrize("given", [("--nodes", "3"), ("--secured",)])
def test_several_listeners_take_free_ports(
    capsys: pytest.CaptureFixture[str], given: tuple[str, ...]
) -> None:
    assert main(["start", *given, "--port", "9092"]) == 1
    assert "leave out --port" in capsys.readouterr().err


def test_settings_of_one_of_three() -> None:
    ports = [Ports(broker=at, controller=10 + at) for at in (1, 2, 3)]
    properties = cluster_properties(2, ports, ("a", "b", "c"))
    assert properties["controller.quorum.voters"] == "1@127.0.0.1:11,2@127.0.0.1:12,3@127.0.0.1:13"
    assert properties["broker.rack"] == "b"
    assert properties["offsets.topic.replication.factor"] == "3"
    assert properties["transaction.state.log.min.isr"] == "2"
    assert "broker.rack" not in cluster_properties(1, ports, ())
    single = cluster_properties(1, ports[:1], ())
    assert (single["default.replication.factor"], single["min.insync.replicas"]) == ("1", "1")
