"""Tests the decisions of handlers for a context and a request, without a connection."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.broker import BrokerSettings
from kproto.broker.cluster_state import ClusterState
from kproto.broker.context import Context, Principal
from kproto.broker.handlers import KAFKA_APIS
from kproto.broker.listeners import Endpoint
from kproto.broker.registry import Decision, DelayedResponse, by_key
from kproto.messages.base import Request
from kproto.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.fetch_response import FetchResponse, PartitionData
from kproto.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kproto.messages.list_offsets_response import ListOffsetsResponse
from kproto.messages.metadata_request import MetadataRequest
from kproto.messages.metadata_response import MetadataResponse
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


def context(
    *, nodes: tuple[int, ...] = (1,), node: int = 1, settings: BrokerSettings | None = None
) -> Context:
    """Returns the context of a request to `node`; topic t has one partition per node."""
    settings = settings or BrokerSettings()
    cluster = ClusterState(settings)
    for node_id in nodes:
        cluster.register_endpoint(Endpoint(node_id, "localhost", 9090 + node_id))
    cluster.topics.add(cluster.plan_topic("t", len(nodes)))
    endpoint = Endpoint(node, "localhost", 9090 + node)
    return Context(cluster, settings, endpoint, {}, ManualClock(TIMESTAMP))


def decided(where: Context, request: Request[Any], version: int) -> Decision:
    return APIS[request.API_KEY].handle(where, request, version)


def produce_request(partition: int = 0) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=batch_bytes())
    return ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t", partition_data=[data])])


def fetch_request(
    partition: int = 0,
    *,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
    partition_max_bytes: int = 1 << 20,
) -> FetchRequest:
    wanted = FetchPartition(partition=partition, partition_max_bytes=partition_max_bytes)
    return FetchRequest(
        max_wait_ms=500,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        topics=[FetchTopic(topic="t", partitions=[wanted])],
    )


def fetched(decision: Decision) -> PartitionData:
    assert isinstance(decision, FetchResponse)
    ((part,),) = (topic.partitions for topic in decision.responses)
    return part


def test_empty_fetch_is_delayed_until_append_or_max_wait() -> None:
    where = context()
    wait = decided(where, fetch_request(), 12)
    assert isinstance(wait, DelayedResponse)
    assert wait.deadline == where.clock.monotonic() + 0.5
    log = where.cluster.topics.named("t").partitions[0].log
    assert wait.watched == [log]
    assert wait.try_complete(False) is wait, "no record is available yet"
    decided(where, produce_request(), 9)
    assert fetched(wait.try_complete(False)).records
    assert log.watchers == set(), "the handler itself does not wait"


def test_fetch_at_max_wait_returns_available_records() -> None:
    where = context()
    wait = decided(where, fetch_request(min_bytes=10_000), 12)
    assert isinstance(wait, DelayedResponse)
    assert fetched(wait.try_complete(True)).records == b""
    decided(where, produce_request(), 9)
    assert wait.try_complete(False) is wait
    assert fetched(wait.try_complete(True)).records


@pytest.mark.parametrize("max_bytes", [0, 1, 100, 200, 201])
def test_fetch_is_answered_at_once_if_no_byte_fits_into_the_response(max_bytes: int) -> None:
    """As in Kafka, a fetch waits only for `max_bytes` bytes if `min_bytes` is larger."""
    where = context()
    for _ in range(3):
        decided(where, produce_request(), 9)
    total = where.cluster.topics.named("t").partitions[0].log.size_in_bytes
    assert total > 201
    decision = decided(where, fetch_request(min_bytes=10_000, max_bytes=max_bytes), 12)
    found = len(fetched(decision).records or b"")
    assert 0 < found < total


def test_fetch_with_a_small_broker_limit_is_answered_at_once() -> None:
    where = context(settings=BrokerSettings(fetch_max_bytes=100))
    for _ in range(3):
        decided(where, produce_request(), 9)
    assert fetched(decided(where, fetch_request(min_bytes=10_000), 12)).records


def test_fetch_with_a_small_partition_limit_waits() -> None:
    """As in Kafka, the fetch waits, because other partitions could still get records."""
    where = context()
    for _ in range(3):
        decided(where, produce_request(), 9)
    request = fetch_request(min_bytes=10_000, partition_max_bytes=100)
    wait = decided(where, request, 12)
    assert isinstance(wait, DelayedResponse)
    assert fetched(wait.try_complete(True)).records


def test_records_are_dated_by_the_clock() -> None:
    where = context()
    settings = {"message.timestamp.type": "LogAppendTime"}
    where.cluster.topics.remove(where.cluster.topics.named("t"))
    where.cluster.topics.add(where.cluster.plan_topic("t", configs=settings))
    answer = decided(where, produce_request(), 9)
    assert isinstance(answer, ProduceResponse)
    assert answer.responses[0].partition_responses[0].log_append_time_ms == TIMESTAMP


def test_only_the_leader_answers_for_a_partition() -> None:
    verdicts: list[list[str]] = []
    alone = BrokerSettings(default_replication_factor=1)
    for node in (1, 2):
        where = context(nodes=(1, 2), node=node, settings=alone)
        produced = decided(where, produce_request(1), 9)
        assert isinstance(produced, ProduceResponse)
        found = fetched(decided(where, fetch_request(1, min_bytes=0), 12))
        wanted = ListOffsetsPartition(partition_index=1, timestamp=-1)
        topic = ListOffsetsTopic(name="t", partitions=[wanted])
        listed = decided(where, ListOffsetsRequest(topics=[topic]), 5)
        assert isinstance(listed, ListOffsetsResponse)
        codes = [
            produced.responses[0].partition_responses[0].error_code,
            found.error_code,
            listed.topics[0].partitions[0].error_code,
        ]
        verdicts.append([error_code(code).name for code in codes])
    assert verdicts == [["NOT_LEADER_OR_FOLLOWER"] * 3, ["NONE"] * 3]


def test_partition_that_list_offsets_names_twice_is_answered_once() -> None:
    where = context(nodes=(1, 2))
    one, two = (ListOffsetsPartition(partition_index=it, timestamp=-1) for it in (0, 1))
    request = ListOffsetsRequest(
        topics=[
            ListOffsetsTopic(name="t", partitions=[one, two]),
            ListOffsetsTopic(name="u", partitions=[one, one]),
            ListOffsetsTopic(name="t", partitions=[one, one]),
        ]
    )
    listed = decided(where, request, 5)
    assert isinstance(listed, ListOffsetsResponse)
    assert [
        (topic.name, part.partition_index, error_code(part.error_code).name)
        for topic in listed.topics
        for part in topic.partitions
    ] == [
        ("t", 0, "INVALID_REQUEST"),
        ("t", 1, "NOT_LEADER_OR_FOLLOWER"),
        ("u", 0, "INVALID_REQUEST"),
    ]


def test_metadata_has_several_nodes() -> None:
    answer = decided(context(nodes=(2, 1, 5), node=5), MetadataRequest(topics=None), 9)
    assert isinstance(answer, MetadataResponse)
    assert [(node.node_id, node.port) for node in answer.brokers] == [
        (1, 9091),
        (2, 9092),
        (5, 9095),
    ]
    assert answer.controller_id == 1
    assert [part.leader_id for part in answer.topics[0].partitions] == [1, 2, 5]


def test_a_principal_has_its_text() -> None:
    assert str(context().principal) == "User:ANONYMOUS"
    assert str(Principal("User", "alice")) == "User:alice"
