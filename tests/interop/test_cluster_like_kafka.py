"""Tests that three embedded brokers answer like three real brokers while a broker restarts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import pytest

from kproto.messages.base import Request
from kproto.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kproto.messages.delete_topics_request import DeleteTopicsRequest
from kproto.messages.describe_cluster_request import DescribeClusterRequest
from kproto.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kproto.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kproto.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.support.batches import batch_bytes
from tests.support.brokers import StartCluster
from tests.support.embedded import threaded_cluster
from tests.support.raw_connection import ClosedByBrokerError, RawConnection
from tests.support.settling import settle

from .talk import error

pytestmark = [pytest.mark.kafka, pytest.mark.exhaustive]

PATIENCE_S = 40.0
#: Replicas of each partition: `alone` has one; `two` refuses writes if either replica is down.
TOPICS: Final[Mapping[str, list[tuple[int, ...]]]] = {
    "all": [(1, 2, 3), (2, 3, 1), (3, 1, 2)],
    "alone": [(1,)],
    "two": [(1, 2)],
}

Results: TypeAlias = Iterator[tuple[str, object]]


class Nodes:
    """The broker addresses by node id, and functions that stop and start a broker."""

    def __init__(
        self,
        addresses: Mapping[int, str],
        stop: Callable[[int], object],
        start: Callable[[int], object],
    ) -> None:
        self.addresses = addresses
        self.stop = stop
        self.start = start

    def ask(self, node: int, request: Request[Any], version: int) -> Any:
        """Returns the response of a node, and retries while the node is starting."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                with RawConnection(self.addresses[node]) as connection:
                    return connection.exchange(request, version)
            except (OSError, ClosedByBrokerError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def create(self) -> object:
        topics = [
            CreatableTopic(
                name=name,
                num_partitions=-1,
                replication_factor=-1,
                assignments=[
                    CreatableReplicaAssignment(partition_index=index, broker_ids=its)
                    for index, its in enumerate(replicas)
                ],
                configs=[
                    CreatableTopicConfig(
                        name="min.insync.replicas", value=str(min(2, len(replicas[0])))
                    )
                ],
            )
            for name, replicas in TOPICS.items()
        ]
        answer = self.ask(1, CreateTopicsRequest(topics=topics, timeout_ms=10_000), 5)
        return [error(topic.error_code) for topic in answer.topics]

    def begin(self) -> tuple[object, dict[str, list[Any]]]:
        """Creates the topics; waits until all brokers are in sync; returns response and metadata.

        If a leader changed before all brokers had started, deletes the topics and creates them
        again, at most twice.
        """
        for _ in range(3):
            created, found = self.create(), self.settle(set(self.addresses))
            if all(epoch == 0 for name in TOPICS for _, _, epoch, *_ in found[name]):
                break
            self.delete()
        return created, found

    def delete(self) -> None:
        self.ask(1, DeleteTopicsRequest(topic_names=list(TOPICS), timeout_ms=10_000), 5)
        deadline = time.monotonic() + PATIENCE_S
        while any(self.metadata(node)[name] for node in self.addresses for name in TOPICS):
            assert time.monotonic() < deadline
            time.sleep(0.2)

    def metadata(self, node: int, version: int = 9) -> dict[str, list[Any]]:
        wanted = [MetadataRequestTopic(name=name) for name in TOPICS]
        answer = self.ask(node, MetadataRequest(topics=wanted), version)
        return {
            "brokers": [broker.node_id for broker in answer.brokers],
            **{
                topic.name: [
                    (
                        error(part.error_code),
                        part.leader_id,
                        part.leader_epoch,
                        list(part.replica_nodes),
                        # Kafka 4.4 moves the last ISR member to the eligible leader replicas.
                        sorted(part.isr_nodes) if part.leader_id >= 0 else None,
                        list(part.offline_replicas),
                    )
                    for part in sorted(topic.partitions, key=lambda it: it.partition_index)
                ]
                for topic in answer.topics
            },
        }

    def settle(self, in_sync: set[int]) -> dict[str, list[Any]]:
        """Waits until all nodes of `in_sync` are alive and in sync; returns topic metadata."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            found = [self.metadata(node) for node in sorted(in_sync)]
            if all(it == found[0] for it in found) and self._is_settled(found[0], in_sync):
                for node in in_sync:  # metadata names a leader before the leader is ready
                    with RawConnection(self.addresses[node]) as connection:
                        settle(connection)
                return found[0]
            assert time.monotonic() < deadline, found
            time.sleep(0.2)

    def _is_settled(self, found: dict[str, list[Any]], in_sync: set[int]) -> bool:
        return set(found["brokers"]) == in_sync and all(
            isr is None or set(isr) == in_sync & set(replicas)
            for name in TOPICS
            for _, _, _, replicas, isr, _ in found[name]
        )

    def produce(self, node: int, topic: str = "all", *, acks: int = -1) -> object:
        data = PartitionProduceData(index=0, records=batch_bytes(2))
        request = ProduceRequest(
            acks=acks,
            timeout_ms=4_000,
            topic_data=[TopicProduceData(name=topic, partition_data=[data])],
        )
        answer = self.ask(node, request, 10)
        ((part,),) = (each.partition_responses for each in answer.responses)
        leader = part.current_leader
        return (
            error(part.error_code),
            part.base_offset,
            (leader.leader_id, leader.leader_epoch),
            [(each.node_id, each.rack) for each in answer.node_endpoints],
        )

    def end_of(self, node: int, epoch: int, current: int = -1) -> object:
        wanted = OffsetForLeaderPartition(leader_epoch=epoch, current_leader_epoch=current)
        topic = OffsetForLeaderTopic(topic="all", partitions=[wanted])
        answer = self.ask(node, OffsetForLeaderEpochRequest(replica_id=-1, topics=[topic]), 4)
        ((part,),) = (each.partitions for each in answer.topics)
        return error(part.error_code), part.leader_epoch, part.end_offset

    def fenced(self, node: int) -> object:
        answer = self.ask(node, DescribeClusterRequest(include_fenced_brokers=True), 2)
        return sorted((each.broker_id, each.rack, each.is_fenced) for each in answer.brokers)


def behaviour_of(nodes: Nodes) -> Results:
    created, in_sync = nodes.begin()
    yield "created", created
    yield "all in sync", in_sync
    yield "v0", nodes.metadata(2, 0)
    yield "to another", nodes.produce(2)
    yield "to the leader", nodes.produce(1)
    yield "to a broker without a replica", nodes.produce(3, "two")
    nodes.stop(1)
    yield "1 is stopped", nodes.settle({2, 3})
    yield "v0 without 1", nodes.metadata(3, 0)
    yield "to the new leader", nodes.produce(2)
    yield "to a follower", nodes.produce(3)
    yield "too few in sync", nodes.produce(2, "two")
    yield "acks=1", nodes.produce(2, "two", acks=1)
    yield "no leader", nodes.produce(2, "alone")
    yield "ends", [nodes.end_of(2, epoch) for epoch in (0, 1, 2)]
    yield "fenced", nodes.end_of(2, 0, 0)
    yield "end at a follower", nodes.end_of(3, 0)
    yield "fenced brokers", nodes.fenced(2)
    nodes.start(1)
    yield "1 is back", nodes.settle({1, 2, 3})
    yield "to the old leader", nodes.produce(1)
    yield "to the current leader", nodes.produce(2)
    yield "ends again", [nodes.end_of(2, epoch) for epoch in (0, 1, 2)]
    nodes.stop(2)
    yield "2 is stopped", nodes.settle({1, 3})


def test_three_embedded_brokers_answer_as_three_real_ones(start_cluster: StartCluster) -> None:
    racks = ("a", "b", "c")
    with threaded_cluster(3, racks=racks) as embedded:
        addresses = embedded.call(lambda it: {node: it.broker(node).bootstrap for node in it.nodes})
        ours = dict(
            behaviour_of(
                Nodes(
                    addresses,
                    lambda node: embedded.wait_for(lambda it: it.stop_broker(node)),
                    lambda node: embedded.wait_for(lambda it: it.start_broker(node)),
                )
            )
        )
    real = start_cluster("4.4.0", racks=racks, config={"auto.leader.rebalance.enable": "false"})
    theirs = dict(
        behaviour_of(
            Nodes(
                {node: real.node(node).bootstrap for node in (1, 2, 3)},
                lambda node: real.node(node).stop(),
                lambda node: real.node(node).start(),
            )
        )
    )
    assert ours == theirs
