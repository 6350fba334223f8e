"""Tests AlterPartitionReassignments and ListPartitionReassignments, and their decisions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kproto.broker.leader_and_isr import LeaderAndIsr
from kproto.broker.leader_election import after_broker_start
from kproto.broker.reassignment import cancel_reassignment, reassign
from kproto.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kproto.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from kproto.protocol.error_codes import error_code
from tests.support.embedded import ThreadedCluster, threaded_cluster
from tests.support.raw_connection import RawConnection

ALIVE = (1, 2, 3)


@pytest.mark.parametrize(
    ("replicas", "leader", "target", "expected"),
    [
        ((1, 2), 1, (2, 1), LeaderAndIsr((2, 1), 1, (2, 1))),
        ((1, 2), 1, (3, 1), LeaderAndIsr((3, 1), 1, (3, 1))),
        ((1, 2), 1, (2, 3), LeaderAndIsr((2, 3), 2, (2, 3))),
        ((1,), 1, (1, 2, 3), LeaderAndIsr((1, 2, 3), 1, (1, 2, 3))),
        ((1, 2, 3), 3, (1,), LeaderAndIsr((1,), 1, (1,))),
    ],
)
def test_a_reassignment_to_live_nodes_is_complete_at_once(
    replicas: tuple[int, ...], leader: int, target: tuple[int, ...], expected: LeaderAndIsr
) -> None:
    done = reassign(LeaderAndIsr(replicas, leader, replicas), target, ALIVE)
    assert (done.replicas, done.leader, set(done.in_sync)) == (
        expected.replicas,
        expected.leader,
        set(expected.in_sync),
    )
    assert done.adding == done.removing == ()


def test_a_reassignment_to_a_stopped_node_ends_when_the_node_starts() -> None:
    ongoing = reassign(LeaderAndIsr((1, 2), 1, (1, 2)), (3, 1), (1, 2))
    assert ongoing == LeaderAndIsr((3, 1, 2), 1, (1, 2), adding=(3,), removing=(2,))
    assert after_broker_start(ongoing, 3, ALIVE) == LeaderAndIsr((3, 1), 1, (3, 1))
    assert cancel_reassignment(ongoing, (1, 2)) == LeaderAndIsr((1, 2), 1, (1, 2))
    other = reassign(ongoing, (4, 2), (1, 2))
    assert other == LeaderAndIsr((4, 2, 1), 1, (1, 2), adding=(4,), removing=(1,))


@pytest.fixture
def cluster() -> Iterator[ThreadedCluster]:
    with threaded_cluster() as cluster:
        cluster.call(lambda it: it.create_topic("t", 2, replication_factor=2))
        yield cluster


def alter(
    connection: RawConnection,
    *wanted: tuple[str, int, list[int] | None],
    version: int = 1,
    **options: Any,
) -> list[str]:
    request = AlterPartitionReassignmentsRequest(
        topics=[
            ReassignableTopic(
                name=topic,
                partitions=[ReassignablePartition(partition_index=index, replicas=replicas)],
            )
            for topic, index, replicas in wanted
        ],
        **options,
    )
    answer = connection.exchange(request, version)
    assert answer.error_code == 0
    return [error_code(it.partitions[0].error_code).name for it in answer.responses]


def ongoing(connection: RawConnection, *indexes: int) -> list[tuple[int, list[int], list[int]]]:
    topic = ListPartitionReassignmentsTopics(name="t", partition_indexes=list(indexes))
    request = ListPartitionReassignmentsRequest(topics=[topic] if indexes else None)
    answer = connection.exchange(request, 0)
    return [
        (it.partition_index, list(it.adding_replicas), list(it.removing_replicas))
        for each in answer.topics
        for it in each.partitions
    ]


@pytest.mark.parametrize("version", AlterPartitionReassignmentsRequest.VALID_VERSIONS)
def test_partitions_move_between_nodes(cluster: ThreadedCluster, version: int) -> None:
    with RawConnection(cluster.bootstrap) as connection:
        moves = [("t", 0, [3, 2]), ("t", 1, [2])]
        assert alter(connection, *moves, version=version) == ["NONE", "NONE"]
        assert ongoing(connection) == []
        assert cluster.call(lambda it: (it.leader("t"), it.leader_epoch("t"))) == (3, 1)
        assert cluster.call(lambda it: it.in_sync("t")) == (3, 2)
        assert cluster.call(lambda it: it.in_sync("t", 1)) == (2,)
        wrong: list[tuple[str, int, list[int] | None]] = [
            ("t", 0, [9]),
            ("t", 0, []),
            ("t", 0, [1, 1]),
            ("t", 9, [1]),
            ("nope", 0, [1]),
            ("t", 0, None),
        ]
        assert alter(connection, *wrong, version=version) == [
            *["INVALID_REPLICA_ASSIGNMENT"] * 3,
            *["UNKNOWN_TOPIC_OR_PARTITION"] * 2,
            "NO_REASSIGNMENT_IN_PROGRESS",
        ]
        if version:
            options = {"allow_replication_factor_change": False}
            assert alter(connection, ("t", 0, [1]), **options) == ["INVALID_REPLICATION_FACTOR"]


def test_reassignment_waits_for_a_stopped_node(cluster: ThreadedCluster) -> None:
    cluster.wait_for(lambda it: it.stop_broker(3))
    with RawConnection(cluster.bootstrap) as connection:
        assert alter(connection, ("t", 0, [3, 1])) == ["NONE"]
        assert ongoing(connection) == ongoing(connection, 0, 7) == [(0, [3], [2])]
        assert ongoing(connection, 1) == []
        assert alter(connection, ("t", 0, None)) == ["NONE"]
        assert ongoing(connection) == []
        assert alter(connection, ("t", 0, [3, 1])) == ["NONE"]
        cluster.wait_for(lambda it: it.start_broker(3))
        assert ongoing(connection) == []
    assert cluster.call(lambda it: it.in_sync("t")) == (3, 1)
