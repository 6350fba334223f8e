"""Tests share groups over sockets: deliveries, restarts, moved leaders, and the records of groups.

tests/kafka/test_share_groups_like_kafka.py compares the responses with those of a real broker.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from kproto.broker import Broker, BrokerSettings, Cluster
from kproto.testing.clock import ManualClock
from kproto.wire.uuid import Uuid
from tests.kafka.share_sides import ShareSide
from tests.support.embedded import (
    ThreadedBroker,
    ThreadedCluster,
    threaded_broker,
    threaded_cluster,
)

SETTINGS = BrokerSettings(group_share_record_lock_duration_ms=15_000)
T0 = ("t", 0)


def topic_id(broker: Broker | Cluster) -> Uuid:
    return broker._cluster.topics.named("t").topic_id


def joined(side: ShareSide, member: str = "m") -> None:
    side.set_config(share_auto_offset_reset="earliest")
    side.heartbeat(member, 0, ["t"])
    side.heartbeat(member)
    assert side.assigned[member], "the share states exist after the first heartbeat"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def broker(clock: ManualClock) -> Iterator[ThreadedBroker]:
    with threaded_broker(SETTINGS, clock=clock) as running:
        running.call(lambda it: it.create_topic("t", 2))
        yield running


@pytest.fixture
def side(broker: ThreadedBroker) -> Iterator[ShareSide]:
    found = ShareSide(broker.bootstrap, "g", {"t": broker.call(topic_id)})
    found.wait_for_coordinator()
    yield found
    found.close()


def acquired(answer: object) -> list[tuple[int, int, int]]:
    assert isinstance(answer, tuple)
    return [it for part in answer[2] for it in part[4]]


def test_record_is_delivered_again_when_its_lock_expires(
    side: ShareSide, broker: ThreadedBroker, clock: ManualClock
) -> None:
    side.produce(*T0, 2)
    joined(side)
    assert acquired(side.fetch("m", [T0])) == [(0, 1, 1)]
    side.acknowledge("m", {T0: [(0, 0, [1])]})
    broker.advance(clock, 15_000)
    assert acquired(side.fetch("m", max_wait_ms=0)) == [(1, 1, 2)]


def test_closed_connection_releases_its_records(side: ShareSide, broker: ThreadedBroker) -> None:
    side.produce(*T0, 3)
    joined(side)
    other = ShareSide(broker.bootstrap, "g", side.topics)
    assert acquired(other.fetch("n", [T0])) == [(0, 2, 1)]
    other.close()
    assert acquired(side.fetch("m", [T0], max_wait_ms=60_000)) == [(0, 2, 2)]


def test_records_are_in_the_state_topic(side: ShareSide, broker: ThreadedBroker) -> None:
    side.produce(*T0, 3)
    joined(side)
    side.fetch("m", [T0])
    side.acknowledge("m", {T0: [(0, 1, [1])]})
    assert side.describe_offsets("t", partitions=[0]) == ("NONE", [("t", 0, 0, 0, 1, "NONE")])

    def count(it: Broker) -> int:
        topic = it._cluster.topics.named("__share_group_state")
        return sum(partition.log.end_offset for partition in topic.partitions)

    assert broker.call(count) == 3, "two snapshots and an update"


def test_expired_member_leaves_its_partitions(
    side: ShareSide, broker: ThreadedBroker, clock: ManualClock
) -> None:
    joined(side, "a")
    side.heartbeat("b", 0, ["t"])
    broker.advance(clock, 40_000)
    side.heartbeat("b")
    broker.advance(clock, 10_000)
    side.heartbeat("b")
    assert side.assigned["b"] == [("t", 0), ("t", 1)]
    assert side.heartbeat("a")[0] == "UNKNOWN_MEMBER_ID"


def cluster_side(cluster: ThreadedCluster, node: int) -> ShareSide:
    bootstrap = cluster.call(lambda it: it.broker(node).bootstrap)
    return ShareSide(bootstrap, "g", {"t": cluster.call(topic_id)})


async def restart(node: int, cluster: Cluster) -> None:
    await cluster.stop_broker(node)
    await cluster.start_broker(node)


def leaders(cluster: ThreadedCluster) -> tuple[int, int]:
    """Returns the group's coordinator, and the leader of partition 0."""
    return cluster.call(
        lambda it: (
            it.coordinator("g"),
            it._cluster.topics.named("t").partition(0).leader_and_isr.leader,
        )
    )


def test_acknowledgements_survive_a_moved_leader_and_stopped_coordinators() -> None:
    with threaded_cluster(3, settings=SETTINGS) as cluster:
        cluster.call(lambda it: it.create_topic("t", 1))
        coordinator, leader = leaders(cluster)
        groups, data = cluster_side(cluster, coordinator), cluster_side(cluster, leader)
        data.produce(*T0, 6)
        joined(groups)
        assert acquired(data.fetch("m", [T0])) == [(0, 5, 1)]
        data.acknowledge("m", {T0: [(0, 2, [1])]})
        groups.close()
        data.close()
        for node in (1, 2, 3):  # each restart moves the leaders of all kinds
            cluster.wait_for(partial(restart, node))
        coordinator, leader = leaders(cluster)
        data = cluster_side(cluster, leader)
        assert acquired(data.fetch("n", [T0])) == [(3, 5, 1)]
        groups = cluster_side(cluster, coordinator)
        assert groups.describe_share()[0] == "Stable"
        assert groups.describe_offsets("t", partitions=[0])[1][0][2] == 0
        groups.close()
        data.close()


def test_former_leader_refuses_members() -> None:
    with threaded_cluster(2, settings=SETTINGS) as cluster:
        cluster.call(lambda it: it.create_topic("t", 1))
        coordinator, leader = leaders(cluster)
        groups, data = cluster_side(cluster, coordinator), cluster_side(cluster, leader)
        data.produce(*T0, 2)
        joined(groups)
        data.fetch("m", [T0])
        cluster.call(lambda it: it.move_leader("t", 0, 3 - leader))
        answer = data.acknowledge("m", {T0: [(0, 1, [1])]})
        assert answer[2] == [("t", 0, "NOT_LEADER_OR_FOLLOWER")]
        assert data.fetch("m")[2][0][2] == "NOT_LEADER_OR_FOLLOWER"
        groups.close()
        data.close()
