"""What the client knows of the cluster, from Metadata and from hints of other responses."""

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


def told(leader: int, epoch: int, topic_id: Uuid = OLD) -> MetadataResponse:
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
    known.update(told(leader=1, epoch=4))
    return known


def test_racks_are_known(cluster: Cluster) -> None:
    assert cluster.racks == {1: "east"}


def test_a_response_with_an_older_epoch_does_not_turn_time_back(cluster: Cluster) -> None:
    cluster.update(told(leader=2, epoch=3))
    assert cluster.leader("t", 0) == 1


@pytest.mark.parametrize("epoch", [4, 5, -1])
def test_one_with_the_same_or_a_newer_epoch_or_none_counts(cluster: Cluster, epoch: int) -> None:
    cluster.update(told(leader=2, epoch=epoch))
    assert cluster.leader("t", 0) == 2


def test_epochs_of_a_topic_made_anew_begin_anew(cluster: Cluster) -> None:
    cluster.update(told(leader=2, epoch=0, topic_id=NEW))
    assert cluster.leader("t", 0) == 2


def test_a_hint_with_a_newer_epoch_counts(cluster: Cluster) -> None:
    assert cluster.hear_leader(LeaderHint("t", 0, leader=2, epoch=5))
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
def test_other_hints_tell_nothing(cluster: Cluster, hint: LeaderHint) -> None:
    assert not cluster.hear_leader(hint)
    assert cluster.leader("t", 0) == 1


def test_a_hint_may_bring_the_broker_with_it(cluster: Cluster) -> None:
    cluster.hear_brokers([Broker(3, "c", 3, "west")])
    assert cluster.hear_leader(LeaderHint("t", 0, leader=3, epoch=5))
    assert cluster.brokers[3] == Address("c", 3)
    assert cluster.racks == {1: "east", 3: "west"}
    assert set(cluster.brokers) == {1, 2, 3}


def test_leader_epochs_that_cannot_be_relied_on_are_not_taken() -> None:
    cluster = Cluster()
    cluster.update(told(leader=1, epoch=4), version=8)
    assert (cluster.leader("t", 0), cluster.leader_epoch("t", 0)) == (1, -1)
    cluster.update(told(leader=1, epoch=4), version=9)
    assert cluster.leader_epoch("t", 0) == 4
    cluster.update(told(leader=2, epoch=3), version=8)
    assert cluster.leader("t", 0) == 2, "whose epoch is unknown is not older"
