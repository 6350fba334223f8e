"""Places the replicas of new topics on nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from .api_error import api_error

__all__ = ["Replicas", "check_replicas", "place_added_partitions", "place_replicas"]

Replicas = tuple[int, ...]
"""The node ids of a partition's replicas; the first is the preferred leader."""

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
    """Returns the replicas of each partition of a new topic.

    `assignments` is a manual assignment: node ids by partition. If `assignments` is empty, the live
    `nodes` lead the partitions in turn, and the next nodes in the list are followers. As in Kafka,
    `stopped` nodes are used if there are too few live nodes. If `num_partitions` is -1, `default`
    applies. If `replication_factor` is -1, `default_replication_factor` applies. `most` is the
    maximum partition count.

    Raises INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT,
    INVALID_REQUEST and POLICY_VIOLATION.
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


def place_added_partitions(
    topic: str,
    present: int,
    count: int,
    assignments: Sequence[Sequence[int]] | None,
    *,
    replication_factor: int,
    nodes: Sequence[int],
    most: int,
    stopped: Sequence[int] = (),
) -> list[Replicas]:
    """Returns the replicas of the partitions that are added to `topic`.

    The topic has `present` partitions before, and `count` afterwards. `assignments` has the node
    ids of each added partition; None places the replicas as `place_replicas` does. Raises
    INVALID_PARTITIONS, INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR and POLICY_VIOLATION.
    """
    if count == present:
        raise api_error("INVALID_PARTITIONS", f"Topic already has {present} partition(s).")
    added = count - present
    if added < 0:
        raise api_error(
            "INVALID_PARTITIONS",
            f"The topic {topic} currently has {present} partition(s); {count} would not be an "
            "increase.",
        )
    if assignments is not None and len(assignments) != added:
        raise api_error(
            "INVALID_REPLICA_ASSIGNMENT",
            f"Attempted to add {added} additional partition(s), but only {len(assignments)} "
            "assignment(s) were specified.",
        )
    if added > most:
        raise api_error(
            "POLICY_VIOLATION", "Excessively large number of additional partitions per request."
        )
    if assignments is not None:
        for replicas in assignments:
            check_replicas(replicas, [*nodes, *stopped])
            if len(replicas) != replication_factor:
                raise api_error(
                    "INVALID_REPLICA_ASSIGNMENT",
                    f"The manual partition assignment includes a partition with {len(replicas)} "
                    "replica(s), but this is not consistent with previous partitions, which have "
                    f"{replication_factor} replica(s).",
                )
        return [tuple(replicas) for replicas in assignments]
    if replication_factor > len(nodes) + len(stopped) or not nodes:
        raise api_error(
            "INVALID_REPLICATION_FACTOR",
            f"{replication_factor} replicas need as many brokers; {len(nodes)} are alive",
        )
    here = min(replication_factor, len(nodes))
    return [
        _neighbours(index, here, nodes) + _neighbours(index, replication_factor - here, stopped)
        for index in range(present, count)
    ]


def check_replicas(replicas: Sequence[int], nodes: Sequence[int]) -> None:
    """Raises INVALID_REPLICA_ASSIGNMENT unless `replicas` are some of `nodes`, each once."""
    if not replicas:
        reason = "an empty replica list"
    elif unknown := [node for node in replicas if node not in nodes]:
        reason = f"broker {unknown[0]}, but no such broker is registered"
    elif repeated := [node for node in replicas if replicas.count(node) > 1]:
        reason = f"the broker {repeated[0]} more than once"
    else:
        return
    raise api_error(
        "INVALID_REPLICA_ASSIGNMENT", f"The manual partition assignment includes {reason}."
    )


def _neighbours(index: int, count: int, nodes: Sequence[int]) -> Replicas:
    return tuple(nodes[(index + copy) % len(nodes)] for copy in range(count))


def _assigned(assignments: Mapping[int, Iterable[int]], nodes: Sequence[int]) -> list[Replicas]:
    """Returns the replicas of each partition in a manual assignment, sorted by partition.

    Raises INVALID_REPLICA_ASSIGNMENT if the partition indexes are not 0, 1, 2 and so on, or if the
    partitions have different numbers of replicas. Also raises this error if a partition has no
    replica, two replicas on the same node, or a replica on an unknown node.
    """
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
