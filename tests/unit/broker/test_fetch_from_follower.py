"""Tests fetches from followers, the preferred replica (KIP-392), and current-leader hints.

Also tests diverging epochs, and which replicas respond to ListOffsets. The nodes of a cluster share
one state; each request goes to one node.
"""

from __future__ import annotations

from typing import Any

import pytest

from kproto import Client, ConfigurationError
from kproto.broker import BrokerSettings
from kproto.broker import Cluster as Nodes
from kproto.broker.cluster_state import ClusterState
from kproto.broker.context import Context
from kproto.broker.handlers import KAFKA_APIS
from kproto.broker.leader_and_isr import NO_LEADER, LeaderAndIsr
from kproto.broker.listeners import Endpoint
from kproto.broker.registry import DelayedResponse, by_key
from kproto.messages.api_versions_request import ApiVersionsRequest
from kproto.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.fetch_response import FetchResponse, PartitionData
from kproto.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kproto.messages.list_offsets_response import ListOffsetsResponse
from kproto.protocol.error_codes import error_code
from kproto.records import RecordBatch
from kproto.testing.clock import ManualClock
from tests.support.batches import TIMESTAMP, batch_bytes

APIS = by_key(KAFKA_APIS)
RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def _wanted(
    fetch_offset: int = 0, current_leader_epoch: int = -1, last_fetched_epoch: int = -1
) -> FetchPartition:
    return FetchPartition(
        fetch_offset=fetch_offset,
        current_leader_epoch=current_leader_epoch,
        last_fetched_epoch=last_fetched_epoch,
        partition_max_bytes=1 << 20,
    )


class Cluster:
    """Nodes 1, 2, 3, 4 in racks a, b, b, c; topic t has replicas on 1, 2 and 3, and leader 1."""

    def __init__(self, selector: str | None = None) -> None:
        self.settings = BrokerSettings(replica_selector=selector)
        self.state = ClusterState(self.settings)
        self.endpoints = {
            node_id: Endpoint(node_id, "localhost", 9090 + node_id, rack=rack)
            for node_id, rack in enumerate("abbc", 1)
        }
        for endpoint in self.endpoints.values():
            self.state.register_endpoint(endpoint)
        self.state.topics.add(self.state.plan_topic("t", assignments={0: (1, 2, 3)}))
        self.partition = self.state.topics.named("t").partition(0)

    def append(self, count: int = 2) -> None:
        self.partition.log.append(RecordBatch(batch_bytes(count)), TIMESTAMP)

    def lead(self, leader: int, epoch: int, in_sync: tuple[int, ...] = (1, 2, 3)) -> None:
        self.partition.leader_and_isr = LeaderAndIsr((1, 2, 3), leader, in_sync)
        self.partition.log.epochs.assign(epoch, self.partition.log.end_offset)

    def context(self, node_id: int) -> Context:
        clock = ManualClock(TIMESTAMP)
        return Context(self.state, self.settings, self.endpoints[node_id], {}, clock)

    def ask(self, node_id: int, version: int = 12, rack: str = "", **wanted: int) -> FetchResponse:
        decision = APIS[1].handle(
            self.context(node_id),
            FetchRequest(
                max_wait_ms=500,
                min_bytes=1,
                rack_id=rack,
                topics=[
                    FetchTopic(
                        topic="t",
                        topic_id=self.state.topics.named("t").topic_id,
                        partitions=[_wanted(**wanted)],
                    )
                ],
            ),
            version,
        )
        assert isinstance(decision, FetchResponse), "it would wait"
        return decision

    def fetch(self, node_id: int, version: int = 12, rack: str = "", **wanted: int) -> Any:
        """Returns the name of the partition's error, or the fetched records as bytes."""
        data = self.data(self.ask(node_id, version, rack, **wanted))
        return error_code(data.error_code).name if data.error_code else data.records

    def data(self, response: FetchResponse) -> PartitionData:
        ((data,),) = (topic.partitions for topic in response.responses)
        return data


@pytest.mark.parametrize("version", range(19))
def test_follower_answers_consumers_since_v11(version: int) -> None:
    cluster = Cluster()
    cluster.append()
    assert cluster.fetch(1, version)
    expected = cluster.fetch(1, version) if version >= 11 else "NOT_LEADER_OR_FOLLOWER"
    assert cluster.fetch(2, version) == cluster.fetch(3, version) == expected
    assert cluster.fetch(4, version) == "NOT_LEADER_OR_FOLLOWER", "it has no replica"


@pytest.mark.parametrize(
    ("replica_id", "timestamp", "version", "codes"),
    [
        (-1, -1, 4, ["NONE", "NOT_LEADER_OR_FOLLOWER", "NOT_LEADER_OR_FOLLOWER"]),
        (-2, -1, 4, ["NONE", "NONE", "NOT_LEADER_OR_FOLLOWER"]),
        (-2, -1, 1, ["NONE", "NONE", "NOT_LEADER_OR_FOLLOWER"]),
        (-1, -3, 6, ["UNSUPPORTED_VERSION"] * 3),
        (-1, -3, 7, ["NONE", "NOT_LEADER_OR_FOLLOWER", "NOT_LEADER_OR_FOLLOWER"]),
    ],
)
def test_only_leader_lists_offsets(
    replica_id: int, timestamp: int, version: int, codes: list[str]
) -> None:
    cluster = Cluster()
    wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topic = ListOffsetsTopic(name="t", partitions=[wanted])
    told = []
    for node in (1, 2, 4):
        answer = APIS[2].handle(
            cluster.context(node),
            ListOffsetsRequest(replica_id=replica_id, topics=[topic]),
            version,
        )
        assert isinstance(answer, ListOffsetsResponse)
        told.append(error_code(answer.topics[0].partitions[0].error_code).name)
    assert told == codes


def test_node_without_replica_checks_no_epoch() -> None:
    cluster = Cluster()
    for epoch in (-1, 0, 1, 7):
        assert cluster.fetch(4, current_leader_epoch=epoch) == "NOT_LEADER_OR_FOLLOWER"
    assert cluster.fetch(2, current_leader_epoch=7) == "UNKNOWN_LEADER_EPOCH"


def test_follower_returns_high_watermark_and_waits() -> None:
    cluster = Cluster()
    cluster.append()
    data = cluster.data(cluster.ask(2))
    assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == (2, 2, 0)
    assert cluster.fetch(2, fetch_offset=3) == "OFFSET_OUT_OF_RANGE"
    with pytest.raises(AssertionError, match="it would wait"):
        cluster.ask(2, fetch_offset=2)


def test_follower_answers_without_leader() -> None:
    cluster = Cluster()
    cluster.append()
    cluster.lead(NO_LEADER, 1)
    assert cluster.fetch(2)
    assert cluster.fetch(2, version=10) == "NOT_LEADER_OR_FOLLOWER"


@pytest.mark.parametrize("node_id", [1, 2])
def test_epochs_are_checked_by_all_replicas(node_id: int) -> None:
    cluster = Cluster()
    cluster.append()
    cluster.lead(1, 3)
    assert cluster.fetch(node_id, current_leader_epoch=2) == "FENCED_LEADER_EPOCH"
    assert cluster.fetch(node_id, current_leader_epoch=4) == "UNKNOWN_LEADER_EPOCH"
    assert cluster.fetch(node_id, current_leader_epoch=3)
    assert cluster.fetch(4, current_leader_epoch=2) == "NOT_LEADER_OR_FOLLOWER"


@pytest.mark.parametrize("selector", [RACK_AWARE, "RackAwareReplicaSelector"])
def test_the_leader_names_the_replica_in_the_rack_of_the_consumer(selector: str) -> None:
    cluster = Cluster(selector)
    cluster.append()
    data = cluster.data(cluster.ask(1, rack="b"))
    assert data.preferred_read_replica == 3, "the highest id, as in Kafka"
    assert (data.records, data.high_watermark, data.log_start_offset) == (b"", 2, 0)
    data = cluster.data(cluster.ask(1, rack="b", fetch_offset=2))
    assert data.preferred_read_replica == 3, "at once, though there is nothing to read"
    for rack in ("a", "c", "x", ""):
        assert cluster.fetch(1, rack=rack), "nobody is nearer"
    assert cluster.fetch(2, rack="a"), "a follower sends nobody on"
    assert cluster.fetch(1, rack="b", version=10), "who does not know of it is answered"
    assert cluster.fetch(1, rack="b", fetch_offset=9) == "OFFSET_OUT_OF_RANGE"
    assert cluster.fetch(1, rack="b", current_leader_epoch=7) == "UNKNOWN_LEADER_EPOCH"


def test_only_in_sync_replicas_are_preferred() -> None:
    cluster = Cluster(RACK_AWARE)
    cluster.append()
    cluster.lead(1, 1, in_sync=(1, 2))
    assert cluster.data(cluster.ask(1, rack="b")).preferred_read_replica == 2
    cluster.lead(1, 2, in_sync=(1,))
    assert cluster.fetch(1, rack="b")


@pytest.mark.parametrize("selector", [None, "LeaderSelector"])
def test_no_preferred_replica_without_selector(selector: str | None) -> None:
    cluster = Cluster(selector)
    cluster.append()
    data = cluster.data(cluster.ask(1, rack="b"))
    assert data.records
    assert data.preferred_read_replica == -1


def test_unknown_selector_raises() -> None:
    with pytest.raises(ConfigurationError, match="replica_selector is 'Nearest'; it must be None"):
        BrokerSettings(replica_selector="Nearest")


@pytest.mark.parametrize("node_id", [1, 2])
def test_diverging_reader_gets_diverging_epoch(node_id: int) -> None:
    cluster = Cluster()
    cluster.append(4)
    cluster.lead(1, 2)
    cluster.append(4)

    def diverging(offset: int, epoch: int) -> tuple[int, int] | None:
        data = cluster.data(cluster.ask(node_id, fetch_offset=offset, last_fetched_epoch=epoch))
        assert data.error_code == 0
        assert (data.high_watermark, data.log_start_offset) == (8, 0)
        found = data.diverging_epoch
        assert bool(data.records) == (found.epoch < 0)
        return None if found.epoch < 0 else (found.epoch, found.end_offset)

    assert diverging(4, 0) is None
    assert diverging(5, 0) == (0, 4)
    assert diverging(5, 1) == (0, 4), "nothing was written in epoch 1"
    assert diverging(4, 1) == (0, 4)
    assert diverging(5, 2) is None
    assert diverging(9, 2) == (2, 8)
    assert cluster.fetch(node_id, fetch_offset=1, last_fetched_epoch=3) == "OFFSET_OUT_OF_RANGE"
    cluster.partition.log.delete_before(4)
    assert cluster.fetch(node_id, fetch_offset=2, last_fetched_epoch=0) == "OFFSET_OUT_OF_RANGE"


@pytest.mark.parametrize("version", range(11, 19))
def test_leader_error_names_current_leader(version: int) -> None:
    cluster = Cluster()
    cluster.lead(2, 5)
    for node_id, epoch in ((4, -1), (1, 4), (2, 4)):
        answer = cluster.ask(node_id, version, current_leader_epoch=epoch)
        leader = cluster.data(answer).current_leader
        told = [(it.node_id, it.host, it.port, it.rack) for it in answer.node_endpoints]
        if version >= 16:
            assert (leader.leader_id, leader.leader_epoch) == (2, 5)
            assert told == [(2, "localhost", 9092, "b")]
        else:
            assert (leader.leader_id, leader.leader_epoch, told) == (-1, -1, [])
        answer.encode(version)
    answer = cluster.ask(2, version, current_leader_epoch=9)
    assert cluster.data(answer).current_leader.leader_id == -1, "the client knows more"


def test_leader_without_endpoint_is_named_without_address() -> None:
    cluster = Cluster()
    cluster.lead(NO_LEADER, 5)
    answer = cluster.ask(4, 16)
    leader = cluster.data(answer).current_leader
    assert (leader.leader_id, leader.leader_epoch) == (-1, 5)
    assert len(answer.node_endpoints) == 0


def test_waiting_fetch_gets_leader_change() -> None:
    cluster = Cluster()
    context = Context(
        cluster.state, cluster.settings, cluster.endpoints[1], {}, ManualClock(TIMESTAMP)
    )
    wanted = FetchPartition(partition_max_bytes=9, current_leader_epoch=0)
    request = FetchRequest(
        max_wait_ms=500, min_bytes=1, topics=[FetchTopic(topic="t", partitions=[wanted])]
    )
    wait = APIS[1].handle(context, request, 12)
    assert isinstance(wait, DelayedResponse)
    cluster.lead(2, 1)
    decision = wait.try_complete(False)
    assert isinstance(decision, FetchResponse)
    assert error_code(cluster.data(decision).error_code).name == "FENCED_LEADER_EPOCH"


async def test_in_a_cluster_of_several_nodes() -> None:
    settings = BrokerSettings(replica_selector="RackAwareReplicaSelector", release="3.9.2")
    async with (
        Nodes(racks=("a", "b", "c"), settings=settings) as cluster,
        Client(cluster.bootstrap) as client,
    ):
        topic = cluster.create_topic("t", partitions=1, replication_factor=3)
        leader = cluster.leader("t", 0)
        async with client.producer() as producer:
            await producer.send("t", b"near")
        rack, near = next(
            (rack, node) for rack, node in zip("abc", cluster.nodes, strict=True) if node != leader
        )
        request = FetchRequest(
            rack_id=rack,
            topics=[FetchTopic(topic_id=topic.topic_id, partitions=[_wanted()])],
        )
        found = []
        for node in (leader, near):
            answer = await client.request(request, broker=node, version=16)
            found.append(answer.responses[0].partitions[0])
        assert (found[0].preferred_read_replica, found[0].records) == (near, b"")
        assert found[1].preferred_read_replica == -1
        assert found[1].records
        told = await client.request(ApiVersionsRequest(), broker=near, version=0)
        assert [it.max_version for it in told.api_keys if it.api_key == 1] == [17]
