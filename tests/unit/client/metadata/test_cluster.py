"""Tests how Metadata responses and leader hints change the client's cluster metadata."""

from __future__ import annotations

import pytest

from kproto.client.metadata.cluster import Broker, Cluster, LeaderHint
from kproto.client.settings import Address
from kproto.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kproto.wire.uuid import Uuid

OLD, NEW = Uuid(b"o" * 16), Uuid(b"n" * 16)


def metadata(leader: int, epoch: int, topic_id: Uuid = OLD) -> MetadataResponse:
    part = MetadataResponsePartition(partition_index=0, leader_id=leader, leader_epoch=epoch)
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=1, host="a", port=1, rack="east"),
            MetadataResponseBroker(node_id=2, host="b", port=2),
        ],
        topics=[MetadataResponseTopic(name="t", topic_id=topic_id, partitions=[part])],
    )


@pytest.fixture
def cluster() -> Cluster:
    known = Cluster()
    known.update(metadata(leader=1, epoch=4))
    return known


def test_racks_are_stored(cluster: Cluster) -> None:
    assert cluster.racks == {1: "east"}


def test_response_with_an_older_epoch_is_ignored(cluster: Cluster) -> None:
    cluster.update(metadata(leader=2, epoch=3))
    assert cluster.leader("t", 0) == 1


@pytest.mark.parametrize("epoch", [4, 5, -1])
def test_response_with_the_same_newer_or_no_epoch_is_applied(cluster: Cluster, epoch: int) -> None:
    cluster.update(metadata(leader=2, epoch=epoch))
    assert cluster.leader("t", 0) == 2


def test_recreated_topic_resets_the_leader_epoch(cluster: Cluster) -> None:
    cluster.update(metadata(leader=2, epoch=0, topic_id=NEW))
    assert cluster.leader("t", 0) == 2


def test_hint_with_a_newer_epoch_is_applied(cluster: Cluster) -> None:
    assert cluster.update_leader(LeaderHint("t", 0, leader=2, epoch=5))
    assert cluster.leader("t", 0) == 2
    assert cluster.topics["t"].partitions[0].leader_epoch == 5
    assert cluster.topics["t"].topic_id == OLD


@pytest.mark.parametrize(
    "hint",
    [
        LeaderHint("t", 0, leader=2, epoch=4),
        LeaderHint("t", 0, leader=2, epoch=3),
        LeaderHint("t", 0, leader=-1, epoch=9),
        LeaderHint("t", 0, leader=3, epoch=9),
        LeaderHint("t", 1, leader=2, epoch=9),
        LeaderHint("u", 0, leader=2, epoch=9),
    ],
)
def test_other_hints_are_ignored(cluster: Cluster, hint: LeaderHint) -> None:
    assert not cluster.update_leader(hint)
    assert cluster.leader("t", 0) == 1


def test_hint_may_include_a_new_broker(cluster: Cluster) -> None:
    cluster.update_brokers([Broker(3, "c", 3, "west")])
    assert cluster.update_leader(LeaderHint("t", 0, leader=3, epoch=5))
    assert cluster.brokers[3] == Address("c", 3)
    assert cluster.racks == {1: "east", 3: "west"}
    assert set(cluster.brokers) == {1, 2, 3}


def test_unreliable_leader_epochs_of_old_versions_are_ignored() -> None:
    cluster = Cluster()
    cluster.update(metadata(leader=1, epoch=4), version=8)
    assert (cluster.leader("t", 0), cluster.leader_epoch("t", 0)) == (1, -1)
    cluster.update(metadata(leader=1, epoch=4), version=9)
    assert cluster.leader_epoch("t", 0) == 4
    cluster.update(metadata(leader=2, epoch=3), version=8)
    assert cluster.leader("t", 0) == 2, "a leader without an epoch is not older"


def test_partitions_with_equal_replicas_share_one_tuple() -> None:
    parts = [
        MetadataResponsePartition(partition_index=at, replica_nodes=[1, 2], isr_nodes=nodes)
        for at, nodes in enumerate([[1, 2], [2], [1, 2]])
    ]
    known = Cluster()
    known.update(MetadataResponse(topics=[MetadataResponseTopic(name="t", partitions=parts)]))
    first, second, third = known.topics["t"].partitions.values()
    assert [each.in_sync for each in (first, second, third)] == [(1, 2), (2,), (1, 2)]
    assert first.replicas is first.in_sync is second.replicas is third.in_sync
