"""Tests partition counts and replica placement; errors are those of Kafka 4.4.0."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kproto import BrokerResponseError
from kproto.broker.replica_placement import Replicas, place_replicas


def name_of_error(act: Callable[[], object]) -> str:
    with pytest.raises(BrokerResponseError) as caught:
        act()
    return caught.value.name


def placed(
    partitions: int = -1,
    replicas: int = -1,
    assignments: dict[int, list[int]] | None = None,
    nodes: tuple[int, ...] = (1,),
) -> list[Replicas]:
    return place_replicas(
        partitions, replicas, assignments or {}, nodes=nodes, default=3, most=10_000
    )


def count(
    partitions: int = -1, replicas: int = -1, assignments: dict[int, list[int]] | None = None
) -> int:
    return len(placed(partitions, replicas, assignments))


def test_how_many_partitions() -> None:
    assert count() == 3
    assert count(5, 1) == 5
    assert count(10_000) == 10_000
    assert count(assignments={0: [1], 1: [1]}) == 2


@pytest.mark.parametrize(
    ("partitions", "replicas", "assignments", "name"),
    [
        (0, 1, {}, "INVALID_PARTITIONS"),
        (-2, 1, {}, "INVALID_PARTITIONS"),
        (10_001, 1, {}, "POLICY_VIOLATION"),
        (1, 0, {}, "INVALID_REPLICATION_FACTOR"),
        (1, -2, {}, "INVALID_REPLICATION_FACTOR"),
        (1, 2, {}, "INVALID_REPLICATION_FACTOR"),
        (1, -1, {0: [1]}, "INVALID_REQUEST"),
        (-1, 1, {0: [1]}, "INVALID_REQUEST"),
        (-1, -1, {1: [1]}, "INVALID_REPLICA_ASSIGNMENT"),
        (-1, -1, {0: [9]}, "INVALID_REPLICA_ASSIGNMENT"),
        (-1, -1, {0: []}, "INVALID_REPLICA_ASSIGNMENT"),
        (-1, -1, {0: [1, 1]}, "INVALID_REPLICA_ASSIGNMENT"),
    ],
)
def test_invalid_partition_or_replica_counts_raise(
    partitions: int, replicas: int, assignments: dict[int, list[int]], name: str
) -> None:
    assert name_of_error(lambda: count(partitions, replicas, assignments)) == name


def test_nodes_lead_in_turn() -> None:
    nodes = (1, 5, 9)
    assert placed(4, nodes=nodes) == [(1,), (5,), (9,), (1,)]
    assert placed(4, 2, nodes=nodes) == [(1, 5), (5, 9), (9, 1), (1, 5)]
    assert placed(1, 3, nodes=nodes) == [(1, 5, 9)]
    assert placed(assignments={1: [9, 1], 0: [5, 9]}, nodes=nodes) == [(5, 9), (9, 1)]


@pytest.mark.parametrize(
    ("replicas", "assignments", "name"),
    [
        (4, {}, "INVALID_REPLICATION_FACTOR"),
        (-1, {0: [1, 5], 1: [1]}, "INVALID_REPLICA_ASSIGNMENT"),
        (-1, {0: [1, 7]}, "INVALID_REPLICA_ASSIGNMENT"),
        (-1, {0: [1, 5, 1]}, "INVALID_REPLICA_ASSIGNMENT"),
    ],
)
def test_invalid_assignments_raise(
    replicas: int, assignments: dict[int, list[int]], name: str
) -> None:
    assert name_of_error(lambda: placed(-1, replicas, assignments, nodes=(1, 5, 9))) == name


def test_stopped_nodes_follow_where_the_others_are_too_few() -> None:
    def place(copies: int, nodes: tuple[int, ...], stopped: tuple[int, ...]) -> list[Replicas]:
        return place_replicas(2, copies, {}, nodes=nodes, stopped=stopped, default=1, most=9)

    assert place(2, (1, 3), (2,)) == [(1, 3), (3, 1)]
    assert place(3, (1, 3), (2,)) == [(1, 3, 2), (3, 1, 2)]
    assert name_of_error(lambda: place(4, (1, 3), (2,))) == "INVALID_REPLICATION_FACTOR"
    assert name_of_error(lambda: place(1, (), (1, 2))) == "INVALID_REPLICATION_FACTOR"


def test_the_default_of_replicas() -> None:
    found = place_replicas(
        -1, -1, {}, nodes=(1, 2, 3), default=1, most=9, default_replication_factor=2
    )
    assert found == [(1, 2)]
    with pytest.raises(BrokerResponseError, match="2 replicas need as many brokers"):
        place_replicas(-1, -1, {}, nodes=(1,), default=1, most=9, default_replication_factor=2)
