"""Tests that the embedded broker answers administrators as Kafka 4.4.0 does."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kproto.broker import BrokerSettings
from tests.support.availability import not_available
from tests.support.brokers import CANNOT_START
from tests.support.embedded import threaded_broker, threaded_cluster
from tools.kafka import KafkaCluster, KafkaNode

from .config_conversations import STATIC, altering_configs, describing_all_configs
from .conversations import Said
from .talk import Talk, ranges
from .task_conversations import (
    adding_partitions,
    describing_log_dirs,
    describing_the_cluster,
    paging_through_topics,
    reassigning_partitions,
    setting_ip_quotas,
    updating_features,
)

pytestmark = pytest.mark.kafka

VERSION = "4.4.0"

#: Settings with which the embedded broker has the configs of Kafka's nodes.
SETTINGS = BrokerSettings(group_consumer_assignment_interval_ms=1_000, default_replication_factor=1)


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    """Yields a new cluster of three nodes."""
    kafka = KafkaCluster(VERSION, config={"min.insync.replicas": "1"})
    try:
        kafka.start()
    except CANNOT_START as error:
        not_available(f"Kafka {VERSION}", error)
    yield kafka
    kafka.close()


@pytest.fixture(scope="module")
def node() -> Iterator[KafkaNode]:
    """Yields a new broker, because the tests change its configs."""
    kafka = KafkaNode(VERSION)
    try:
        kafka.start()
    except CANNOT_START as error:
        not_available(f"Kafka {VERSION}", error)
    yield kafka
    kafka.close()


@pytest.mark.parametrize(
    "conversation",
    [
        describing_all_configs,
        altering_configs,
        adding_partitions,
        describing_log_dirs,
        paging_through_topics,
        updating_features,
        describing_the_cluster,
        setting_ip_quotas,
    ],
    ids=lambda it: it.__name__,
)
def test_embedded_broker_answers_administrators_as_kafka_does(
    conversation: Callable[[Talk], Said], node: KafkaNode
) -> None:
    theirs = _said(conversation, node.bootstrap)
    with threaded_broker(SETTINGS) as broker:
        ours = _said(conversation, broker.bootstrap)
    _compare(ours, theirs)


@pytest.mark.exhaustive
def test_embedded_cluster_reassigns_partitions_as_kafka_does(cluster: KafkaCluster) -> None:
    theirs = _said(reassigning_partitions, cluster.bootstrap)
    with threaded_cluster() as embedded:
        ours = _said(reassigning_partitions, embedded.bootstrap)
    _compare(ours, theirs)


def _said(conversation: Callable[[Talk], Said], bootstrap: str) -> dict[str, object]:
    talk = Talk(bootstrap, ranges(bootstrap), "same")
    return {str(request): answer for request, answer in conversation(talk)}


def _compare(ours: dict[str, object], theirs: dict[str, object]) -> None:
    assert ours.keys() == theirs.keys()
    differing = [
        f"{request}: ours {answer}, theirs {theirs[request]}"
        for request, answer in ours.items()
        if answer != theirs[request] and STATIC not in (answer, theirs[request])
    ]
    assert not differing, "\n".join(differing)
