"""Which nodes hold the partitions of a new topic: a decision on plain numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from .api_error import api_error

__all__ = ["Replicas", "place_replicas"]

Replicas = tuple[int, ...]
"""The ids of the nodes that hold a partition; the first is its leader."""

_DEFAULT: Final = -1


def place_replicas(
    num_partitions: int,
    replication_factor: int,
    assignments: Mapping[int, Iterable[int]],
    *,
    nodes: Sequence[int],
    default: int,
    most: int,
    stopped: Sequence[int] = (),
    default_replication_factor: int = 1,
) -> list[Replicas]:
    """The replicas of each partition of a new topic, from what was asked; -1 for the default.

    `nodes` are the ids of those that are alive: where nobody assigns partitions to them, they lead
    in turn, and their neighbours follow. Those that are `stopped` follow where the others are too
    few, as in Kafka. Raises INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR,
    INVALID_REPLICA_ASSIGNMENT, INVALID_REQUEST and POLICY_VIOLATION.
    """
    known = [*nodes, *stopped]
    if assignments:
        if num_partitions != _DEFAULT or replication_factor != _DEFAULT:
            raise api_error(
                "INVALID_REQUEST",
                "with a manual assignment, partitions and replication factor must be -1",
            )
        placed = _assigned(assignments, known)
        for index, replicas in enumerate(placed):
            if not set(replicas) & set(nodes):
                raise api_error(
                    "INVALID_REPLICA_ASSIGNMENT",
                    f"all brokers that partition {index} is assigned to are stopped",
                )
        _check_count(len(placed), most)
        return placed
    if num_partitions == 0 or num_partitions < _DEFAULT:
        raise api_error(
            "INVALID_PARTITIONS", "partitions must be more than 0, or -1 for the default"
        )
    if replication_factor == 0 or replication_factor < _DEFAULT:
        raise api_error(
            "INVALID_REPLICATION_FACTOR",
            "the replication factor must be more than 0, or -1 for the default",
        )
    copies = default_replication_factor if replication_factor == _DEFAULT else replication_factor
    if copies > len(known):
        raise api_error(
            "INVALID_REPLICATION_FACTOR",
            f"{copies} replicas need as many brokers; the cluster has {len(known)}",
        )
    if not nodes:
        raise api_error("INVALID_REPLICATION_FACTOR", "all brokers are stopped")
    count = default if num_partitions == _DEFAULT else num_partitions
    _check_count(count, most)
    here = min(copies, len(nodes))
    return [
        _neighbours(index, here, nodes) + _neighbours(index, copies - here, stopped)
        for index in range(count)
    ]


def _neighbours(index: int, count: int, nodes: Sequence[int]) -> Replicas:
    return tuple(nodes[(index + copy) % len(nodes)] for copy in range(count))


def _assigned(assignments: Mapping[int, Iterable[int]], nodes: Sequence[int]) -> list[Replicas]:
    """The replicas as they were assigned: distinct nodes that are there, as many everywhere."""
    if sorted(assignments) != list(range(len(assignments))):
        raise api_error(
            "INVALID_REPLICA_ASSIGNMENT", "the partitions assigned must be 0, 1, 2 and so on"
        )
    placed = [tuple(assignments[index]) for index in range(len(assignments))]
    for index, replicas in enumerate(placed):
        if not replicas or len(set(replicas)) < len(replicas) or not set(replicas) <= set(nodes):
            raise api_error(
                "INVALID_REPLICA_ASSIGNMENT",
                f"partition {index} is assigned to {list(replicas)}; it needs brokers that are "
                f"there, each once: {', '.join(map(str, nodes))}",
            )
        if len(replicas) != len(placed[0]):
            raise api_error(
                "INVALID_REPLICA_ASSIGNMENT",
                f"partition {index} has {len(replicas)} replicas, and partition 0 has "
                f"{len(placed[0])}",
            )
    return placed


def _check_count(count: int, most: int) -> None:
    if count > most:
        raise api_error("POLICY_VIOLATION", f"{count} partitions are more than {most}")
