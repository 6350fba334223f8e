"""Tests the state of a cluster of several nodes, and its handlers, without a connection."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kproto import BrokerResponseError, ConfigurationError
from kproto.broker import BrokerSettings
from kproto.broker.cluster_state import ClusterState
from kproto.broker.context import Context
from kproto.broker.coordinators import CoordinatorType
from kproto.broker.handlers import KAFKA_APIS
from kproto.broker.listeners import Endpoint
from kproto.broker.registry import Decision, DelayedResponse, by_key
from kproto.messages.base import Request
from kproto.messages.describe_cluster_request import DescribeClusterRequest
from kproto.messages.describe_cluster_response import DescribeClusterResponse
from kproto.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.fetch_response import FetchResponse
from kproto.messages.find_coordinator_request import FindCoordinatorRequest
from kproto.messages.find_coordinator_response import FindCoordinatorResponse
from kproto.messages.metadata_request import MetadataRequest
from kproto.messages.metadata_response import MetadataResponse, MetadataResponsePartition
from kproto.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kproto.messages.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse
from kproto.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kproto.messages.produce_response import ProduceResponse
from kproto.protocol.error_codes import error_code
from kproto.testing.clock import ManualClock
from tests.support.batches import TIMESTAMP, batch_bytes

APIS = by_key(KAFKA_APIS)


def cluster(*racks: str | None, settings: BrokerSettings | None = None) -> ClusterState:
    """Returns a cluster of nodes 1 to 3, or of a node per given rack; topic t has 3 partitions."""
    state = ClusterState(settings or BrokerSettings())
    for node, rack in enumerate(racks or (None, None, None), 1):
        state.register_endpoint(Endpoint(node, "localhost", 9090 + node, rack=rack))
    state.topics.add(state.plan_topic("t", 3))
    return state


def handled(state: ClusterState, node: int, request: Request[Any], version: int) -> Decision:
    endpoint = Endpoint(node, "localhost", 9090 + node)
    context = Context(state, BrokerSettings(), endpoint, {}, ManualClock(TIMESTAMP))
    return APIS[request.API_KEY].handle(context, request, version)


def leaders(state: ClusterState) -> list[int]:
    return [partition.leader_and_isr.leader for partition in state.topics.named("t").partitions]


def epochs(state: ClusterState) -> list[int]:
    return [partition.log.epochs.current for partition in state.topics.named("t").partitions]


def in_sync(state: ClusterState) -> list[set[int]]:
    return [
        set(partition.leader_and_isr.in_sync) for partition in state.topics.named("t").partitions
    ]


def produced(state: ClusterState, node: int, version: int = 9, acks: int = -1) -> ProduceResponse:
    data = PartitionProduceData(index=0, records=batch_bytes(3))
    topic = TopicProduceData(name="t", partition_data=[data])
    answer = handled(state, node, ProduceRequest(acks=acks, topic_data=[topic]), version)
    assert isinstance(answer, ProduceResponse)
    return answer


def code_of_produced(answer: ProduceResponse) -> str:
    return error_code(answer.responses[0].partition_responses[0].error_code).name


# Nodes


def test_leaders_move_when_a_node_stops_and_stay_when_it_restarts() -> None:
    state = cluster()
    assert (leaders(state), epochs(state)) == ([1, 2, 3], [0, 0, 0])
    state.stop(1)
    assert (leaders(state), epochs(state)) == ([2, 2, 3], [1, 0, 0])
    assert in_sync(state) == [{2, 3}] * 3
    state.start(1)
    assert (leaders(state), epochs(state)) == ([2, 2, 3], [1, 0, 0])
    assert in_sync(state) == [{1, 2, 3}] * 3


def test_no_leader_while_last_in_sync_replica_is_stopped() -> None:
    state = cluster()
    for node in (1, 2, 3):
        state.stop(node)
    assert (leaders(state), epochs(state)) == ([-1, -1, -1], [3, 2, 1])
    assert in_sync(state) == [{3}] * 3
    state.start(1)
    assert leaders(state) == [-1, -1, -1], "node 1 lacks the records of node 3"
    state.start(3)
    assert (leaders(state), epochs(state)) == ([3, 3, 3], [4, 3, 2])
    assert in_sync(state) == [{1, 3}] * 3


def test_stopping_a_stopped_node_changes_nothing() -> None:
    state = cluster()
    state.stop(1)
    state.stop(1)
    assert epochs(state) == [1, 0, 0]
    state.start(1)
    state.start(1)
    assert in_sync(state) == [{1, 2, 3}] * 3
    with pytest.raises(ConfigurationError, match="there is no broker 4: take one of 1, 2, 3"):
        state.stop(4)


def test_the_controller_is_alive() -> None:
    state = cluster()
    assert state.controller_id == 1
    state.stop(1)
    assert state.controller_id == 2
    state.start(1)
    assert state.controller_id == 2, "the controller does not move"
    state.move_controller(3)
    assert state.controller_id == 3
    state.stop(1)
    with pytest.raises(ConfigurationError, match="stopped"):
        state.move_controller(1)
    state.stop(2)
    state.stop(3)
    assert state.controller_id == -1
    state.start(2)
    assert state.controller_id == 2


def test_each_change_is_one_log_line(caplog: pytest.LogCaptureFixture) -> None:
    state = cluster()
    with caplog.at_level(logging.INFO, "kproto.broker"):
        state.stop(1)
        state.start(1)
        state.move_leader("t", 0, 3)
        state.truncate("t", 0, 0)  # no batch is lost
        produced(state, 3)
        state.truncate("t", 0, 0)
    assert [record.getMessage() for record in caplog.records] == [
        "broker 1 is stopped",
        "the leaders of 1 partitions changed; 0 now have none",
        "the controller is broker 2",
        "broker 1 is started",
        "t-0: broker 3 leads, epoch 2",
        "t-0: the log is truncated at 0, epoch 3",
    ]


def test_each_node_measures_quotas_itself() -> None:
    state = cluster()
    entity = (("user", "alice"),)
    state.quota_manager.table.set(entity, "producer_byte_rate", 10.0)
    assert state.quota_manager_of(1).record_produce("alice", "c", 1_000, TIMESTAMP) > 0
    assert state.quota_manager_of(2).record_produce("alice", "c", 1, TIMESTAMP) == 0


# Topics


def test_default_replication_factor_is_three() -> None:
    state = cluster()
    replicas = [
        partition.leader_and_isr.replicas for partition in state.topics.named("t").partitions
    ]
    assert replicas == [(1, 2, 3), (2, 3, 1), (3, 1, 2)]
    state = cluster(settings=BrokerSettings(default_replication_factor=1))
    replicas = [
        partition.leader_and_isr.replicas for partition in state.topics.named("t").partitions
    ]
    assert replicas == [(1,), (2,), (3,)]
    (one,) = cluster(None).topics.named("t").partitions[:1]
    assert one.leader_and_isr.replicas == (1,)


def test_replicas_outlive_a_rack() -> None:
    state = cluster("a", "a", "b", "b")
    topic = state.plan_topic("u", 4, 2)
    for partition in topic.partitions:
        assert len({node <= 2 for node in partition.leader_and_isr.replicas}) == 2
    assert [partition.leader_and_isr.leader for partition in topic.partitions] == [1, 3, 2, 4]


def test_a_topic_created_while_a_node_is_stopped_has_leaders() -> None:
    state = cluster()
    state.stop(2)
    first, second = state.plan_topic("u", 2, 3).partitions
    assert (first.leader_and_isr.replicas, first.leader_and_isr.in_sync) == ((1, 3, 2), (1, 3))
    assert (second.leader_and_isr.leader, second.leader_and_isr.in_sync) == (3, (3, 1))
    assert {part.leader_and_isr.replicas for part in state.plan_topic("v", 2, 2).partitions} == {
        (1, 3),
        (3, 1),
    }
    with pytest.raises(BrokerResponseError, match="stopped"):
        state.plan_topic("w", assignments={0: [2]})
    for node in (1, 3):
        state.stop(node)
    with pytest.raises(BrokerResponseError, match="INVALID_REPLICATION_FACTOR"):
        state.plan_topic("u", 1, 1)


# Leaders


def test_move_leader_elects_the_given_replica() -> None:
    state = cluster()
    state.move_leader("t", 0, 2)
    state.move_leader("t", 0, 2)
    assert (leaders(state), epochs(state)) == ([2, 2, 3], [1, 0, 0])
    state.stop(3)
    with pytest.raises(BrokerResponseError, match="ELIGIBLE_LEADERS_NOT_AVAILABLE"):
        state.move_leader("t", 0, 3)
    with pytest.raises(BrokerResponseError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        state.move_leader("t", 9, 1)


def test_a_waiting_fetch_is_answered_when_the_leader_moves() -> None:
    state = cluster()
    wanted = FetchPartition(partition=0, partition_max_bytes=1 << 20, current_leader_epoch=0)
    request = FetchRequest(
        max_wait_ms=500, min_bytes=1, topics=[FetchTopic(topic="t", partitions=[wanted])]
    )
    woken: list[None] = []
    wait = handled(state, 1, request, 12)
    assert isinstance(wait, DelayedResponse)
    for watched in wait.watched:
        watched.watchers.add(lambda: woken.append(None))
    state.move_leader("t", 0, 2)
    assert woken
    answer = wait.try_complete(False)
    assert isinstance(answer, FetchResponse)
    assert error_code(answer.responses[0].partitions[0].error_code).name == "FENCED_LEADER_EPOCH"


def test_produce_to_other_node_names_the_leader() -> None:
    state = cluster("a", "b", "c")
    state.move_leader("t", 0, 2)
    answer = produced(state, 1, version=10)
    assert code_of_produced(answer) == "NOT_LEADER_OR_FOLLOWER"
    hint = answer.responses[0].partition_responses[0].current_leader
    assert (hint.leader_id, hint.leader_epoch) == (2, 1)
    (node,) = answer.node_endpoints
    assert (node.node_id, node.host, node.port, node.rack) == (2, "localhost", 9092, "b")
    assert type(answer).decode(answer.encode(10), 10) == answer
    assert list(produced(state, 1, version=9).node_endpoints) == []
    assert code_of_produced(produced(state, 2, version=10)) == "NONE"


def test_produce_without_leader_fails() -> None:
    state = cluster()
    for node in (1, 2, 3):
        state.stop(node)
    state.start(2)
    answer = produced(state, 2, version=10)
    hint = answer.responses[0].partition_responses[0].current_leader
    assert (hint.leader_id, hint.leader_epoch) == (-1, 3)
    assert list(answer.node_endpoints) == []


@pytest.mark.parametrize(
    ("least", "acks", "away", "expected"),
    [
        ("2", -1, [], "NONE"),
        ("2", -1, [3], "NONE"),
        ("2", -1, [2, 3], "NOT_ENOUGH_REPLICAS"),
        ("2", 1, [2, 3], "NONE"),
        ("1", -1, [2, 3], "NONE"),
        ("9", -1, [], "NONE"),
        ("9", -1, [3], "NOT_ENOUGH_REPLICAS"),
    ],
)
def test_acks_all_needs_min_insync_replicas(
    least: str, acks: int, away: list[int], expected: str
) -> None:
    state = cluster()
    state.topics.remove(state.topics.named("t"))
    state.topics.add(state.plan_topic("t", 1, configs={"min.insync.replicas": least}))
    for node in away:
        state.stop(node)
    assert code_of_produced(produced(state, 1, acks=acks)) == expected


# Metadata and DescribeCluster


def described(state: ClusterState, version: int) -> list[MetadataResponsePartition]:
    answer = handled(state, 3, MetadataRequest(topics=None if version else []), version)
    assert isinstance(answer, MetadataResponse)
    (topic,) = answer.topics
    assert topic.error_code == 0
    return list(topic.partitions)


def test_metadata_omits_a_stopped_node() -> None:
    state = cluster()
    state.stop(1)
    answer = handled(state, 3, MetadataRequest(topics=[]), 9)
    assert isinstance(answer, MetadataResponse)
    assert [node.node_id for node in answer.brokers] == [2, 3]
    first = described(state, 9)[0]
    assert (first.leader_id, first.leader_epoch, first.error_code) == (2, 1, 0)
    assert (first.replica_nodes, first.isr_nodes) == ([1, 2, 3], [2, 3])
    assert first.offline_replicas == [1]
    old = described(state, 0)[0]
    assert error_code(old.error_code).name == "REPLICA_NOT_AVAILABLE"
    assert (old.replica_nodes, old.isr_nodes) == ([2, 3], [2, 3])


def test_metadata_of_a_partition_without_a_leader_has_an_error() -> None:
    state = cluster()
    for node in (1, 2, 3):
        state.stop(node)
    state.start(1)
    for version in (0, 9):
        first = described(state, version)[0]
        assert error_code(first.error_code).name == "LEADER_NOT_AVAILABLE"
        assert first.leader_id == -1
    assert first.isr_nodes == [3]
    assert first.offline_replicas == [2, 3]


@pytest.mark.parametrize("version", DescribeClusterRequest.VALID_VERSIONS)
def test_describe_cluster(version: int) -> None:
    state = cluster("a", "b", "c")
    state.stop(1)
    answer = handled(state, 2, DescribeClusterRequest(), version)
    assert isinstance(answer, DescribeClusterResponse)
    assert (answer.cluster_id, answer.controller_id) == (state.cluster_id, 2)
    nodes = [(node.broker_id, node.port, node.rack, node.is_fenced) for node in answer.brokers]
    assert nodes == [(2, 9092, "b", False), (3, 9093, "c", False)]
    assert answer.cluster_authorized_operations == -(2**31)
    if version >= 2:
        every = handled(state, 2, DescribeClusterRequest(include_fenced_brokers=True), version)
        assert isinstance(every, DescribeClusterResponse)
        fenced = [(node.broker_id, node.is_fenced) for node in every.brokers]
        assert fenced == [(1, True), (2, False), (3, False)]


@pytest.mark.parametrize(
    ("endpoint_type", "name"), [(2, "MISMATCHED_ENDPOINT_TYPE"), (7, "UNSUPPORTED_ENDPOINT_TYPE")]
)
def test_describe_cluster_of_controllers_is_rejected(endpoint_type: int, name: str) -> None:
    answer = handled(cluster(), 1, DescribeClusterRequest(endpoint_type=endpoint_type), 1)
    assert isinstance(answer, DescribeClusterResponse)
    assert error_code(answer.error_code).name == name
    assert list(answer.brokers) == []


# Coordinators


def found(
    state: ClusterState, key_type: int, *keys: str, version: int = 6
) -> list[tuple[str, int]]:
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=keys)
    answer = handled(state, 1, request, version)
    assert isinstance(answer, FindCoordinatorResponse)
    assert [each.key for each in answer.coordinators] == list(keys)
    return [(error_code(each.error_code).name, each.node_id) for each in answer.coordinators]


def test_coordinators_are_spread_and_move_when_their_node_stops() -> None:
    state = cluster()
    groups = [f"g{number}" for number in range(30)]
    before = found(state, 0, *groups)
    assert {node for _, node in before} == {1, 2, 3}
    assert before[0] == ("NONE", state.coordinator(CoordinatorType.GROUP, "g0"))
    state.stop(2)
    after = found(state, 0, *groups)
    assert {node for _, node in after} == {1, 3}
    for was, now in zip(before, after, strict=True):
        assert was == now or was == ("NONE", 2), "the others stay"
    state.start(2)
    assert found(state, 0, *groups) == after
    for node in (1, 2, 3):
        state.stop(node)
    state.start(1)
    names = {name for name, _ in found(state, 0, *groups)}
    assert names == {"COORDINATOR_NOT_AVAILABLE"}


@pytest.mark.parametrize("version", FindCoordinatorRequest.VALID_VERSIONS)
def test_find_coordinator(version: int) -> None:
    state = cluster(None)
    if version < 4:
        answer = handled(state, 1, FindCoordinatorRequest(key="g"), version)
        assert isinstance(answer, FindCoordinatorResponse)
        fields = (answer.error_code, answer.error_message, answer.node_id, answer.port)
        assert fields == (0, "NONE", 1, 9091), "the response of Kafka"
        bad = handled(state, 1, FindCoordinatorRequest(key="g", key_type=2), version)
        assert isinstance(bad, FindCoordinatorResponse)
        assert (error_code(bad.error_code).name, bad.node_id) == ("INVALID_REQUEST", -1)
        return
    assert found(state, 0, "g", "", "g", version=version) == [("NONE", 1)] * 3
    assert found(state, 1, "tx", version=version) == [("NONE", 1)]
    assert found(state, 7, "x", version=version) == [("INVALID_REQUEST", -1)]
    share = found(state, 2, "g", "g:AAAAAAAAAAAAAAAAAAAAAQ:0", version=version)
    assert share[0] == ("INVALID_REQUEST", -1)
    assert share[1] == (("NONE", 1) if version >= 6 else ("INVALID_REQUEST", -1))


# Epochs and truncation


def end_of(
    state: ClusterState, node: int, epoch: int, current: int = -1, version: int = 4
) -> tuple[str, int, int]:
    wanted = OffsetForLeaderPartition(leader_epoch=epoch, current_leader_epoch=current)
    topic = OffsetForLeaderTopic(topic="t", partitions=[wanted])
    answer = handled(state, node, OffsetForLeaderEpochRequest(topics=[topic]), version)
    assert isinstance(answer, OffsetForLeaderEpochResponse)
    ((part,),) = (topic.partitions for topic in answer.topics)
    return error_code(part.error_code).name, part.leader_epoch, part.end_offset


@pytest.mark.parametrize("version", OffsetForLeaderEpochRequest.VALID_VERSIONS)
def test_offset_for_leader_epoch(version: int) -> None:
    state = cluster()
    produced(state, 1)
    state.move_leader("t", 0, 2)
    state.move_leader("t", 0, 3)
    produced(state, 3)
    assert end_of(state, 3, 0, version=version) == ("NONE", 0, 3)
    assert end_of(state, 3, 1, version=version) == ("NONE", 0, 3), "epoch 1 has no records"
    assert end_of(state, 3, 2, version=version) == ("NONE", 2, 6)
    assert end_of(state, 3, 3, version=version) == ("NONE", -1, -1)
    assert end_of(state, 1, 0, version=version)[0] == "NOT_LEADER_OR_FOLLOWER"
    assert end_of(state, 3, 0, current=1)[0] == "FENCED_LEADER_EPOCH"
    assert end_of(state, 3, 0, current=3)[0] == "UNKNOWN_LEADER_EPOCH"


def test_offset_for_leader_epoch_after_truncation() -> None:
    state = cluster()
    for _ in range(3):
        produced(state, 1)
    assert state.truncate("t", 0, 4) == 3, "only whole batches are lost"
    partition = state.topics.named("t").partition(0)
    assert (partition.log.end_offset, partition.log.epochs.current) == (3, 1)
    assert end_of(state, 1, 0) == ("NONE", 0, 3)
    produced(state, 1)
    assert end_of(state, 1, 1) == ("NONE", 1, 6)
    assert [batch.partition_leader_epoch for batch in partition.log] == [0, 1]
    with pytest.raises(BrokerResponseError, match="OFFSET_OUT_OF_RANGE"):
        state.truncate("t", 0, 7)
    assert state.truncate("t", 0, 6) == 6
    assert partition.log.epochs.current == 1, "nothing is lost, and the epoch stays"
